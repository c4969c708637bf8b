"""Many ops so short that TensorFlow's cost of running them exceeds their own work."""

from __future__ import annotations

import re

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.op_kinds import ELEMENTWISE
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.xplane_reader import TURN
from tftracer.trace.model import DeviceKind, NodeKind, Trace
from tftracer.trace.units import counted, duration, percent
from tftracer.trace.verdict.scopes import scope_sentence
from tftracer.trace.verdict.step import GAP_NS, Step, sentence
from tftracer.trace.verdict.time_around_ops import LIKE_THE_STEP, longest_median_s
from tftracer.trace.verdict.undelayed_op_times import ns_limited_to

TINY_NS = 20_000  # running an op costs the executor about as much as an op of this length
TINY_COUNT = 1_000  # minimal number of tiny ops
TINY_SHARE = 0.50  # minimal part of the step that goes into tiny ops and into the gaps between ops
#: An execution of STRAY_NS or longer was interrupted if its type does no work (Enter), if it takes longer than a usual step, or
#: if its type has at most STRAY_SHARE as many such executions as tiny ones.
STRAY_NS, STRAY_SHARE = 1_000_000, 0.005
ACCOUNTED_SHARE = 0.20  # minimal part of the step (or of a shorter usual step) that remains without interrupted ops and long gaps
STRAY_PART = 0.1  # minimal part of the step that interrupted ops and long gaps take, for the share without them to be given
ELEMENTWISE_SHARE = 0.50  # minimal part of the tiny ops that is elementwise, for XLA to be named
#: An op that runs this often in a step is in a loop, if the step has one. Minimal part of the tiny ops for the loop to be named.
MIN_TURNS, LOOP_SHARE = 10, 0.50
FEEDS_SHARE = 0.20  # minimal part of the tiny ops, for feeds and fetches to be named

#: Ops for a fed value and for a fetched one.
_ARG, _RETVAL = "_Arg", "_Retval"
_NEXT_TURN = re.compile("(Ref)?NextIteration")
_TURN = re.compile(rf"{TURN}$")

FEWER_TENSORS = "Feed and fetch fewer tensors: stack them in the graph (tf.stack), or fetch them more rarely. "
FEWER_OPS = (
    "Every op costs TensorFlow time besides its own work, up to some microseconds. Use fewer and larger ops: vectorize loops "
    "over small tensors, stack variables, use fused layers or optimizers, or let XLA compile them into one ({xla})."
)


def tiny_ops(step: Step) -> Sentence | None:
    return _recorded_tiny_ops(step) or _left_out_tiny_ops(step)


def _recorded_tiny_ops(step: Step) -> Sentence | None:
    """Name many recorded tiny ops and the gaps between ops."""
    trace, work = step.trace, step.work
    runs = (trace.kind == NodeKind.COMPUTE) | (trace.kind == NodeKind.CONTROL)
    ops = step.process_nodes & runs & ~physical_devices.on_stream(trace) & ~step.functions_with_ops
    tiny = ops & (trace.end - trace.start < TINY_NS)
    count = int(tiny.sum())
    if count < TINY_COUNT:
        return None
    is_tiny = tiny[work.node]
    spent = float(work.self_ns[is_tiny].sum())
    gap_lengths = _gaps(step)
    between = float(np.minimum(gap_lengths, GAP_NS).sum())  # at most GAP_NS of each gap
    usual_ns = min(step.ns, longest_median_s(step.context) * 1e9 or step.ns)
    # The time of interrupted ops, and of long gaps beyond GAP_NS.
    interrupted = _interrupted(trace, ops, tiny, usual_ns)
    stray = float(work.self_ns[interrupted[work.node]].sum() + gap_lengths.sum()) - between
    delays = work.self_ns - ns_limited_to(step, step.shortest_ns, work)
    stray += float(delays[~interrupted[work.node] & ~is_tiny].sum())
    share = (spent + between) / max(step.ns - stray, 1.0)
    if share < TINY_SHARE or step.ns - stray < ACCOUNTED_SHARE * usual_ns:
        return None
    mean = float((trace.end - trace.start)[tiny].mean())
    counts = np.bincount(trace.op[tiny])
    commonest = int(np.argmax(counts))
    step_share = (spent + between) / step.whole_ns
    span_words = " of the time from its first op to its last," if step_share < LIKE_THE_STEP * (spent + between) / step.ns else ""
    whole = f"{duration(spent + between)} ({percent(step_share)}) of the step"
    if stray > STRAY_PART * step.ns:
        of_what = span_words or " of the step"
        whole = (
            f"{percent(share)}{of_what} without a few ops and gaps of unusual length, which take {duration(stray)}: "
            f"{duration(spent + between)}, {percent(step_share)} of the whole step"
        )
    tensors = _fed_and_fetched(step, tiny)
    return sentence(
        "tiny_ops",
        f"{count:,} ops of {duration(mean)} on average, and the gaps between ops, take {whole}; the most frequent is "
        f"{trace.ops[commonest]} ({int(counts.max()):,} times)."
        f"{scope_sentence(work, trace, is_tiny)}{_loop(step, tiny)}{_elementwise(step, tiny)}{tensors}",
        FEWER_TENSORS * bool(tensors) + _fewer_ops(step),
        step_share,
        {"ops": float(count), "mean_ns": mean, "ops_ns": spent, "between_ns": between, "left_out_ns": stray},
        {"nodes": step.longest(tiny & (trace.op == commonest)), "tab": "ops", "op": trace.ops[commonest]},
    )


def _loop(step: Step, tiny: Bool) -> str:
    """Say that most of the tiny ops run in a loop of the graph, and about how many turns it takes; "" if they do not."""
    trace = step.trace
    turns = np.bincount(trace.name[tiny])  # executions of each op
    repeated = turns[turns >= MIN_TURNS]
    has_loop = int(trace.op_types_where(_NEXT_TURN.fullmatch)[trace.op[tiny]].sum()) >= MIN_TURNS
    if not has_loop or repeated.sum() < LOOP_SHARE * tiny.sum():
        return ""
    count = int(np.median(repeated))
    return f" Most of them run in loops of the graph (tf.while_loop, tf.map_fn, an RNN), of about {count:,} turns."


def _elementwise(step: Step, tiny: Bool) -> str:
    """Say how many of the tiny ops are elementwise, which XLA fuses; "" if fewer than half are."""
    count = int(step.trace.op_types_where(ELEMENTWISE.fullmatch)[step.trace.op[tiny]].sum())
    are_most = count >= ELEMENTWISE_SHARE * tiny.sum()
    return f" {count:,} are elementwise: XLA, which is off for them, fuses such ops." if are_most else ""


def _fed_and_fetched(step: Step, tiny: Bool) -> str:
    """Say how many tensors are fed and fetched, if their ops are many of the tiny ones."""
    counts = dict(zip(step.trace.ops, np.bincount(step.trace.op[tiny], minlength=len(step.trace.ops)).tolist()))
    fed, fetched = counts.get(_ARG, 0), counts.get(_RETVAL, 0)
    if fed + fetched < FEEDS_SHARE * tiny.sum():
        return ""
    tensors = [counted(number, f"{what} tensor") for number, what in ((fed, "fed"), (fetched, "fetched")) if number]
    return f" {' and '.join(tensors)} have ops of their own."


def _gaps(step: Step) -> Int64:
    """Return the lengths of the gaps in which nothing runs."""
    busy = step.activity.busy
    if step.functions_with_ops.any():  # a call of a function also lasts while none of its ops runs
        busy = step.cover(step.process_nodes & ~step.functions_with_ops & ~step.stages.members)
    gaps = Cover.span(0, step.ns) - busy
    return gaps.end - gaps.start


def _interrupted(trace: Trace, ops: Bool, tiny: Bool, usual_ns: float) -> Bool:
    """Return [n] the few long executions of op types that are nearly always tiny, those of ops without work of their own, and
    those that take longer than a whole usual step: the system interrupted them."""
    lengths = trace.end - trace.start
    long = ops & (lengths >= STRAY_NS)
    types = len(trace.ops)
    rare = np.bincount(trace.op[long], minlength=types) <= STRAY_SHARE * np.bincount(trace.op[tiny], minlength=types)
    result: Bool = long & (rare[trace.op] | (trace.kind == NodeKind.CONTROL) | (lengths > usual_ns))
    return result


def _left_out_tiny_ops(step: Step) -> Sentence | None:
    """Tell that a profile leaves out many tiny ops as cheap. It has only the turns of the executor in which they run."""
    if step.host is None:
        return None
    turns = step.host.rows(_TURN)
    unnamed = (step.host.cover(turns) & step.called) - step.activity.busy
    share = unnamed.length / step.whole_ns
    if len(turns) < TINY_COUNT or unnamed.length >= TINY_NS * len(turns) or share < TINY_SHARE:
        return None
    return sentence(
        "tiny_ops",
        f"TensorFlow's executor runs ops for {duration(unnamed.length)} ({percent(share)}) that the profile does not name, in "
        f"{len(turns):,} turns: it leaves out ops that TensorFlow has found to be cheap. So the time goes into many tiny ops.",
        _fewer_ops(step),
        share,
        {"turns": float(len(turns)), "unnamed_ns": float(unnamed.length)},
        {"nodes": []},
    )


def _fewer_ops(step: Step) -> str:
    xla = "jit_compile=True" if step.calls else "tf.config.optimizer.set_jit" if step.is_session else "a tf.function"
    on_cpu = all(group.kind is DeviceKind.CPU for group in step.activities.groups)
    return FEWER_OPS.format(xla=xla) + " On a CPU, loops may take longer with XLA: measure it." * on_cpu
