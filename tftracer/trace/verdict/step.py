"""The input of the verdict's rules: one trace, seen from the process that computes most."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from tftracer.contract.analyses import MIN_TRACES
from tftracer.contract.trace import Evidence, Link, Sentence
from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.budget import Activities, Activity
from tftracer.trace.analyses.communication import Transfers, link_table, transfers
from tftracer.trace.analyses.op_kinds import PYTHON_OPS
from tftracer.trace.analyses.ops import Work
from tftracer.trace.analyses.over_traces import OpsOverTraces
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.analyses.tf_data_stages import Stages
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool, Float64, Int64
from tftracer.trace.decode.labels import parse_received
from tftracer.trace.decode.profile_function_calls import FunctionCall, HostEvents
from tftracer.trace.decode.profile_host import XLA_HOST
from tftracer.trace.model import DeviceKind, NodeKind, Trace, TraceContext
from tftracer.trace.units import duration
from tftracer.trace.verdict.gpu_gaps import Gaps, gaps_of
from tftracer.trace.verdict.time_around_ops import LIKE_THE_STEP, START_NS, Around, around, longest_median_s, without_tracing_s

MAX_EVIDENCE = 50
GAP_NS = 100_000  # the executor's own work between two ops takes at most this long; a longer gap has another reason
_FUNCTION_OPS = re.compile(r"__inference_.*|(Stateful)?PartitionedCall|RemoteCall|_?Xla(Launch|Run)(V2)?")
_CPU = re.compile(r"((?P<process>\S+/\d+) )?CPU(:0)?(?P<xla> XLA.*)?", re.DOTALL)
#: If the recorded ops that begin within a function's call take CONTAINED_SHARE of its time, or if there are CONTAINED_OPS of
#: them, the trace has the function's ops, and the call only waits for them.
CONTAINED_SHARE, CONTAINED_OPS = 0.25, 20
#: A text that gives shares of a time calls that time "the step" if it is at least this part of the step.
WHOLE = 0.95
MOSTLY_DELAYED = 0.5  # ops were mostly delayed if they could have taken less than this part of their time
ONLY_HERE = "only_here"  # a key of a sentence's ``numbers``: the sentence applies to this step alone
#: A key of a sentence's ``numbers``: the ns by which something delayed this step. The sentence says nothing about other steps.
HELD_UP_NS = "held_up_ns"


@dataclass(frozen=True)
class Step:
    """A trace, the context of its step, and the process to judge."""

    trace: Trace
    context: TraceContext
    activities: Activities
    work: Work
    process: Group  # the worker that computes most
    activity: Activity  # of that process
    parts: dict[str, float] = field(default_factory=dict)  # ns of each part of the process's budget (budget.PARTS)
    load_arithmetic: Callable[[], Arithmetic] | None = None  # reads the graph
    times: OpsOverTraces | None = None  # times of ops (names) in several traces of the run, this one first

    @property
    def ns(self) -> int:
        """The time from the first op to the end of the last."""
        return max(self.trace.duration_ns, 1)

    @property
    def is_session(self) -> bool:
        return self.trace.source != "xspace"

    @cached_property
    def around(self) -> Around:
        """The time before the first op and after the last."""
        return around(self.trace, self.context, self.calls, self._usual_ops_ns)

    @cached_property
    def _usual_ops_ns(self) -> int:
        """The time from the first op to the last, in ns. If delays of ops are most of it, the time without them:
        then each op counts with its shortest time of all known traces."""
        work, shortest_ns = self.computing, self.shortest_ns
        total_ns = np.bincount(work.name, work.self_ns, minlength=len(self.trace.names))
        if shortest_ns is None or not total_ns.any():
            return self.trace.duration_ns
        least_ns = np.where(shortest_ns > 0, np.fmin(shortest_ns, total_ns), total_ns)  # 0: not known
        undelayed = float(least_ns.sum() / total_ns.sum())
        if undelayed > MOSTLY_DELAYED:
            return self.trace.duration_ns
        waits_ns = (self.cover(self.waits_for_input) - self.activity.compute).length
        return int(waits_ns + (self.trace.duration_ns - waits_ns) * undelayed)

    @property
    def whole_ns(self) -> int:
        """The time from the call of the step to its end. Shares are of this time."""
        eager_ns = 0
        if self.context.trace_level == "profile" and self.host is not None and not self.calls:
            took_ns = int(without_tracing_s(self.context) * 1e9)
            eager_ns = took_ns if took_ns - self.trace.duration_ns > START_NS else 0
        return max(self.trace.duration_ns + self.around.before_ns + self.around.after_ns, eager_ns, 1)

    @property
    def is_whole(self) -> bool:
        """Whether ``whole_ns`` is about the listed time of the step."""
        return self.whole_ns >= WHOLE * (self.context.step_s or 0.0) * 1e9

    @property
    def whole_words(self) -> str:
        """Words for what ``whole_ns`` measures: this traced step; a usual step, if tracing made this one longer; or the ops."""
        if self.is_whole:
            return "the step"
        if self.around != (0, 0, 0) and LIKE_THE_STEP * self.whole_ns <= longest_median_s(self.context) * 1e9:
            return "a usual step"
        return "the step" if self.around.before_ns + self.around.after_ns else "the time from the step's first op to its last"

    @property
    def whole_of_shares(self) -> str:
        """A sentence that says of which time the shares are, if that time is notably shorter than the step; else ""."""
        if self.is_whole:
            return ""
        is_by_ops = self.around.before_ns + self.around.after_ns == 0
        what = "from its first op to its last" if is_by_ops else "of a step without what tracing may add"
        return f" Shares of the step are of the {duration(self.whole_ns)} {what}."

    @cached_property
    def usual_ns(self) -> Float64 | None:
        """[names] the median time of each op in several traces of the run; with few traces, its longest time in the other ones.
        0: the op is not among the longest ops of these traces. None: the run has no other traces."""
        times = self.times
        if times is None or len(times.work_ns) < 2:
            return None
        return self._by_name(times.keys, times.median_ns if self.has_enough_traces else times.longest_in_other_traces_ns)

    @property
    def has_enough_traces(self) -> bool:
        """Whether enough traces of the run are known to tell the usual time of an op."""
        return self.times is not None and len(self.times.work_ns) >= MIN_TRACES

    @cached_property
    def shortest_ns(self) -> Float64 | None:
        """[names] the shortest time of each op, which other work disturbed least; None: the run has no other traces."""
        times = self.times
        if times is None or len(times.work_ns) < 2:
            return None
        return self._by_name(times.keys, times.shortest_ns)

    @cached_property
    def executions_ratio(self) -> Float64:
        """[names] how many times as often an op ran in this step as in the trace of the run in which it ran least often: 1 or
        more. A native loop may take more turns than usual."""
        result = np.ones(len(self.trace.names))
        if self.times is not None and len(self.times.keys):
            counts = np.where(self.times.count > 0, self.times.count, np.iinfo(np.int64).max).min(axis=1)
            fewest = self._by_name(self.times.keys, counts.astype(np.float64))
            executions = np.bincount(self.work.name, minlength=len(self.trace.names))
            np.divide(executions, fewest, out=result, where=fewest > 0)
        return np.asarray(np.maximum(result, 1.0))

    def _by_name(self, keys: Sequence[str], values: Float64) -> Float64:
        """Return [names] the values of the keys; 0 for other names."""
        value_of = dict(zip(keys, np.nan_to_num(values).tolist()))
        names = np.flatnonzero(np.bincount(self.work.name, minlength=len(self.trace.names)))
        result = np.zeros(len(self.trace.names))
        result[names] = [value_of.get(name, 0.0) for name in self.trace.names.texts(names)]
        return result

    @cached_property
    def arithmetic(self) -> Arithmetic | None:
        """The FLOPs and bytes of each op; None: not available."""
        return self.load_arithmetic() if self.load_arithmetic else None

    @cached_property
    def process_nodes(self) -> Bool:
        """[n] the counted nodes of the process."""
        return physical_devices.members(self.trace, self.process)

    @cached_property
    def python_ops(self) -> Bool:
        """[n] the executions of Python functions."""
        return self.trace.op_types_where(PYTHON_OPS.__contains__)[self.trace.op]

    @cached_property
    def python_functions(self) -> Bool:
        """[n] the executions of Python functions in the process, without the functions of tf.data."""
        return self.process_nodes & self.python_ops & ~self.stages.ops

    @cached_property
    def stages(self) -> Stages:
        """The stages of tf.data; none without a profile."""
        return Stages.of(self.trace)

    @cached_property
    def waits_for_input(self) -> Bool:
        """[n] the input ops of the process, and the outermost stages of tf.data that they wait for."""
        ops = self.process_nodes & (self.trace.kind == NodeKind.INPUT) & ~self.python_functions & ~self.stages.members
        selected: Bool = ops | mask(self.trace, self.stages.waited_for)
        return selected

    @cached_property
    def calls(self) -> list[FunctionCall]:
        """The calls of compiled functions from Python."""
        return self.host.function_calls() if self.host is not None else []

    @cached_property
    def called(self) -> Cover:
        """The time from the beginning of the step's call to its end."""
        return Cover.span(-self.around.before_ns, self.ns + self.around.after_ns)

    @cached_property
    def gaps(self) -> list[Gaps]:
        """The gaps of the GPUs that run kernels and whose launches have times."""
        gpus = [group for group in self.activities.groups if group.kind is DeviceKind.GPU]
        gaps_by_gpu = [gaps_of(self.trace, group, self.has_steps) for group in gpus]
        return [gaps for gaps in gaps_by_gpu if gaps is not None]

    @property
    def has_steps(self) -> bool:
        """Whether the trace is one step: False for a profile that marks no steps."""
        return self.host is None or self.host.marks_steps

    @cached_property
    def judged_time(self) -> Cover:
        """The time that is judged: the step; for a profile without steps, the times from each GPU's first kernel to its last."""
        if self.has_steps or not self.gaps:
            return self.called
        return reduce(lambda a, b: a | b, (gaps.span for gaps in self.gaps))

    def whole_of(self, gaps: Gaps) -> int:
        """Return the time that a GPU's gaps are shares of: the step; without steps, from its first kernel to its last."""
        return self.whole_ns if self.has_steps else max(gaps.span.length, 1)

    def of_whole(self, gaps: Gaps) -> str:
        """Say of which time a GPU's gaps are shares: "" for a step; without steps, " of the 3 s in which it works"."""
        return "" if self.has_steps else f" of the {duration(gaps.span.length)} in which it works"

    @cached_property
    def functions_without_ops(self) -> Bool:
        """[n] executions of functions, some compiled by XLA, without recorded ops: each is one node for the whole function."""
        return self.functions & ~self.functions_with_ops

    @cached_property
    def functions_with_ops(self) -> Bool:
        """[n] executions of functions with recorded ops: the executions only wait for these ops."""
        calls, n = np.flatnonzero(self.functions), self.trace.n
        computes = (self.trace.kind == NodeKind.COMPUTE) | (self.trace.kind == NodeKind.CONTROL)
        ops = np.flatnonzero(self.process_nodes & computes & ~self.functions)
        ops = ops[np.argsort(self.trace.start[ops], kind="stable")]
        if not len(calls) or not len(ops):
            return np.zeros(n, bool)
        start = self.trace.start[ops]
        spent = np.concatenate([[0], np.cumsum(self.trace.end[ops] - start)])
        low, high = np.searchsorted(start, self.trace.start[calls]), np.searchsorted(start, self.trace.end[calls])
        lengths = self.trace.end[calls] - self.trace.start[calls]
        return mask(self.trace, calls[(high - low >= CONTAINED_OPS) | (spent[high] - spent[low] >= CONTAINED_SHARE * lengths)])

    @cached_property
    def functions(self) -> Bool:
        """[n] executions of functions, some compiled by XLA, with or without recorded ops."""
        selected: Bool = self.process_nodes & self.trace.op_types_where(_FUNCTION_OPS.fullmatch)[self.trace.op]
        return selected

    @cached_property
    def shows_xla(self) -> bool:
        """Whether the trace shows the work of XLA on the CPU."""
        return any(device.name.startswith(XLA_HOST) for device in self.trace.devices)

    @cached_property
    def host(self) -> HostEvents | None:
        """The events of a profile's host; None if the trace is not a profile or has no host."""
        return HostEvents.of(self.trace)

    @cached_property
    def computing(self) -> Work:
        """The computing executions of the process."""
        computes: Bool = self.process_nodes & (self.trace.kind == NodeKind.COMPUTE)
        computes &= ~(self.functions if self.shows_xla else self.functions_with_ops)
        return self.work.only(computes[self.work.node])

    def longest_op(self, times_ns: Float64 | None = None) -> Bool:
        """Return [n] the executions of the op (one name) with the most self time in the process; all False if nothing computes.
        ``times_ns``: [computing] times to use in place of the self times."""
        work = self.computing
        if not len(work.node):
            return np.zeros(self.trace.n, bool)
        total = np.bincount(work.name, work.self_ns if times_ns is None else times_ns)
        return mask(self.trace, work.node[work.name == int(np.argmax(total))])

    @cached_property
    def links(self) -> list[Link]:
        return link_table(self.trace, self.transfers, self.activities)

    @cached_property
    def transfers(self) -> Transfers:
        return transfers(self.trace)

    def longest(self, selected: Bool) -> list[int]:
        """Return the longest nodes, for evidence."""
        nodes = np.flatnonzero(selected)
        duration = self.trace.end[nodes] - self.trace.start[nodes]
        return [int(n) for n in nodes[largest_first(duration, MAX_EVIDENCE)]]

    def cover(self, selected: Bool) -> Cover:
        return Cover.of(self.trace.start[selected], self.trace.end[selected])

    def op(self, node: int) -> str:
        return str(self.trace.ops[self.trace.op[node]])

    def name(self, node: int) -> str:
        return str(self.trace.names[self.trace.name[node]])

    def describe(self, node: int) -> str:
        """Describe an op, or the transfer of a tensor."""
        received = parse_received(self.trace.labels[self.trace.label[node]])
        if received:
            return f"the transfer of {received.tensor}"
        name, op = self.name(node), self.op(node)
        return f"{name} ({op})" if op not in ("", name) else name

    def title(self, device: str) -> str:
        return spoken(next((d.title for d in self.trace.devices if d.name == device), device))


def spoken(title: str) -> str:
    """Return a device's name for texts: "the CPU" for "CPU:0", with its process in a job; a GPU keeps its number."""
    cpu = _CPU.fullmatch(title)
    if not cpu:
        return title
    return "the CPU" + (f" of {cpu['process']}" if cpu["process"] else "") + (" (XLA)" if cpu["xla"] else "")


def sentence(code: str, text: str, advice: str, share: float, numbers: dict[str, float], evidence: Evidence) -> Sentence:
    share = min(max(share, 0.0), 1.0)
    return {"code": code, "text": text, "advice": advice, "share": share, "numbers": numbers, "evidence": evidence}


def mask(trace: Trace, nodes: Int64) -> Bool:
    """Return [n] True for these nodes."""
    selected = np.zeros(trace.n, bool)
    selected[nodes] = True
    return selected


def evidence_of(step: Step, nodes: list[int], tab: str) -> Evidence:
    """Return the nodes with the time and lane of the first one, the longest."""
    first = nodes[0]
    return {
        "nodes": nodes,
        "start_ns": float(step.trace.start[first]),
        "end_ns": float(step.trace.end[first]),
        "lane": step.trace.devices[step.trace.device[first]].name,
        "tab": tab,  # type: ignore[typeddict-item]
    }
