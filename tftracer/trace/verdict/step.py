"""What the rules of the verdict judge: one trace, seen from the process that computes most."""

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
from tftracer.trace.analyses.ops import Work
from tftracer.trace.analyses.over_traces import OpsOverTraces
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.analyses.tf_data import Stages
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool, Float64, Int64
from tftracer.trace.decode.host_events import FunctionCall, HostEvents
from tftracer.trace.decode.labels import parse_received
from tftracer.trace.decode.profile_xla import XLA_HOST
from tftracer.trace.model import DeviceKind, NodeKind, Trace, TraceContext
from tftracer.trace.units import duration
from tftracer.trace.verdict.around_ops import Around, around
from tftracer.trace.verdict.gpu_gaps import Gaps, gaps_of

MAX_EVIDENCE = 50
GAP_NS = 100_000  # the executor's own work between two ops takes no longer; a longer gap has another reason
_FUNCTION_OPS = re.compile(r"__inference_.*|(Stateful)?PartitionedCall|RemoteCall|_?Xla(Launch|Run)(V2)?")
_CPU = re.compile(r"((?P<process>\S+/\d+) )?CPU(:0)?(?P<xla> XLA.*)?", re.DOTALL)
HELD_SHARE = 0.25  # of a call of a function in which recorded ops run, or
HELD_OPS = 20  # so many that begin in it: the call holds them
ONLY_HERE = "only_here"  # among a sentence's numbers: it is of this step alone
HELD_UP_NS = "held_up_ns"  # the same, of what lies in the step: how much longer than usual it took
PYTHON_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))


@dataclass(frozen=True)
class Step:
    """A trace, what is known of its step, and the process to judge."""

    trace: Trace
    context: TraceContext
    activities: Activities
    work: Work
    process: Group  # the worker that computes most
    activity: Activity  # of that process
    parts: dict[str, float] = field(default_factory=dict)
    load_arithmetic: Callable[[], Arithmetic] | None = None  # it takes reading the graph
    times: OpsOverTraces | None = None  # of ops (names) in this trace and others of the run

    @property
    def ns(self) -> int:
        return max(self.trace.duration_ns, 1)

    @property
    def is_session(self) -> bool:
        return self.trace.source != "xspace"

    @cached_property
    def around(self) -> Around:
        """What the loop waited for beside the ops."""
        return around(self.trace, self.context, self.calls)

    @property
    def whole_ns(self) -> int:
        """What the loop waited: from the call of the step to its end. What shares are of."""
        return max(self.trace.duration_ns + self.around.before_ns + self.around.after_ns, 1)

    @cached_property
    def usual_ns(self) -> Float64 | None:
        """[names] the median time of each op in this trace and others of the run; beside few others its longest in them. 0 for
        one that is not among their longest. None: there are no others."""
        times = self.times
        if times is None or len(times.work_ns) < 2:
            return None
        return self._by_name(times.keys, times.median_ns if self.has_many_others else times.longest_of_others_ns)

    @property
    def has_many_others(self) -> bool:
        """Whether so many traces of the run are known that they show what an op usually takes."""
        return self.times is not None and len(self.times.work_ns) >= MIN_TRACES

    @cached_property
    def shortest_ns(self) -> Float64 | None:
        """[names] the same of the shortest times, which other work disturbed least."""
        times = self.times
        if times is None or not self.has_many_others:
            return None
        return self._by_name(times.keys, times.shortest_ns)

    def _by_name(self, keys: Sequence[str], of_keys: Float64) -> Float64:
        """[names] 0 for those that are not among the keys."""
        place = dict(zip(keys, np.nan_to_num(of_keys).tolist()))
        names = np.flatnonzero(np.bincount(self.work.name, minlength=len(self.trace.names)))
        result = np.zeros(len(self.trace.names))
        result[names] = [place.get(name, 0.0) for name in self.trace.names.texts(names)]
        return result

    @cached_property
    def arithmetic(self) -> Arithmetic | None:
        """What each op computes and moves; None: not to be had."""
        return self.load_arithmetic() if self.load_arithmetic else None

    @cached_property
    def of_process(self) -> Bool:
        """[n] the counted nodes of the process."""
        return physical_devices.members(self.trace, self.process)

    @cached_property
    def python_ops(self) -> Bool:
        """[n] the executions of Python functions."""
        is_python = np.array([op in PYTHON_OPS for op in self.trace.ops] or [False])
        result: Bool = is_python[self.trace.op]
        return result

    @cached_property
    def python_functions(self) -> Bool:
        """[n] those in the process, but for the functions of tf.data."""
        selected: Bool = self.of_process & self.python_ops & ~self.stages.ops
        return selected

    @cached_property
    def stages(self) -> Stages:
        """The stages of tf.data; none without a profile."""
        return Stages.of(self.trace)

    @cached_property
    def waits_for_input(self) -> Bool:
        """[n] the input ops of the process, and the outermost stages of tf.data that they wait for."""
        ops = self.of_process & (self.trace.kind == NodeKind.INPUT) & ~self.python_functions & ~self.stages.members
        selected: Bool = ops | mask(self.trace, self.stages.waited_for)
        return selected

    @cached_property
    def calls(self) -> list[FunctionCall]:
        """The calls of compiled functions from Python in the trace."""
        return self.host.function_calls() if self.host is not None else []

    @cached_property
    def called(self) -> Cover:
        """The step, from the beginning of its call, before the first op, to its end."""
        return Cover.span(-self.around.before_ns, self.ns + self.around.after_ns)

    @cached_property
    def gaps(self) -> list[Gaps]:
        """The gaps of the GPUs that run kernels and whose launches have times."""
        gpus = [group for group in self.activities.groups if group.kind is DeviceKind.GPU]
        gaps_by_gpu = [gaps_of(self.trace, group, self.has_steps) for group in gpus]
        return [gaps for gaps in gaps_by_gpu if gaps is not None]

    @property
    def has_steps(self) -> bool:
        """Whether the trace is one step, and no profile that marks none."""
        return self.host is None or self.host.marks_steps

    @cached_property
    def judged(self) -> Cover:
        """The step; of a profile that marks none, the times from each GPU's first kernel to its last."""
        if self.has_steps or not self.gaps:
            return self.called
        return reduce(lambda a, b: a | b, (gaps.span for gaps in self.gaps))

    def whole_of(self, gaps: Gaps) -> int:
        """What shares of a GPU's gaps are of: the step; without steps, the time from the GPU's first kernel to its last."""
        return self.whole_ns if self.has_steps else max(gaps.span.length, 1)

    def of_whole(self, gaps: Gaps) -> str:
        return "" if self.has_steps else f" of the {duration(gaps.span.length)} in which it works"

    @cached_property
    def whole_functions(self) -> Bool:
        """[n] executions of functions, some compiled by XLA, of whose ops the trace shows nothing: one node for all of them."""
        return self.function_calls & ~self.calls_of_ops

    @cached_property
    def calls_of_ops(self) -> Bool:
        """[n] executions of functions whose ops are recorded, too: they only wait for these."""
        calls, n = np.flatnonzero(self.function_calls), self.trace.n
        computes = (self.trace.kind == NodeKind.COMPUTE) | (self.trace.kind == NodeKind.CONTROL)
        ops = np.flatnonzero(self.of_process & computes & ~self.function_calls)
        ops = ops[np.argsort(self.trace.start[ops], kind="stable")]
        if not len(calls) or not len(ops):
            return np.zeros(n, bool)
        start = self.trace.start[ops]
        taken = np.concatenate([[0], np.cumsum(self.trace.end[ops] - start)])
        low, high = np.searchsorted(start, self.trace.start[calls]), np.searchsorted(start, self.trace.end[calls])
        lengths = self.trace.end[calls] - self.trace.start[calls]
        return mask(self.trace, calls[(high - low >= HELD_OPS) | (taken[high] - taken[low] >= HELD_SHARE * lengths)])

    @cached_property
    def function_calls(self) -> Bool:
        """[n] executions of functions, some compiled by XLA: what runs in them may be recorded, too."""
        whole = np.array([_FUNCTION_OPS.fullmatch(op) is not None for op in self.trace.ops] or [False])
        selected: Bool = self.of_process & whole[self.trace.op]
        return selected

    @cached_property
    def shows_xla(self) -> bool:
        """Whether the trace has what XLA runs on the CPU."""
        return any(device.name.startswith(XLA_HOST) for device in self.trace.devices)

    @cached_property
    def host(self) -> HostEvents | None:
        """What a profile says of the host beside its ops."""
        return HostEvents.of(self.trace)

    @cached_property
    def computing(self) -> Work:
        """The work of the process that computes."""
        computes: Bool = self.of_process & (self.trace.kind == NodeKind.COMPUTE)
        computes &= ~(self.function_calls if self.shows_xla else self.calls_of_ops)
        return self.work.only(computes[self.work.node])

    def longest_op(self, times_ns: Float64 | None = None) -> Bool:
        """[n] the executions of the op (one name) that has the most self time in the process; none where nothing computes.
        ``times_ns``: [computing] what counts as its time."""
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
        """The nodes that took longest, for evidence."""
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
        """An op, or the transfer of a tensor."""
        received = parse_received(self.trace.labels[self.trace.label[node]])
        if received:
            return f"the transfer of {received.tensor}"
        name, op = self.name(node), self.op(node)
        return f"{name} ({op})" if op not in ("", name) else name

    def title(self, device: str) -> str:
        return spoken(next((d.title for d in self.trace.devices if d.name == device), device))


def spoken(title: str) -> str:
    """A device as people call it: "the CPU" of "CPU:0", with its process in a job; a GPU has its number."""
    cpu = _CPU.fullmatch(title)
    if not cpu:
        return title
    return "the CPU" + (f" of {cpu['process']}" if cpu["process"] else "") + (" (XLA)" if cpu["xla"] else "")


def sentence(code: str, text: str, advice: str, share: float, numbers: dict[str, float], evidence: Evidence) -> Sentence:
    return {
        "code": code,
        "text": text,
        "advice": advice,
        "share": min(max(share, 0.0), 1.0),
        "numbers": numbers,
        "evidence": evidence,
    }


def mask(trace: Trace, nodes: Int64) -> Bool:
    """[n] true for these nodes."""
    selected = np.zeros(trace.n, bool)
    selected[nodes] = True
    return selected


def evidence_of(step: Step, nodes: list[int], tab: str) -> Evidence:
    """The nodes, and the stretch of the longest."""
    first = nodes[0]
    return {
        "nodes": nodes,
        "start_ns": float(step.trace.start[first]),
        "end_ns": float(step.trace.end[first]),
        "lane": step.trace.devices[step.trace.device[first]].name,
        "tab": tab,  # type: ignore[typeddict-item]
    }
