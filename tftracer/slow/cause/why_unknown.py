"""Says why the cause of a slow turn, or its line, is not known. No side effects."""

from __future__ import annotations

from tftracer.slow.cause.blamed_code import is_loops_own, waits_for_thread
from tftracer.slow.cause.cause_inside_step import (
    HALF,
    has_enough_samples,
    lacked_cpu,
    may_have_lacked_cpu,
    would_have_seen_python,
)
from tftracer.slow.cause.main_cause import span_of_code
from tftracer.slow.cause.observed import Observed
from tftracer.slow.cause.parts_of_turn import excess
from tftracer.slow.cause.waits_for_lock import function_may_have_waited, held_s, holder_text, may_have_waited_for_lock
from tftracer.slow.record.sums_by_kind import CODE_CAUSES
from tftracer.slow.watch.slow_turn import SlowTurn
from tftracer.slow.watch_results import Cause, Part

SHORT_S, SHORT = 0.1, "No stack was read in this time: it was over within a tenth of a second."
NO_STACK = "No stack was read in this time: it passed between two readings, or they could not be read."
NO_COUNTERS = "Linux's counters of its thread were not read close enough to tell whether it ran there, waited, or had no CPU."
NO_QUEUES = "No counters of TensorFlow's threads were read close enough to tell whether they computed, waited, or had no CPU."
PARTLY_NO_CPU = "It passed inside TensorFlow. Its threads had no CPU for a part of it; whether they also waited is not known."
COLLECTED_SOMEWHERE = "The line that made the collected objects is not known."
MAY_HAVE_LACKED_CPU = (
    "It passed inside TensorFlow while other processes used nearly all CPUs: whether its threads waited for a CPU or for "
    "something else is not known."
)
LOOPS_OWN = "For most of it the library that runs the loop ran its own code, and no line of the script."
FUNCTION_MAY_HAVE_WAITED = (
    "Other threads had Python's lock most of the time: whether a Python function in the step waited for it is not known."
)
MAY_HAVE_WAITED = "Other threads had Python's lock most of the time: whether this one waited for it is not known."
NOT_MEASURED = "Calls of Python functions by TensorFlow were not measured then: whether one took the time is not known."
TOO_FEW = "Its stacks were read in too small a part of the time to tell the line."


def why_unknown(cause: Cause, parts: tuple[Part, ...], observed: Observed, turn: SlowTurn) -> str:
    """Return why the cause, or its line, is not known; "" if both are known."""
    span = observed.side(turn.is_inside)
    if cause.kind == "gc":
        return "" if cause.frame else COLLECTED_SOMEWHERE
    if cause.kind == "wait" and span.watch_delay_s >= HALF * span.length_s:
        waits_for_other = waits_for_thread(span.stacks) >= HALF * span.sampled_s > 0  # Python's waits release the lock
        if not span.holders and span.lock_wait_s is None and not waits_for_other:
            by = "what this line calls" if cause.frame else "this one"
            return f"Python's lock was held meanwhile, by {by} or by a thread that was not seen."
        if cause.frame:  # the readings show that no other thread held it for long
            return ""
    if cause.kind == "unknown" and may_have_waited_for_lock(span):
        return MAY_HAVE_WAITED
    if cause.kind == "unknown" and cause.frame is not None:
        return observed.doubt or NO_COUNTERS
    if (
        cause.kind in ("retrace", "other_run", "tensorflow", "machine", "stopped", "lock", "input", "checkpoint")
        or cause.frame
        or cause.name
    ):
        return ""
    if observed.doubt:
        return observed.doubt
    if not span.stacks:
        return TOO_FEW if span.samples else SHORT if span.length_s <= SHORT_S else NO_STACK
    excess_s = (turn.length_ns - turn.usual_ns) * 1e-9
    if turn.is_inside and cause.kind == "unknown" and span.lock_wait_s is None and held_s(span) >= HALF * excess_s:
        by = holder_text(span) or "another thread"
        return f"Python's lock was held meanwhile by {by}: the step may have waited for it."
    if turn.is_inside and cause.kind == "unknown" and function_may_have_waited(observed):
        return FUNCTION_MAY_HAVE_WAITED
    if turn.is_inside and cause.kind == "unknown" and not would_have_seen_python(observed, excess_s):
        return TOO_FEW if observed.runs_script else NOT_MEASURED
    if not has_enough_samples(span, excess_s) or (
        cause.kind in CODE_CAUSES and not span_of_code(observed, excess_s, parts).stacks
    ):
        return TOO_FEW
    cpu_wait_s = sum(excess(part) for part in parts if part.kind == "no_cpu")
    to_explain_s = cpu_wait_s + sum(excess(part) for part in parts if part.kind == "tensorflow")
    if turn.is_inside and to_explain_s >= HALF * excess_s and may_have_lacked_cpu(observed, to_explain_s):
        return MAY_HAVE_LACKED_CPU
    if turn.is_inside and span.process_queue_s is not None and to_explain_s >= HALF * excess_s:
        return PARTLY_NO_CPU if lacked_cpu(span.process_queue_s, cpu_wait_s, to_explain_s) else NO_QUEUES
    if turn.is_inside and (span.process_s is None or span.process_queue_s is None):
        return NO_QUEUES
    if parts and cause.kind == "unknown":
        return "No single part of its time makes up half of the excess."
    if sum(stack.seconds for stack in span.stacks if is_loops_own(stack)) >= HALF * span.sampled_s:
        return LOOPS_OWN
    return "No line of code was running for half of the time."
