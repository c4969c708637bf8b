"""The time that the loop waits for a step while none of the step's ops runs: before the first op and after the last."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tftracer.trace.decode.profile_function_calls import FunctionCall
from tftracer.trace.model import NodeKind, Trace, TraceContext
from tftracer.trace.units import percent

SLOW_FACTOR = 1.5  # a step that takes this many times the median untraced one is slow
#: Two times count as about equal if the shorter one is at least this part of the longer one.
LIKE_THE_STEP = 0.9
#: Minimal part of the sampled time that Python's garbage collections take, for them to be named.
GC_NAMED = 0.20
START_NS = 5_000_000  # maximal cost of tracing within a step, apart from recording its ops
#: Maximal cost of recording an op in a profile of the host; measured: 1.4 µs on TensorFlow 2.21, 2.5 µs on 2.15.
HOST_OP_NS = 5_000


class Around(NamedTuple):
    """The times before the first op and after the last, in ns; 0: unknown."""

    before_ns: int
    after_ns: int
    python_ns: int = 0  # for functions: the part in which the call is in Python


def around(trace: Trace, context: TraceContext, calls: Sequence[FunctionCall], usual_ops_ns: int) -> Around:
    """Measure the time around the ops, without the cost of tracing. ``usual_ops_ns``: the time from the first op to the last in
    untraced steps, at most.

    A profile has the beginning and end of its functions' calls; tracing makes these longer. For a session's step, its beginning
    and the median untraced step are known. TensorFlow collects the trace after the last op: that time does not count.
    Where ops wait for input, untraced steps may wait longer, because the input pipeline works ahead while TensorFlow starts a
    trace: the time after the last op is unknown then, and the time before the first op is known only if something is fed.
    In a slow step the measured time before the first op counts, except ``START_NS`` for tracing. If another traced step was fast,
    collecting a trace takes little time, so the time after the last op counts in the same way."""
    duration_ns, origin_ns = trace.duration_ns, trace.origin_ns
    if calls:
        before, after = -min(0, *(call.start for call in calls)), max(duration_ns, *(call.end for call in calls)) - duration_ns
        python = sum(call.end - call.start - call.ran_ns for call in calls if call.ran_ns)
        if context.step_s is not None:  # a profile may have calls of later steps, too
            outside = max(int(context.step_s * 1e9) - duration_ns, 0)
            before = min(before, outside)
            after = min(after, outside - before)
        untraced = _untraced(Around(before, after, python), trace, context, calls, usual_ops_ns)
        return _with_unrecorded_time(untraced, duration_ns, context)
    if context.trace_level == "profile" or context.step_s is None:
        return Around(0, 0)
    took, median_s = int(context.step_s * 1e9), _usual_s(context)
    usual = took if median_s is None else min(took, int(median_s * 1e9))
    outside = min(max(usual - usual_ops_ns, 0), max(took - duration_ns, 0))
    waits = bool((trace.kind == NodeKind.INPUT).any())
    is_after_known = median_s is not None and not waits
    is_before_known = context.began_at is not None and origin_ns > 0 and (not waits or bool(context.feeds))
    measured = max(origin_ns - int((context.began_at or 0.0) * 1e9), 0) if is_before_known else 0
    before = min(measured, outside)
    after = max(outside - before, 0) if is_after_known else 0
    if median_s is not None and context.step_s >= SLOW_FACTOR * max(median_s, _fastest_s(context)):
        before = max(before, measured - START_NS)
        if context.fastest_traced_s is not None and not _fastest_s(context):  # another traced step was fast
            after = max(after, took - duration_ns - measured - START_NS)
    return Around(before, after)


def _usual_s(context: TraceContext) -> float | None:
    """Return the time of the median untraced step until this step; None if not known.

    If another thread often had Python's lock, steps are of two kinds, so the median until an early step may be of the other kind:
    then the longest known median counts.
    """
    return longest_median_s(context) or None if context.lock_holder else context.median_s


def _with_unrecorded_time(known: Around, duration_ns: int, context: TraceContext) -> Around:
    """Add the time that TensorFlow's own record of the call lacks, if untraced steps also take longer than that record: the
    thread may wait for Python's lock or a CPU in that time, for example."""
    whole_ns = int(min(context.step_s or 0.0, context.median_s or 0.0) * 1e9)
    rest = whole_ns - duration_ns - known.before_ns - known.after_ns
    if rest <= (1 - LIKE_THE_STEP) * whole_ns:
        return known
    return Around(known.before_ns, known.after_ns + rest, known.python_ns + rest)


def _fastest_s(context: TraceContext) -> float:
    """Return the time of the fastest other traced step if all of them are slow, which tracing explains; else 0."""
    fastest, usual = context.fastest_traced_s or 0.0, context.median_s or 0.0
    return fastest if fastest >= SLOW_FACTOR * usual else 0.0


def longest_median_s(context: TraceContext) -> float:
    """Return the time of the median untraced step until this step, or of the whole run if that is longer: early steps may be
    shorter than usual ones. 0: not known."""
    return max(context.median_s or 0.0, context.run_median_s or 0.0)


def slow_around_s(context: TraceContext) -> float:
    """Return the median of the untraced steps just before and after this one if they were slow, too; else 0."""
    around_s = median(context.steps_around_s) if context.steps_around_s else 0.0
    return around_s if around_s >= SLOW_FACTOR * longest_median_s(context) > 0 else 0.0


def sampled_lines(context: TraceContext) -> str:
    """Return a sentence about the lines that took the time from step to step; "" if they were not sampled."""
    lines = context.turn_lines
    if not lines:
        return ""
    text = f" Sampled over whole steps, the time between them included: {lines}."
    if context.sampled_gc >= GC_NAMED:
        text += f" Python's garbage collections took {percent(context.sampled_gc)} of that time."
    return text


def lock_holder_text(context: TraceContext) -> str:
    """Return a sentence without a full stop about the thread that had Python's lock in slow steps of the run; "" if none had."""
    holder = context.lock_holder
    return f"In several slow steps of the run, Python's lock was held by {holder}" if holder else ""


def without_tracing_s(context: TraceContext) -> float:
    """Return the time of the step; if all traced steps are slow, at most the median untraced step's: tracing may be why."""
    took, usual, fastest = context.step_s or 0.0, context.median_s, context.fastest_traced_s
    all_are_slow = usual is not None and (fastest is None or fastest >= SLOW_FACTOR * usual)
    return min(took, usual) if all_are_slow and usual is not None else took


def _untraced(traced: Around, trace: Trace, context: TraceContext, calls: Sequence[FunctionCall], usual_ops_ns: int) -> Around:
    """Limit the times to those of the median untraced step where tracing may have made them longer. Times of a call that traced
    its function (a retrace) stay, since untraced steps have none. Ops that turn arguments into tensors run while the call is in
    Python, so their time counts both as time of ops and as time in Python."""
    took, usual, fastest = context.step_s, context.median_s, context.fastest_traced_s
    if any(call.was_traced for call in calls) or took is None or usual is None:
        return traced
    others_are_fast = fastest is not None and fastest < SLOW_FACTOR * usual
    is_long = (took - (usual if fastest is None else fastest)) * 1e9 > START_NS + HOST_OP_NS * trace.n
    if took >= SLOW_FACTOR * usual and (others_are_fast or is_long):
        return traced
    measured, limit = traced.before_ns + traced.after_ns, max(int(usual * 1e9) - usual_ops_ns, 0)
    if measured <= limit:
        return traced
    python_ns = min(traced.python_ns, max(int(usual * 1e9) - sum(call.ran_ns for call in calls), 0))
    return Around(traced.before_ns * limit // measured, traced.after_ns * limit // measured, python_ns)
