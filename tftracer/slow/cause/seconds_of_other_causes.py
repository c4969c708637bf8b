"""Finds what else took much of a slow turn, if it has more than one cause, so that each cause gets its own seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tftracer.contract.stalls import StallCause
from tftracer.slow.cause.blamed_code import (
    functions_of_busiest_thread,
    own_python,
    owner_line,
    shared_line,
    stacks_outside,
    waits_for_input,
    without_measured,
)
from tftracer.slow.cause.cause_inside_step import HALF, LITTLE
from tftracer.slow.cause.main_cause import CLOCKED_KINDS, input_cause, measured_cause
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.cause.parts_of_turn import excess, no_cpu_s
from tftracer.slow.record.sums_by_kind import CODE_CAUSES, HOOK_CAUSES
from tftracer.slow.watch_results import Cause, FoldedStack, OtherCause, Part

#: Minimum seconds of another cause, and its minimum share of the excess.
MIN_S, MIN_SHARE = 0.03, 0.1
#: No clock tells two causes apart if both ran or both waited. Then the other cause needs at least this many samples, and they
#: must have at least this share of the excess. On a busy machine it always needs more samples, unless it is a hook or callback.
MIN_SAMPLES, MIN_SAMPLED_SHARE, MIN_SAMPLES_IF_BUSY = 2, 0.2, 3
#: The seconds that stacks show may be wrong by up to this factor. So a clock's seconds are used unless they are more than this
#: many times the seconds of the stacks.
ROUGH = 2.0
#: Minimum share of the samples that the line of other code, or of a thread without a CPU, must have.
MOST = 0.75


def other_causes(
    cause: Cause, parts: tuple[Part, ...], observed: Observed, excess_s: float, is_inside: bool
) -> tuple[OtherCause, ...]:
    """Return the other causes of a turn, each with its seconds beyond the usual, which together are less than the excess."""
    is_own = cause.kind == "machine" and (not is_inside or no_cpu_s(parts) >= HALF * excess_s)  # the training thread had no CPU
    if cause.kind == "stopped" or (cause.kind == "unknown" and cause.frame):
        return ()
    stops = [part for part in parts if part.kind == "stopped"]
    possible = [OtherCause(Cause("stopped", "", None, min(1.0, stop.seconds / excess_s)), stop.seconds) for stop in stops]
    if cause.kind != "machine":
        possible += _measured(cause, parts, observed, excess_s, is_inside)
    if not is_own:
        possible += _code(cause, parts, observed.side(is_inside), excess_s, is_inside, observed)
    others, left = [], excess_s
    for other in possible:
        if cause.kind == "machine" and other.cause.kind not in ("stopped", *HOOK_CAUSES):
            continue  # TensorFlow's threads had no CPU, so its work waited
        if is_notable(other, excess_s) and other.seconds < left:
            others.append(other)
            left -= other.seconds
    return tuple(others)


def is_notable(other: OtherCause, excess_s: float) -> bool:
    return other.seconds >= max(MIN_S, MIN_SHARE * excess_s)


def _measured(
    cause: Cause, parts: tuple[Part, ...], observed: Observed, excess_s: float, is_inside: bool
) -> Iterator[OtherCause]:
    """Yield the other causes that have a separate part.

    If the cause is a hook or callback, parts that may have passed in it are left out. If it is a Python function that TensorFlow
    calls, all parts are left out, because they may be waits for the function. If other threads always run Python, code that works
    more also waits longer for Python's lock, so such waits are left out, too.
    """
    span = observed.side(is_inside)
    explains_lock = cause.kind in CODE_CAUSES and (observed.usual_lock_wait or 0.0) >= LITTLE
    if cause.kind in ("hook", "callback"):
        measured = set(span.stacks) - set(without_measured(span.stacks, _has_other_steps(parts)))
        is_all_in_hook = all(any(frame.owner == cause.name for frame in stack.frames) for stack in measured)
        clocked = (part for part in parts if part.kind in CLOCKED_KINDS and not part.what.startswith(cause.name))
        parts = () if is_all_in_hook else tuple(clocked)
        span = replace(span, stacks=tuple(stack for stack in span.stacks if all(f.owner != cause.name for f in stack.frames)))
    for part in parts if cause.kind != "py_function" else ():
        if part.kind == cause.kind and cause.name.startswith(part.what):
            continue  # it is the cause itself
        share = min(1.0, max(0.0, excess(part) / excess_s))
        other_cause = None
        if part.kind in CLOCKED_KINDS or (part.kind == "lock" and not explains_lock):
            other_cause = measured_cause(part, span, share)
        elif part.kind == "input":
            other_cause = input_cause(observed, share, is_inside)
        elif part.kind == "py_function" and cause.kind != "lock" and not (cause.kind == "tensorflow" and share >= HALF):
            # It may have waited for the lock, too, or ran ahead of the steps while TensorFlow computed.
            function = shared_line(functions_of_busiest_thread(span.all_stacks)).frame or span.function
            other_cause = Cause("py_function", "", function, share)
        if other_cause:
            yield OtherCause(other_cause, excess(part))


def _code(
    cause: Cause, parts: tuple[Part, ...], span: Span, excess_s: float, is_inside: bool, observed: Observed
) -> Iterator[OtherCause]:
    """Yield the code of another function on the training thread, with the seconds that stacks show and clocks allow.

    A line where the thread usually is between its steps is no other cause: its samples may be of the usual time.
    """
    if cause.kind in CODE_CAUSES and cause.frame is None:
        return  # the stacks were too few to name the line of the cause, or they show several lines
    own = own_python(span.stacks) if is_inside else span.stacks
    rest = without_measured(_outside(own, cause), _has_other_steps(parts))
    rest = tuple(stack for stack in rest if not waits_for_input([stack]))
    sampled_s = sum(stack.seconds for stack in rest)
    owner, frame = owner_line(rest, sampled_s, MOST), shared_line(rest, min_share=MOST).frame
    samples = sum(stack.samples for stack in rest)
    needed = MIN_SAMPLES if owner is not None else MIN_SAMPLES_IF_BUSY  # a hook is not in a sample by chance
    if (observed.is_busy and samples < needed) or (
        owner is None and (frame is None or frame.is_library or frame in observed.usual_lines)
    ):
        return
    part_of_kind: dict[str, Part] = {part.kind: part for part in parts if part.kind in CODE_CAUSES}
    usual_s = sum(part.usual_s or 0.0 for part in part_of_kind.values())
    other_kinds: list[StallCause] = [kind for kind in CODE_CAUSES if kind in part_of_kind and kind != cause.kind]
    by_clock_s = sum(excess(part_of_kind[kind]) for kind in other_kinds)
    kind = max(other_kinds, key=lambda each: excess(part_of_kind[each]), default=cause.kind)
    if cause.kind not in ("python", "lock"):  # code that runs also waits for a CPU, and so does a thread that waits for the lock
        by_clock_s += sum(excess(part) for part in parts if part.kind == "no_cpu")
    seconds = by_clock_s if by_clock_s <= ROUGH * (sampled_s - usual_s) else sampled_s - usual_s
    if cause.kind in CODE_CAUSES and seconds < max(MIN_S, MIN_SHARE * excess_s):
        is_seen = samples >= MIN_SAMPLES and sampled_s >= MIN_SAMPLED_SHARE * excess_s
        kind, seconds = cause.kind, sampled_s - usual_s if is_seen else 0.0
    share = min(1.0, max(0.0, seconds / excess_s))
    if owner is not None:
        yield OtherCause(Cause(owner.kind, owner.name, owner.frame, share), seconds)
    else:
        yield OtherCause(Cause(kind, "", frame, share), seconds)


def _has_other_steps(parts: tuple[Part, ...]) -> bool:
    return any(part.kind in ("other_run", "retrace") for part in parts)


def _outside(stacks: Sequence[FoldedStack], cause: Cause) -> Sequence[FoldedStack]:
    """Return the stacks that do not show the code that is the cause."""
    if cause.kind in ("hook", "callback"):
        return [stack for stack in stacks if all(frame.owner != cause.name for frame in stack.frames)]
    if cause.frame is None or cause.kind not in (*CODE_CAUSES, *CLOCKED_KINDS, "py_function", "gc"):
        return stacks
    if cause.kind in CLOCKED_KINDS:  # the cause's line only calls the measured work; its function may call other code, too
        return [stack for stack in stacks if cause.frame not in stack.frames]
    return stacks_outside(stacks, cause.frame)
