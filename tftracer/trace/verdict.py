"""What holds this step back, as a few ranked sentences, from rules with written thresholds.

Each rule looks at one cause and says nothing, or one sentence with its evidence in numbers and what to try next. ``share`` is
the part of the step that would go away, at best; sentences are ranked by it. The rules and their thresholds are described in
docs/analyses.rst; the constants here are those thresholds. Proportions are those of the busiest worker process (a parameter server's
own time is told as the reason why its workers wait), so a trace of several processes is not watered down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tftracer.trace import physical
from tftracer.trace.breakdown import Activities, Activity, activities, parts_of
from tftracer.trace.communication import Transfers, link_table, transfers
from tftracer.trace.intervals import Bool, Cover
from tftracer.trace.model import DeviceKind, Int64, NodeKind, Trace, TraceContext
from tftracer.trace.ops import Work
from tftracer.trace.ops import work as work_of
from tftracer.trace.physical import Group
from tftracer.web.messages import Evidence, Finding, Link, Sentence, Verdict

INPUT_SHARE = 0.20  # of the step in which nothing but the input pipeline runs
BETWEEN_SHARE = 0.20  # of the time from step to step that passes outside session.run
BETWEEN_S = 0.001  # and at least as long: below, it is Python's own cost of a call
COMMUNICATION_SHARE = 0.20  # of the step in which communication runs and nothing else does
COPIES_SHARE = 0.15  # of the step in which copies run and nothing else does
PYTHON_SHARE = 0.15  # of the step in which a Python function runs and nothing else does
LAUNCH_SHARE = 0.20  # of the step in which a GPU waits for launches
ONE_OP_SHARE = 0.40  # of the step in which one op runs
TINY_NS = 20_000  # an op shorter than this costs the executor about as much as itself
TINY_COUNT = 1_000
TINY_SHARE = 0.50  # of the step that goes into tiny ops and into waiting between them
IDLE_SHARE = 0.50  # of the step in which a device that has work does nothing
SWAP_SHARE = 0.10  # of the step that goes into swapping tensors or computing them again
TRACING_FACTOR = 1.5  # the traced step against the median untraced one
MAX_EVIDENCE = 50

PYTHON_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))


@dataclass(frozen=True)
class Step:
    """What the rules look at."""

    trace: Trace
    context: TraceContext
    known: Activities
    work: Work
    process: Group  # the worker that computes most
    activity: Activity  # of that process
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def ns(self) -> int:
        return max(self.trace.duration_ns, 1)

    @cached_property
    def mine(self) -> Bool:
        """[n] the counted nodes of the process."""
        return physical.members(self.trace, self.process)

    @cached_property
    def python(self) -> Bool:
        """[n] the process's Python functions."""
        is_python = np.array([op in PYTHON_OPS for op in self.trace.ops] or [False])
        return self.mine & is_python[self.trace.op]

    @cached_property
    def links(self) -> list[Link]:
        return link_table(self.trace, self.transfers, self.known)

    @cached_property
    def transfers(self) -> Transfers:
        return transfers(self.trace)

    def longest(self, chosen: Bool) -> list[int]:
        """The nodes that took longest, for evidence."""
        nodes = np.flatnonzero(chosen)
        duration = self.trace.end[nodes] - self.trace.start[nodes]
        return [int(n) for n in nodes[np.argsort(-duration, kind="stable")[:MAX_EVIDENCE]]]

    def cover(self, chosen: Bool) -> Cover:
        return Cover.of(self.trace.start[chosen], self.trace.end[chosen])

    def op(self, node: int) -> str:
        return str(self.trace.ops[self.trace.op[node]])

    def name(self, node: int) -> str:
        return str(self.trace.names[self.trace.name[node]])

    def title(self, device: str) -> str:
        return next((d.title for d in self.trace.devices if d.name == device), device)


Rule = Callable[[Step], "Sentence | None"]


def verdict(
    trace: Trace,
    context: TraceContext,
    findings: list[Finding],
    known: Activities | None = None,
    work: Work | None = None,
) -> Verdict:
    """At least one sentence; ``balanced`` if nothing stands out. What tracing itself cost comes last."""
    step = look(trace, context, known or activities(trace), work or work_of(trace))
    found = [s for s in (rule(step) for rule in RULES) if s] if trace.n else []
    ranked = sorted(found, key=lambda s: -s["share"]) or [balanced(step)]
    cost = tracing_cost(step)
    return {
        "sentences": [*ranked, cost] if cost else ranked,
        "step_ns": float(trace.duration_ns),
        "findings": findings,
    }


def look(trace: Trace, context: TraceContext, known: Activities, work: Work) -> Step:
    """Finds the process to judge: not a parameter server, if there is another; of those, the one that computes most."""
    processes = physical.processes(trace)
    workers = [p for p in processes if p.job != "ps"] or processes
    each = [(known.of_process(p), p) for p in workers]
    if not each:
        return Step(trace, context, known, work, Group("", "this process", [], "", -1, DeviceKind.CPU), known.whole)
    activity, process = max(each, key=lambda pair: pair[0].compute.length)
    return Step(trace, context, known, work, process, activity, parts_of(activity, trace.duration_ns))


def sentence(
    code: str,
    text: str,
    advice: str,
    share: float,
    numbers: dict[str, float],
    evidence: Evidence,
) -> Sentence:
    return {
        "code": code,
        "text": text,
        "advice": advice,
        "share": min(max(share, 0.0), 1.0),
        "numbers": numbers,
        "evidence": evidence,
    }


def ms(ns: float) -> str:
    """Milliseconds with three digits: `0.123 ms`, `45.6 ms`, `1,230 ms`."""
    value = ns / 1e6
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def percent(share: float) -> str:
    return f"{share * 100:.0f}%"


# ------------------------------------------------------------------------------------------------------------ the rules


def input_between_steps(step: Step) -> Sentence | None:
    between, median = step.context.between_steps_s, step.context.median_s
    inside = median if median is not None else step.trace.duration_ns / 1e9
    if between is None or between < BETWEEN_S or between + inside <= 0:
        return None
    share = between / (between + inside)
    if share < BETWEEN_SHARE:
        return None
    return sentence(
        "input_bound",
        f"Between two steps {ms(between * 1e9)} pass outside session.run, {percent(share)} of the time from step to step: the "
        "script prepares its input (feed_dict) in Python while nothing computes.",
        "Make the batches with tf.data (parallel map, prefetch) instead of feeding them, or prepare the next feed in a thread "
        "while the step runs.",
        share,
        {"between_steps_ns": between * 1e9, "step_ns": inside * 1e9},
        {"nodes": [], "start_ns": 0.0, "end_ns": 0.0},
    )


def input_inside(step: Step) -> Sentence | None:
    chosen = step.mine & (step.trace.kind == NodeKind.INPUT) & ~step.python
    waited = step.cover(chosen) - step.activity.compute - step.activity.communication - step.activity.copies
    share = waited.length / step.ns
    if share < INPUT_SHARE:
        return None
    nodes = step.longest(chosen)
    return sentence(
        "input_bound",
        f"The step waits {ms(waited.length)} ({percent(share)}) for its input, most of it in {step.name(nodes[0])} "
        f"({step.op(nodes[0])}); nothing else runs meanwhile.",
        "Give tf.data more to work with: map(num_parallel_calls=tf.data.AUTOTUNE), prefetch, cache, interleave over files; or move "
        "work from the input pipeline to where the data is written.",
        share,
        {"waited_ns": float(waited.length), "ops": float(chosen.sum())},
        _evidence(step, nodes, "budget"),
    )


def communication_bound(step: Step) -> Sentence | None:
    exposed = step.activity.communication - step.activity.compute
    share = exposed.length / step.ns
    if share < COMMUNICATION_SHARE:
        return None
    hidden = (step.activity.communication & step.activity.compute).length
    numbers = {"exposed_ns": float(exposed.length), "hidden_ns": float(hidden)}
    mine = {step.trace.devices[c].name for c in step.process.codes}
    links = [link for link in step.links if link["destination"] in mine]
    collectives = step.cover(_chosen(step.trace, step.transfers.others) & step.mine) - step.activity.compute
    if links and links[0]["waited_ns"] >= collectives.length:
        return _link_bound(step, links[0], share, numbers)
    chosen = _chosen(step.trace, step.transfers.others) & step.mine
    nodes = step.longest(chosen if chosen.any() else step.mine & (step.trace.kind == NodeKind.COMMUNICATION))
    return sentence(
        "communication_bound",
        f"The step waits {ms(exposed.length)} ({percent(share)}) for {step.op(nodes[0])} and the like, with nothing to compute "
        f"meanwhile; {ms(hidden)} more of communication are hidden under compute.",
        "Trace the same step on all ranks to see whether one of them comes late. If none does: fewer and larger messages (tensor "
        "fusion), compression to 16 bit, a faster network, or more compute for each step (larger batches).",
        share,
        numbers,
        _evidence(step, nodes, "communication"),
    )


def _link_bound(step: Step, link: Link, share: float, numbers: dict[str, float]) -> Sentence:
    trace, found = step.trace, step.transfers
    chosen = _chosen(trace, found.node[found.link == found.links.index((link["source"], link["destination"]))])
    waited = step.cover(chosen) - step.activity.compute
    source = [code for code, d in enumerate(trace.devices) if d.name == link["source"]]
    there = np.isin(trace.device, source) & trace.counted & (trace.kind != NodeKind.COMMUNICATION)
    computing = (waited & step.cover(there)).length
    numbers |= {k: float(link[k]) for k in ("waited_ns", "bytes", "messages", "mean_bandwidth")}  # type: ignore[literal-required]
    numbers["source_computing_ns"] = float(computing)
    rate = f"{link['bytes'] / 1e6:,.3g} MB at {link['mean_bandwidth'] / 1e6:,.3g} MB/s"
    text = (
        f"The step waits {ms(link['waited_ns'])} ({percent(link['waited_ns'] / step.ns)}) for tensors from "
        f"{step.title(link['source'])} ({link['messages']:,} messages, {rate}), with nothing to compute meanwhile."
    )
    if computing >= 0.5 * waited.length:
        slowest = step.longest(there)
        text += f" Most of that time the sender computes itself, longest in {step.name(slowest[0])} ({step.op(slowest[0])})."
        advice = "Make the sender's part lighter: move that op to the worker, or spread variables over more parameter servers."
    else:
        advice = (
            "Spread the variables over more parameter servers, send less (16 bit, sparse updates, fewer and larger variables), or "
            "use a faster network; look whether the sender's machine is busy with something else."
        )
    return sentence("communication_bound", text, advice, share, numbers, _evidence(step, step.longest(chosen), "communication"))


def launch_bound(step: Step) -> Sentence | None:
    gaps = [((a.launches - a.busy).length, g) for g, a in zip(step.known.groups, step.known.each) if len(a.launches)]
    gap, group = max(gaps, key=lambda pair: pair[0], default=(0, None))
    share = gap / step.ns
    if group is None or share < LAUNCH_SHARE:
        return None
    kernels = physical.members(step.trace, group) & physical.on_stream(step.trace)
    count = int(kernels.sum())
    mean = float((step.trace.end - step.trace.start)[kernels].mean()) if count else 0.0
    return sentence(
        "launch_bound",
        f"{group.title} waits {ms(gap)} ({percent(share)}) for the host to launch its next kernel: {count:,} kernels of "
        f"{mean / 1e3:.3g} µs on average are too short to keep it busy.",
        "Larger batches; XLA (tf.config.optimizer.set_jit) or fused ops, so that fewer kernels do more each; several steps in one "
        "session.run.",
        share,
        {"launch_gap_ns": float(gap), "kernels": float(count), "mean_kernel_ns": mean},
        {**_evidence(step, step.longest(step.mine & (step.trace.kind == NodeKind.LAUNCH)), "budget"), "lane": group.key},
    )


def one_op(step: Step) -> Sentence | None:
    """One op (all its executions in the step) that runs for most of it."""
    computes = step.mine & (step.trace.kind == NodeKind.COMPUTE)
    work = step.work.only(computes[step.work.node])
    if not len(work.node):
        return None
    total = np.bincount(work.name, work.self_ns)
    chosen = _chosen(step.trace, work.node[work.name == int(np.argmax(total))])
    runs = step.cover(chosen).length
    share = runs / step.ns
    if share < ONE_OP_SHARE:
        return None
    nodes = step.longest(chosen)
    turns = f" in {len(work.node[chosen[work.node]]):,} executions" if chosen.sum() > 1 else ""
    where = step.trace.devices[step.trace.device[nodes[0]]].title
    return sentence(
        "one_op",
        f"One op, {step.name(nodes[0])} ({step.op(nodes[0])}, on {where}), runs for {ms(runs)}{turns}: {percent(share)} of the step.",
        "See whether it has to be that large (shapes, precision, recomputation), whether it can be split over devices or run on "
        "a GPU, and whether anything else could run beside it.",
        share,
        {"op_ns": float(runs), "executions": float(chosen.sum())},
        {**_evidence(step, nodes, "ops"), "op": step.op(nodes[0])},
    )


def tiny_ops(step: Step) -> Sentence | None:
    """Many ops so short that running them costs more than what they do."""
    trace, work = step.trace, step.work
    ops = step.mine & ((trace.kind == NodeKind.COMPUTE) | (trace.kind == NodeKind.CONTROL)) & ~physical.on_stream(trace)
    tiny = ops & (trace.end - trace.start < TINY_NS)
    count = int(tiny.sum())
    if count < TINY_COUNT:
        return None
    spent = float(work.self_ns[tiny[work.node]].sum())
    between = step.parts["scheduling"] + step.parts["idle"]
    share = min((spent + between) / step.ns, 1.0)
    if share < TINY_SHARE or spent < between / 4:
        return None
    mean = float((trace.end - trace.start)[tiny].mean())
    codes = np.bincount(trace.op[tiny])
    most = trace.ops[int(np.argmax(codes))]
    return sentence(
        "tiny_ops",
        f"{count:,} ops of {mean / 1e3:.2g} µs on average, and the waiting between them, take {percent(share)} of the step; the most "
        f"frequent is {most} ({int(codes.max()):,} times). Running an op costs more than these do.",
        "Fewer and larger ops: vectorise instead of looping over small tensors, stack variables, use fused layers or optimizers, XLA "
        "(tf.config.optimizer.set_jit) to compile clusters into one.",
        share,
        {"ops": float(count), "mean_ns": mean, "ops_ns": spent, "between_ns": between},
        {"nodes": step.longest(tiny), "tab": "ops", "op": most},
    )


def copies(step: Step) -> Sentence | None:
    """Copies between host and device that nothing hides."""
    exposed = step.activity.copies - step.activity.compute - step.activity.communication
    share = exposed.length / step.ns
    if share < COPIES_SHARE:
        return None
    chosen = step.mine & (step.trace.kind == NodeKind.COPY)
    nodes = step.longest(chosen)
    moved = float(step.trace.bytes_moved[chosen].sum())
    return sentence(
        "copies",
        f"Copies between host and device take {ms(exposed.length)} ({percent(share)}) in which nothing computes: {len(chosen.nonzero()[0]):,}"
        f" copies, {moved / 1e6:,.3g} MB; the longest is of {step.name(nodes[0])}.",
        "Keep the data on the device: look for ops without a GPU kernel between ops that have one (log_device_placement), feed less, "
        "prefetch to the device (tf.data.experimental.prefetch_to_device).",
        share,
        {"exposed_ns": float(exposed.length), "copies": float(chosen.sum()), "bytes": moved},
        _evidence(step, nodes, "budget"),
    )


def python_function(step: Step) -> Sentence | None:
    """Data that leaves the graph for Python on the host and comes back."""
    if not step.python.any():
        return None
    alone = step.cover(step.python) - step.activity.compute - step.activity.communication
    share = alone.length / step.ns
    if share < PYTHON_SHARE:
        return None
    nodes = step.longest(step.python)
    return sentence(
        "copies",
        f"The data is copied out to Python on the host and back: {step.name(nodes[0])} ({step.op(nodes[0])}) runs for "
        f"{ms(alone.length)} ({percent(share)}) in which nothing else does.",
        "Write that function with TensorFlow ops, so that the data stays where it is and the GIL is not needed.",
        share,
        {"exposed_ns": float(alone.length), "calls": float(step.python.sum())},
        {**_evidence(step, nodes, "budget"), "op": step.op(nodes[0])},
    )


def memory_bound(step: Step) -> Sentence | None:
    """What TensorFlow's memory optimizer put in: it swaps tensors to the host, or computes them again."""
    marks = np.array([_saves_memory(name) for name in step.trace.names] or [False])
    chosen = step.mine & marks[step.trace.name]
    spent = step.cover(chosen).length
    share = spent / step.ns
    if share < SWAP_SHARE:
        return None
    nodes = step.longest(chosen)
    return sentence(
        "memory",
        f"For want of memory {ms(spent)} ({percent(share)}) go into swapping tensors to the host or computing them again, longest in "
        f"{step.name(nodes[0])}.",
        "Smaller batches, 16-bit activations, or a device with more memory; see what is alive at the peak in the memory tab.",
        share,
        {"spent_ns": float(spent), "ops": float(chosen.sum())},
        _evidence(step, nodes, "memory"),
    )


def _saves_memory(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return last.startswith(("swap_in_", "swap_out_")) or name.startswith("Recomputed/")


def idle_device(step: Step) -> Sentence | None:
    """A device with work that does nothing for most of the step, for no reason that another rule gives."""
    worst: tuple[float, Group] | None = None
    for group, activity in zip(step.known.groups, step.known.each):
        idle = parts_of(activity, step.trace.duration_ns)["idle"]
        worth = group.kind is DeviceKind.GPU or len(step.known.groups) == 1
        if worth and len(activity.busy) and (worst is None or idle > worst[0]):
            worst = (idle, group)
    if worst is None or worst[0] < IDLE_SHARE * step.ns:
        return None
    idle, group = worst
    return sentence(
        "idle_device",
        f"{group.title} does nothing for {ms(idle)} ({percent(idle / step.ns)}) of the step, and nothing in the trace says why.",
        "See on the timeline what runs before its work begins and after it ends; give it more to do at a time (larger batches), or spread "
        "the ops that run elsewhere onto it.",
        idle / step.ns,
        {"idle_ns": idle},
        {"nodes": [], "lane": group.key, "tab": "budget"},
    )


def tracing_cost(step: Step) -> Sentence | None:
    took, usual = step.context.step_s, step.context.median_s
    if not took or not usual or took < TRACING_FACTOR * usual:
        return None
    return sentence(
        "tracing_cost",
        f"Tracing itself made this step {took / usual:.2g} times as long as usual ({ms(took * 1e9)} instead of {ms(usual * 1e9)}); short ops "
        "look longer than they are.",
        "Compare shares, not times. Trace a step that is not the first of its run: the first also plans the graph.",
        1 - usual / took,
        {"traced_ns": took * 1e9, "median_ns": usual * 1e9},
        {"nodes": []},
    )


def balanced(step: Step) -> Sentence:
    if not step.trace.n:
        return sentence("balanced", "The trace holds no ops.", "See what is missing in it.", 0.0, {}, {"nodes": []})
    compute = step.parts["compute"] / step.ns
    return sentence(
        "balanced",
        f"Nothing stands out: {percent(compute)} of the step computes, no op takes more than {percent(ONE_OP_SHARE)} of it.",
        "To go faster, make the ops on the critical path cheaper (precision, shapes), or use faster or more devices.",
        compute,
        {"compute_ns": step.parts["compute"]},
        {"nodes": [], "tab": "critical-path"},
    )


def _chosen(trace: Trace, nodes: Int64) -> Bool:
    marks = np.zeros(trace.n, bool)
    marks[nodes] = True
    return marks


def _evidence(step: Step, nodes: list[int], tab: str) -> Evidence:
    """The nodes, and the stretch of the longest."""
    first = nodes[0]
    return {
        "nodes": nodes,
        "start_ns": float(step.trace.start[first]),
        "end_ns": float(step.trace.end[first]),
        "lane": step.trace.devices[step.trace.device[first]].name,
        "tab": tab,  # type: ignore[typeddict-item]
    }


RULES: tuple[Rule, ...] = (
    input_between_steps,
    input_inside,
    communication_bound,
    launch_bound,
    one_op,
    tiny_ops,
    copies,
    python_function,
    memory_bound,
    idle_device,
)
