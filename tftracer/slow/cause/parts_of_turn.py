"""Splits the time of a slow turn into parts that add up to its length, each with its usual length.

The times of the step, of other runs' steps and of TensorFlow's tracing are measured. The rest is Python between the steps.
Linux's counters show how the training thread spent it. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tftracer.contract.stalls import PartKind
from tftracer.slow.cause.blamed_code import in_tensorflow_s, is_in_phase, own_python
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.cause.waits_for_lock import (
    free_lock_s,
    holder_text,
    holders_of,
    lock_s,
    other_thread_text,
    starved_s,
    tracers_lock_s,
)
from tftracer.slow.watch.slow_turn import OtherSteps, Save, SlowTurn, is_no_loop, saves_inside
from tftracer.slow.watch.system_calls import WAITS
from tftracer.slow.watch.thread_times_in_span import SUMMABLE_VALUES
from tftracer.slow.watch.watched_threads import OURS
from tftracer.slow.watch_results import OF_TRACER, Part
from tftracer.trace.units import counted, duration

#: Minimum time in the kernel that is mentioned: Linux counts it in hundredths of a second.
MIN_KERNEL_S = 0.05
#: Assumed seconds of a page fault. Page faults are mentioned if with these seconds each, they took at least the share LITTLE of
#: the time in the kernel.
FAULT_S, LITTLE = 5e-6, 0.1
#: A text mentions the kernel, Python's lock, or the process's threads only if these have at least this share of the time.
HALF = 0.5
#: What the thread waited for if it stood in TensorFlow's call of a session or of an op.
FOR_TENSORFLOW = "for TensorFlow"
#: The time without a CPU in a part is mentioned if it has at least this share of the part.
NOTABLE = 0.25
#: What the thread waited for is named if the wait has at least this share of all its waiting time.
MOST = 0.75
#: Kinds of parts between steps that are explained by a line of code.
KINDS_WITH_LINE = {"python", "wait", "disk", "unknown", "gc"}
#: A turn computed more than usual if its CPU time is at least this multiple of the usual.
COMPUTED_MORE = 3.0


def parts_of(turn: SlowTurn, observed: Observed) -> tuple[Part, ...]:
    """Return the parts of a slow turn, the largest excess first."""
    length_s, inside = turn.length_ns * 1e-9, turn.inside_ns * 1e-9
    inside = min(inside, length_s)
    parts = _inside(turn, observed, inside)
    saves = [_checkpoint_part(save) for save in turn.saves if save.start_ns < turn.step_ns]
    outside_saves = [other for other in turn.other_runs if not any(_is_within(other, save) for save in turn.saves)]
    clocked_parts = saves + [_other_run_part(other, turn.other_runs, length_s) for other in outside_saves]
    queue_s = observed.between.clocked.queue_s if observed.between.clocked is not None else None
    if len(clocked_parts) == 1 and clocked_parts[0].kind == "other_run":
        part = clocked_parts[0]
        without_cpu = _without_cpu_text(queue_s or 0.0, part.seconds)
        clocked_parts = [part._replace(what="; ".join(filter(None, (part.what, without_cpu))))]
    between = length_s - inside - sum(part.seconds for part in clocked_parts)
    parts += _without_stop(clocked_parts, (observed.between.stopped_s or 0.0) - max(0.0, between))
    usual_between = max(0.0, (turn.usual_ns - turn.usual_inside_ns) * 1e-9 - sum(part.usual_s or 0.0 for part in clocked_parts))
    span = _without_clocked(observed.between, sum(part.seconds for part in saves))
    usual_input = turn.usual_input_ns * 1e-9
    parts += _between(observed, span, max(0.0, between), usual_between, turn.input_ns * 1e-9, usual_input)
    return tuple(sorted((part for part in _merged(parts) if part.seconds > 1e-6), key=excess, reverse=True))


def _without_stop(clocked_parts: list[Part], seconds: float) -> list[Part]:
    """Take a stop of the process out of the longest of the parts. ``seconds``: how much of it is longer than all other time."""
    if not clocked_parts or seconds <= 0:
        return clocked_parts
    longest = max(clocked_parts, key=lambda part: part.seconds)
    seconds = min(seconds, longest.seconds)
    parts = [part._replace(seconds=part.seconds - seconds) if part is longest else part for part in clocked_parts]
    return [*parts, Part("stopped", seconds, 0.0, "")]


def _merged(parts: list[Part]) -> list[Part]:
    """Add up the parts that have the same kind and name."""
    merged: dict[tuple[str, str], Part] = {}
    for part in parts:
        key = part.kind, part.what
        before = merged.get(key)
        if before is not None:
            usual_s = None if before.usual_s is None and part.usual_s is None else (before.usual_s or 0.0) + (part.usual_s or 0.0)
            part = part._replace(seconds=before.seconds + part.seconds, usual_s=usual_s)
        merged[key] = part
    return list(merged.values())


def excess(part: Part) -> float:
    """Return by how many seconds a part exceeds its usual length; its whole length if the usual length is unknown."""
    return part.seconds - (part.usual_s or 0.0)


def no_cpu_s(parts: Iterable[Part]) -> float:
    """Return the seconds for which the training thread was ready to run but had no CPU."""
    return sum(part.seconds for part in parts if part.kind == "no_cpu")


def share_of_code(parts: Iterable[Part], excess_s: float) -> float:
    """Return the share of the excess that parts of code have, with their time without a CPU."""
    return min(1.0, sum(excess(part) for part in parts if part.kind in {*KINDS_WITH_LINE, "no_cpu"}) / max(excess_s, 1e-9))


def _inside(turn: SlowTurn, observed: Observed, length_s: float) -> list[Part]:
    """Return the parts of the step itself."""
    usual_s = turn.usual_inside_ns * 1e-9
    if turn.retraced:
        return [Part("retrace", length_s, usual_s, turn.retraced)]
    span = observed.inside
    parts: list[Part] = []
    left = length_s
    own_code_s = sum(stack.seconds for stack in own_python(span.stacks))
    # While the thread runs its own code, the step does not wait for Python functions on other threads.
    functions_s = min(span.functions_s or 0.0, max(0.0, length_s - own_code_s))
    for kind, seconds in (("stopped", span.stopped_s), ("gc", span.gc_s), ("py_function", functions_s)):
        seconds = min(seconds or 0.0, left)
        if seconds > 0:
            what = _collector_text(span.collected_by) if kind == "gc" else ""
            parts.append(Part(_kind(kind), seconds, 0.0, what))
            left -= seconds
    saves = saves_inside(turn)
    for save in saves:
        part = _checkpoint_part(save)
        parts.append(part._replace(seconds=min(part.seconds, left)))
        left -= parts[-1].seconds
    waited = min(left, turn.inside_input_ns * 1e-9)
    if waited > 0:
        parts.append(Part("input", waited, None, ""))
        left -= waited
    lock_wait = min(left, lock_s(span)) if span.lock_wait_s is not None else 0.0
    usual_lock_s = min(usual_s, (observed.usual_lock_wait or 0.0) * usual_s) if lock_wait else 0.0
    if lock_wait:
        parts.append(Part("lock", lock_wait, usual_lock_s, holder_text(span)))
        left -= lock_wait
    tracers_s = min(left, tracers_lock_s(span))
    if tracers_s:
        parts.append(Part("lock", tracers_s, 0.0, OF_TRACER))
        left -= tracers_s
    free_lock = min(left, free_lock_s(span))
    if free_lock:
        parts.append(Part("unknown", free_lock, None, ""))
        left -= free_lock
    code = [stack for stack in own_python(span.stacks) if not (saves and is_in_phase(stack))]
    own_s = min(left, max(0.0, sum(stack.seconds for stack in code) - lock_wait - tracers_s))
    if own_s > 0:
        ran = min(own_s, span.cpu_s or 0.0)
        no_cpu = min(own_s - ran, (span.queue_s or 0.0) * own_s / left)  # as much as in the rest of the step
        rest = own_s - ran - no_cpu
        parts += [Part("python", ran, None, kernel_text(span)), Part("no_cpu", no_cpu, 0.0, "")]
        parts.append(Part("unknown", rest, None, "") if span.cpu_s is None else Part("wait", rest, None, wait_text(span, rest)))
        left -= own_s
    no_cpu = max(0.0, min(left, (span.queue_s or 0.0) - no_cpu_s(parts)))
    if no_cpu:
        parts.append(Part("no_cpu", no_cpu, 0.0, ""))
        left -= no_cpu
    return [Part("tensorflow", left, usual_s - usual_lock_s, cpus_text(span)), *parts]


def _collector_text(thread: str) -> str:
    """Return on which other thread a collection ran during a step; "" if on the training thread."""
    return f"on {OF_TRACER if thread.startswith(OURS) else f'thread {thread}'}" if thread else ""


def cpus_text(span: Span) -> str:
    if span.process_s is None or span.length_s <= 0:
        return ""
    used = f"the process used {span.process_s / span.length_s:.1f} CPUs"
    if span.process_queue_s is None or span.process_queue_s < HALF * span.length_s:
        return used
    return f"{used}; its threads had work for {(span.process_s + span.process_queue_s) / span.length_s:.1f}"


def kernel_text(span: Span) -> str:
    """Return what the thread did in the kernel if it spent most of its CPU time there; "" otherwise or if unknown."""
    kernel_s = span.kernel_s or 0.0
    if kernel_s < MIN_KERNEL_S or kernel_s < HALF * (span.cpu_s or 0.0):
        return ""
    faults = span.faults or 0.0
    # Even few faults may take long, because with huge pages each clears 2 MB. So the text always mentions new memory.
    faults_text = f" ({faults:,.0f} page faults)" if faults * FAULT_S >= LITTLE * kernel_s else ""
    return f"mostly in the kernel: for reading, writing, other system calls or new memory{faults_text}"


def wait_text(span: Span, seconds: float) -> str:
    """Return what the thread waited for, and whether it held Python's lock meanwhile; "" if unknown.

    ``seconds``: the length of the wait. What the thread waited for is known only if this wait is most of its waiting time in the
    span.
    """
    waited_s = span.length_s - sum(each or 0.0 for each in (span.cpu_s, span.queue_s, span.lock_wait_s))
    waits_for = span.waits_for if seconds >= MOST * waited_s else ""
    if waits_for == WAITS["thread"] and in_tensorflow_s(span.stacks) >= MOST * span.sampled_s > 0:
        return FOR_TENSORFLOW
    held_lock = len(holders_of(span, "training")) > HALF * len(span.holders)
    # Python's own functions release the lock before they wait for a socket or a file; those of a C library may sleep with it.
    held_lock &= span.watch_delay_s >= HALF * span.length_s > 0 and waits_for in ("", WAITS["sleep"], WAITS["thread"])
    if held_lock:
        return ", ".join(filter(None, (waits_for, "with Python's lock, so that no other thread could run Python")))
    meanwhile = other_thread_text(span) if waits_for == WAITS["thread"] else ""
    return f"{waits_for}, while {meanwhile}" if meanwhile else waits_for


def _without_cpu_text(seconds: float, whole_s: float) -> str:
    """Return for how much of a part the thread had no CPU; "" if that is not notable."""
    return f"{duration(seconds * 1e9)} of it without a CPU" if seconds >= NOTABLE * whole_s > 0 else ""


def _checkpoint_part(save: Save) -> Part:
    return Part("checkpoint", (save.end_ns - save.start_ns) * 1e-9, 0.0, save.name)


def _is_within(other: OtherSteps, save: Save) -> bool:
    """Return whether these steps of another run are part of a checkpoint."""
    return save.start_ns <= other.start_ns and other.end_ns <= save.end_ns


def _other_run_part(other: OtherSteps, other_runs: Sequence[OtherSteps], length_s: float) -> Part:
    """Return the part of another run's steps. Its text counts those of its steps that were retraced, too."""
    # The time between the steps of a Keras evaluation belongs to the evaluation, too.
    whole_ns = other.end_ns - other.start_ns if is_no_loop(other) else other.ns
    seconds = min(max(whole_ns, other.ns) * 1e-9, length_s)
    if other.retraced:
        return Part("retrace", seconds, None, f"{other.title}: {other.retraced}")
    alike = [each for each in other_runs if each.title == other.title]
    took, steps = duration(sum(each.ns for each in alike)), counted(sum(each.steps for each in alike), "step")
    return Part("other_run", seconds, other.usual_ns * 1e-9 or None, f"{other.title}: {steps}, {took}")


def _without_clocked(span: Span, saves_s: float) -> Span:
    """Return the time between steps without the times in it that a clock measures: checkpoints, and steps of other runs.

    If the counters of these times are not known, leave out only the checkpoints. Assume that of the time in which the thread was
    ready to run, it had a CPU for the same share in the checkpoints as in the whole span.
    """
    if span.cpu_s is None or span.queue_s is None:
        return span
    clocked = span.clocked
    if clocked is None:
        if not saves_s:
            return span
        cpu_share = span.cpu_s / max(span.cpu_s + span.queue_s, 1e-9)
        span = replace(span, kernel_s=None, faults=None)
        clocked = Span(saves_s, cpu_s=saves_s * cpu_share, queue_s=saves_s * (1 - cpu_share))
    left: dict[str, Any] = {name: _minus(getattr(span, name), getattr(clocked, name)) for name in SUMMABLE_VALUES}
    return replace(span, length_s=max(0.0, span.length_s - clocked.length_s), **left)


def _minus(whole: float | None, part: float | None) -> float | None:
    return None if whole is None else max(0.0, whole - (part or 0.0))


def _between(observed: Observed, span: Span, length_s: float, usual_s: float, input_s: float, usual_input_s: float) -> list[Part]:
    """Return the parts of the time between steps. ``input_s``: measured waits for the next element of a dataset."""
    if span.cpu_s is None or span.queue_s is None or span.length_s <= 0:
        gc_s = min(span.gc_s, length_s)
        input_s = min(input_s, length_s - gc_s)
        rest = Part("unknown", length_s - gc_s - input_s, max(0.0, usual_s - usual_input_s), "")
        return [Part("gc", gc_s, 0.0, ""), Part("input", input_s, usual_input_s, ""), rest]
    scale = min(1.0, length_s / span.length_s)  # the span may contain short steps of other runs
    # Of the time in which the thread was ready to run, the share in which it had a CPU. It is assumed to be the same in garbage
    # collections.
    cpu_share = span.cpu_s / max(span.cpu_s + span.queue_s, 1e-9)
    collecting_s = min(span.cpu_s, span.gc_s * cpu_share)
    usual_cpu_s = min(usual_s, (observed.usual_cpu or 0.0) * usual_s)
    usual_lock_s = min(usual_s - usual_cpu_s, (observed.usual_lock_wait or 0.0) * usual_s)
    queued_s = max(0.0, span.queue_s - (span.gc_s - collecting_s)) * scale
    without_lock_s = length_s - (span.stopped_s or 0.0) - span.gc_s - lock_s(span)
    # A wait for an element is measured by a clock, and may contain a wait for the lock. Other code has the time that stacks show.
    other_code_s = sum(stack.seconds for stack in span.stacks if not is_in_phase(stack)) if lock_s(span) else 0.0
    not_input_s = max(queued_s, other_code_s)
    computed_more = span.cpu_s * scale >= COMPUTED_MORE * usual_cpu_s  # a dataset without prefetching runs on this thread
    measured: list[tuple[str, float, str]] = [
        ("stopped", span.stopped_s or 0.0, ""),
        ("gc", span.gc_s, _without_cpu_text(min(span.gc_s - collecting_s, span.queue_s), span.gc_s)),
        # A thread that waits for the lock wakes repeatedly, and then may wait for a CPU: this also counts as waiting for the
        # lock.
        ("lock", lock_s(span), holder_text(span)),
        ("lock", tracers_lock_s(span), OF_TRACER),
        ("input", input_s - (0.0 if computed_more else min(input_s, max(0.0, input_s + not_input_s - without_lock_s))), ""),
        ("python", (span.cpu_s - collecting_s) * scale, kernel_text(span)),
        ("no_cpu", queued_s, ""),
        ("disk", (span.disk_s or 0.0) * scale, ""),
        ("unknown", free_lock_s(span) + starved_s(span), ""),
    ]
    parts, left = [], length_s
    usual_of = {"python": usual_cpu_s, "input": usual_input_s, "lock": usual_lock_s}
    for kind, seconds, what in measured:
        seconds = min(seconds, left)
        left -= seconds
        parts.append(Part(_kind(kind), seconds, usual_of.pop(kind, 0.0), what))
    return [*parts, Part("wait", left, max(0.0, usual_s - usual_cpu_s - usual_lock_s - usual_input_s), wait_text(span, left))]


def _kind(name: str) -> PartKind:
    return name  # type: ignore[return-value]
