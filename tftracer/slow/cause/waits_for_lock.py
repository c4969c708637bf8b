"""Finds how long the training thread waited for Python's lock, and which thread held it, from what was observed."""

from __future__ import annotations

from typing import Literal

from tftracer.slow.cause.blamed_code import called_by_tensorflow, shared_line, waits_for_thread
from tftracer.slow.cause.observed import LockHolder, Observed, Span
from tftracer.slow.watch_results import FoldedStack, Frame

#: A thread counts as the holder of the lock if it held it in more than this share of the readings of the lock.
HALF = 0.5
#: Minimum number of readings that show whether a thread waited for the lock.
ENOUGH_READINGS = 4
#: Minimum share of a wait for which another thread was seen at its own code, so that it is mentioned.
MOST = 0.75
#: The tracer's threads hold the lock often but for microseconds, so one reading of that proves no long wait for them.
TRACER_READINGS = 2


def lock_s(span: Span) -> float:
    """Return the seconds in which the training thread waited while another thread, not of the tracer, held Python's lock.

    If it is not known for how long the thread waited, return ``held_s``.
    """
    return held_s(span) if span.lock_wait_s is None else span.lock_wait_s * _others_share(span)


def may_have_waited_for_lock(span: Span) -> bool:
    """Return whether other threads mostly held the lock, with too few readings to tell if the training thread waited for it."""
    return span.lock_readings is not None and span.lock_readings < ENOUGH_READINGS and _others_held(span)


def function_may_have_waited(observed: Observed) -> bool:
    """Return whether a Python function of the step may have waited for the lock, which other threads held most of the time."""
    return observed.may_call_python and _others_held(observed.inside)


def _others_held(span: Span) -> bool:
    return (span.other_holder_share or 0.0) >= HALF


def held_s(span: Span) -> float:
    """Return the seconds in which the watch's thread waited for Python's lock because a thread of the script held it, other than
    the training thread.

    0 if this is not known. The training thread may hold the lock, too, in a library call.
    """
    training_cpu_s = span.cpu_s or 0.0
    if span.holders:
        is_held_by_other = len(other_holders(span)) > HALF * len(span.holders)
    else:
        is_held_by_other = span.process_s is not None and span.process_s - training_cpu_s > HALF * span.watch_delay_s
    return max(0.0, span.watch_delay_s - training_cpu_s) if is_held_by_other else 0.0


def other_holders(span: Span) -> list[LockHolder]:
    """Return the holders of the lock except the training thread and the tracer's threads."""
    return holders_of(span, "other")


def holders_of(span: Span, whose: Literal["training", "tracer", "other"]) -> list[LockHolder]:
    return [holder for holder in span.holders if holder is not None and holder.whose == whose]


def functions_holding_lock(span: Span) -> list[FoldedStack]:
    """Return the stacks of Python functions called by TensorFlow that held the lock; [] if they did not in most of the
    readings."""
    held = [FoldedStack("", holder.stack, 1, 1.0) for holder in other_holders(span)]
    called = [cut for stack in held if (cut := called_by_tensorflow(stack)) is not None]
    return called if len(called) > HALF * len(span.holders) else []


def tracers_lock_s(span: Span) -> float:
    """Return the seconds in which the training thread waited for Python's lock while a thread of the tracer held it.

    0 if it is not known for how long the training thread waited. Time in which it ran or had no CPU does not count: few readings
    show who held the lock, and the tracer's threads hold it for long only if they have no CPU either.
    """
    others_s = (span.cpu_s or 0.0) + (span.queue_s or 0.0)
    return min((span.lock_wait_s or 0.0) * _tracers_share(span), max(0.0, span.length_s - others_s))


def starved_s(span: Span) -> float:
    """Return the seconds in which the tracer's threads held Python's lock; 0 if ``tracers_lock_s`` measures this.

    They hold it for more than microseconds only if they lose the CPU while they hold it.
    """
    return span.watch_delay_s * _tracers_share(span) if span.lock_wait_s is None else 0.0


def _tracers_share(span: Span) -> float:
    readings = len(holders_of(span, "tracer"))
    return readings / len(span.holders) if readings >= TRACER_READINGS else 0.0


def _others_share(span: Span) -> float:
    return len(other_holders(span)) / len(span.holders) if span.holders else 0.0


def free_lock_s(span: Span) -> float:
    """Return the seconds in which the training thread waited for Python's lock although no other thread surely held it.

    What it waited for is not known. If the training thread itself was seen with the lock, it had just got it.
    """
    if span.lock_wait_s is None:
        return 0.0
    return span.lock_wait_s * (1.0 - _others_share(span) - _tracers_share(span))


def holder_text(span: Span) -> str:
    """Describe the other thread that held the lock in most readings, or "several threads", and the line; "" if none held it."""
    others = other_holders(span)
    names = [holder.thread for holder in others]
    if not names:
        return ""
    name = max(names, key=names.count)
    is_one_thread = names.count(name) > HALF * len(names)
    stacks = [FoldedStack(name, holder.stack, 1, 1.0) for holder in others if holder.thread == name or not is_one_thread]
    frame = shared_line(stack for stack in stacks if stack.frames).frame
    where = f", in {place_text(frame)}" if frame else ""
    return f"{'several threads' if not is_one_thread else f'thread {name}' if name else 'another thread'}{where}"


def place_text(frame: Frame) -> str:
    """Return "load() (train.py:31)"."""
    return f"{frame.function}() ({frame.file.rpartition('/')[2]}:{frame.line})"


def other_thread_text(span: Span) -> str:
    """Return "thread saver was at save() (train.py:31)" for the only other thread that did not wait for a thread itself.

    The training thread may have waited for it. Return "" if there is no such thread, or if there are several.
    """
    threads: dict[str, list[FoldedStack]] = {}
    for stack in span.other_stacks:
        if not waits_for_thread([stack]):
            threads.setdefault(stack.thread, []).append(stack)
    least_s = MOST * span.sampled_s
    busy = {name: stacks for name, stacks in threads.items() if sum(stack.seconds for stack in stacks) >= least_s > 0}
    if len(busy) != 1:
        return ""
    ((name, stacks),) = busy.items()
    frame = shared_line(stacks).frame
    if frame is None or frame.is_library:
        return ""
    has_name = not name.removeprefix("thread ").isdigit()  # a thread that ended within a second has only a number
    return f"{f'thread {name}' if has_name else 'another thread'} was at {place_text(frame)}"
