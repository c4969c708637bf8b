"""Finds the cause of a slow turn: the part of its time that exceeds its usual time most, and the line of code that took it.

No side effects. explain_slow_turn.py calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tftracer.contract.stalls import StallCause
from tftracer.slow.cause.blamed_code import (
    Line,
    caller_of_evaluation,
    caller_of_function,
    caller_of_phase,
    functions_called,
    functions_of_graphs,
    is_epoch_turn,
    is_in_fit_itself,
    own_python,
    owner_line,
    seconds_of_owner,
    shared_line,
    stacks_outside,
    waits_for_input,
    without_measured,
)
from tftracer.slow.cause.cause_inside_step import (
    HALF,
    LITTLE,
    MIN_CPU_S,
    SOME,
    had_no_cpu,
    has_enough_samples,
    step_cause,
)
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.cause.parts_of_turn import COMPUTED_MORE, KINDS_WITH_LINE, excess, no_cpu_s
from tftracer.slow.cause.waits_for_lock import (
    functions_holding_lock,
    may_have_waited_for_lock,
)
from tftracer.slow.watch.slow_turn import NO_LOOPS
from tftracer.slow.watch_results import EPOCH_TURN, UNKNOWN, Cause, FoldedStack, Frame, Part
from tftracer.trace.units import duration

#: On a busy machine, a line counts as waiting only if it waited at least this many times as long as it ran. The wait is not
#: measured: it is the time that the other measurements leave.
WAITED_MORE = 1.5
#: If the code itself ran for at least this share of the excess, it counts as the cause of garbage collections in it: it made the
#: garbage.
MADE_GARBAGE = 0.2
#: A hook is the cause of another run's steps if it is in at least this share of their samples. py-spy may misread a few samples.
OWNS_RUN = 0.75
#: A line with this share of the samples counts as having all of them: a few samples may be from outside the turn.
SURE = 0.9
#: Maximum difference of two shares that count as alike.
ALIKE = 0.15
#: If ``fit`` itself, not what it calls, waits for at least this many seconds, it frees the previous epoch's iterator (assumed).
FREES_S = 0.5
#: Kinds of parts that need no line of code, because they are measured.
MEASURED_KINDS = ("retrace", "lock", "stopped", "checkpoint")
#: Kinds of parts whose time is measured on the training thread: steps of other runs, and what tftracer's wrappers time.
CLOCKED_KINDS = ("checkpoint", "retrace", "other_run")
#: Class whose saves are timed -> the kind of cause that it is.
SAVERS: dict[str, StallCause] = {"CheckpointSaverHook": "hook", "ModelCheckpoint": "callback"}


def cause_of(parts: tuple[Part, ...], observed: Observed, excess_s: float, is_inside: bool) -> Cause:
    """Return the cause of a turn. ``parts``: its parts, the one with the largest excess first.

    A hook in which stacks show half of the excess is the cause of a slow step if no single part is: its time may be spread over
    parts of several kinds. It is also the cause if it explains more than a lack of CPUs does.
    """
    cause = _cause_of_largest_part(parts, observed, excess_s, is_inside)
    if not is_inside or cause.kind not in ("machine", "tensorflow", "unknown") or no_cpu_s(parts) >= HALF * excess_s:
        return cause
    code = own_python(observed.inside.stacks)
    owner = owner_line(code, excess_s, SOME)
    if owner is None:
        return cause
    owned_s = seconds_of_owner(code, owner.name)
    least_s = min(HALF, cause.share or 0.0) * excess_s if cause.kind == "machine" else HALF * excess_s
    if owned_s < least_s:
        return cause
    return Cause(owner.kind, owner.name, owner.frame, min(1.0, owned_s / excess_s))


def _cause_of_largest_part(parts: tuple[Part, ...], observed: Observed, excess_s: float, is_inside: bool) -> Cause:
    if not parts:
        return UNKNOWN
    by_kind = {kind: [part for part in parts if part.kind == kind] for kind in dict.fromkeys(part.kind for part in parts)}
    sums = {kind: sum(map(excess, alike)) for kind, alike in by_kind.items()}
    kind = max(sums, key=lambda each: sums[each])
    top = by_kind[kind][0]
    if kind in ("wait", "unknown") and sums.get("stopped", 0.0) >= SOME * excess_s:
        # The process may have been stopped for longer than the readings show.
        return Cause("stopped", "", None, min(1.0, sums["stopped"] / excess_s))
    kinds_with_line, measured_kinds = set(KINDS_WITH_LINE), set(MEASURED_KINDS)
    worked_more = _worked_more(parts) and not (is_inside and _is_mostly_in_tensorflow(observed.inside))
    if worked_more:
        kinds_with_line.add("no_cpu")
        if (observed.usual_lock_wait or 0.0) >= LITTLE:
            kinds_with_line.add("lock")
            measured_kinds.remove("lock")
    with_line = [part for part in parts if part.kind in kinds_with_line]
    share = min(1.0, sums[kind] / excess_s)
    if not (top.kind in measured_kinds and share >= HALF):
        evaluation = next((part for part in parts if part.kind == "other_run" and part.what.startswith(NO_LOOPS)), None)
        evaluated_s = sum(stack.seconds for stack in observed.between.stacks if caller_of_evaluation(stack) is not None)
        if evaluation and evaluated_s >= HALF * excess_s:  # all time in the evaluation counts, because it also prepares data
            besides_s = evaluated_s - evaluation.seconds
            if besides_s >= HALF * excess_s:
                evaluation = evaluation._replace(what=f"{evaluation.what}; {duration(besides_s * 1e9)} more in the same call")
            return measured_cause(evaluation, observed.between, min(1.0, evaluated_s / excess_s))
    if top.kind == "other_run" and top.usual_s and had_no_cpu(observed, excess(top)):
        return Cause("machine", "", None, share)
    if top.kind in {*measured_kinds, "other_run"} and share >= HALF:
        holder_line = shared_line(functions_holding_lock(observed.between)).frame if top.kind == "lock" else None
        if holder_line and waits_for_input(observed.between.stacks) >= HALF * observed.between.sampled_s > 0:
            return Cause("py_function", "", holder_line, share)  # it made the element that the loop waited for
        called = functions_of_graphs(observed.between.all_stacks, excess_s) if top.kind == "other_run" else []
        if called and owner_line(observed.between.stacks, observed.between.sampled_s) is None:
            return Cause("py_function", "", shared_line(called).frame, share)
        is_in_step = top.kind in ("retrace", "checkpoint") and observed.inside.sampled_s > observed.between.sampled_s
        span = observed.inside if is_in_step else observed.between
        return measured_cause(top, without_few_samples(span, excess_s), share)
    if top.kind == "input":
        return input_cause(observed, share, is_inside) if share >= HALF else UNKNOWN
    waited_share = (sums[kind] + sums.get("input", 0.0)) / excess_s
    if top.kind == "wait" and not is_inside and waited_share >= HALF and _waited_for_input(observed.between, excess_s):
        return input_cause(observed, min(1.0, waited_share), is_inside)  # it was not measured, or only in part
    if top.kind == "no_cpu" and not worked_more:
        if is_inside:
            return step_cause(parts, observed, excess_s)
        return Cause("machine", "", None, share) if share >= HALF else UNKNOWN
    if top.kind in ("tensorflow", "py_function"):
        return step_cause(parts, observed, excess_s)
    if top.kind == "gc" and share >= HALF and sums.get("python", 0.0) < MADE_GARBAGE * excess_s:
        return Cause("gc", "", _collecting_line(observed, parts, excess_s), share)
    return _line_cause(with_line, span_of_code(observed, excess_s, parts), excess_s)


def _collecting_line(observed: Observed, parts: tuple[Part, ...], excess_s: float) -> Frame | None:
    """Return the line whose objects were collected: of the script, a function that TensorFlow called, or another thread."""
    collector = observed.inside.collected_by
    if collector:
        return shared_line(stack for stack in observed.inside.other_stacks if stack.thread == collector).frame
    stacks = span_of_code(observed, excess_s, parts).stacks
    line, owner = shared_line(stacks).frame, owner_line(stacks, sum(stack.seconds for stack in stacks))
    if owner is not None and not owner.frame.is_library:
        return owner.frame._replace(owner=owner.name)
    return line or shared_line(functions_of_graphs(observed.inside.all_stacks, excess_s)).frame


def without_few_samples(span: Span, excess_s: float) -> Span:
    """Return the span without its stacks if they cover too little time to name a line."""
    return span if has_enough_samples(span, excess_s) else replace(span, stacks=())


def _worked_more(parts: tuple[Part, ...]) -> bool:
    """Return whether the thread had far more work than usual, so that longer waits are a consequence.

    On a busy machine, all work waits for a CPU most of the time, and for Python's lock if other threads always run Python. More
    work then means longer waits. But a little more work does not explain long waits.
    """
    waited_s = sum(excess(part) for part in parts if part.kind in ("no_cpu", "lock"))
    min_excess_s = max(MIN_CPU_S / 2, LITTLE * waited_s)
    return any(
        part.kind == "python" and part.seconds >= COMPUTED_MORE * (part.usual_s or 0.0) and excess(part) >= min_excess_s
        for part in parts
    )


def _is_mostly_in_tensorflow(span: Span) -> bool:
    """Return whether most samples of a step show TensorFlow's work, not code of the script."""
    return sum(stack.seconds for stack in own_python(span.stacks)) < HALF * span.sampled_s


def measured_cause(top: Part, span: Span, share: float) -> Cause:
    """Return the cause for a measured part.

    If a hook or callback runs it (such as a checkpoint), the cause is the hook or callback. Other code of the turn does not show
    who runs it.
    """
    if top.kind in CLOCKED_KINDS:
        unmeasured = without_measured(span.stacks, top.kind != "checkpoint")
        span = replace(span, stacks=tuple(stack for stack in span.stacks if stack not in unmeasured) or span.stacks)
    saver = top.what.partition(".")[0] if top.kind == "checkpoint" else ""
    if top.kind in ("other_run", "checkpoint"):
        owner = owner_line(span.stacks, span.sampled_s, OWNS_RUN if top.kind == "other_run" else HALF)
        if saver in SAVERS and (owner is None or owner.name != saver):
            return Cause(SAVERS[saver], saver, None, share)
        if owner is not None:
            return Cause(owner.kind, owner.name, owner.frame, share)
    if top.kind == "checkpoint":
        return Cause("checkpoint", top.what, shared_line(_checkpoint_callers(span.stacks)).frame, share)
    line = None
    if top.kind == "other_run":
        line = shared_line(_other_run_callers(span.stacks)).frame
    elif top.kind == "retrace":
        line = shared_line(caller for stack in span.stacks if (caller := caller_of_function(stack)) is not None).frame
    name = top.what if top.kind in ("retrace", "other_run", "lock") else ""
    return Cause(top.kind, name, line, share)  # type: ignore[arg-type]


def _checkpoint_callers(stacks: tuple[FoldedStack, ...]) -> list[FoldedStack]:
    """Return the parts of the stacks that call the save or restore."""
    return [caller for stack in stacks if (caller := caller_of_phase(stack)) is not None]


def input_cause(observed: Observed, share: float, is_inside: bool) -> Cause:
    """Return the cause of a wait for the next element: the Python function that makes the element, or the line that takes it."""
    span = observed.side(is_inside)
    called = functions_called(span.all_stacks, span.length_s)
    if sum(stack.seconds for stack in called) >= HALF * span.length_s:
        return Cause("py_function", "", shared_line(called).frame, share)
    if span.function is not None and (span.functions_s or 0.0) >= HALF * span.length_s:
        return Cause("py_function", "", span.function, share)
    return Cause("input", "", shared_line(stack for stack in span.stacks if waits_for_input([stack])).frame, share)


def _waited_for_input(span: Span, excess_s: float) -> bool:
    """Return whether a thread that did not run waited for the next element of a dataset, by its stacks."""
    waited_s = waits_for_input(span.stacks)
    return has_enough_samples(span, excess_s) and waited_s >= SURE * span.sampled_s and not may_have_waited_for_lock(span)


def _other_run_callers(stacks: tuple[FoldedStack, ...]) -> list[FoldedStack]:
    """Return the parts of the stacks that call an evaluation; if there is none, the stacks."""
    return [caller for stack in stacks if (caller := caller_of_evaluation(stack)) is not None] or list(stacks)


def _span_with_python(observed: Observed, excess_s: float) -> Span:
    """Return the span whose Python code took too long: the step if its code took half of the excess, else the time before it."""
    own = own_python(observed.inside.stacks)
    inside = replace(observed.inside, stacks=own)
    return inside if inside.sampled_s >= HALF * excess_s else observed.between


def span_of_code(observed: Observed, excess_s: float, parts: tuple[Part, ...]) -> Span:
    """Return the span with the Python code. Stacks of waits for input and of measured parts are left out if these took more
    than a little time. All stacks are left out if the rest covers too little time to name a line."""
    span, waited_s = _span_with_python(observed, excess_s), sum(excess(part) for part in parts if part.kind == "input")
    code, code_s = span.stacks, excess_s
    if waited_s >= LITTLE * excess_s:
        code, code_s = tuple(stack for stack in code if not waits_for_input([stack])), code_s - waited_s
    measured = clocked_parts(parts, excess_s)
    if measured:
        code = without_measured(code, any(part.kind != "checkpoint" for part in measured))
        code_s -= sum(map(excess, measured))
    return without_few_samples(replace(span, stacks=code), code_s)


def clocked_parts(parts: Sequence[Part], excess_s: float) -> list[Part]:
    """Return the parts that a clock measured (checkpoints, steps of other runs) and that took more than a little time."""
    return [part for part in parts if part.kind in CLOCKED_KINDS and excess(part) >= LITTLE * excess_s]


def _line_cause(parts: list[Part], span: Span, excess_s: float) -> Cause:
    """Return the cause for Python code between steps: what it mostly did, and the line with half of the samples."""
    sum_s = sum(map(excess, parts))
    if not parts or sum_s < HALF * excess_s:
        return UNKNOWN
    kind = max(("python", "wait", "disk", "unknown"), key=lambda each: _excess_of_kind(each, parts))
    if kind == "wait" and not _waited(parts, excess_s):
        # ``parts`` has waits for a CPU ("no_cpu") only if the thread had far more work than usual.
        ran = sum(excess(part) for part in parts if part.kind in ("python", "no_cpu"))
        kind = "python" if ran >= LITTLE * excess_s else "unknown"
    if kind == "wait" and may_have_waited_for_lock(span):
        kind = "unknown"
    share = min(1.0, sum_s / excess_s)
    owner = owner_line(span.stacks, span.sampled_s)
    if owner is not None:
        return Cause(owner.kind, owner.name, owner.frame, share)
    if waits_for_input(span.stacks) >= HALF * span.sampled_s > 0:
        called = functions_called(span.all_stacks, excess_s)
        if sum(stack.seconds for stack in called) >= HALF * excess_s:
            return Cause("py_function", "", shared_line(called).frame, share)
    may_free = kind == "wait" and excess_s >= FREES_S and span.watch_delay_s < HALF * excess_s
    turning = [stack for stack in span.stacks if is_epoch_turn(stack) or (may_free and is_in_fit_itself(stack))]
    if sum(stack.seconds for stack in turning) >= HALF * span.sampled_s > 0:
        return Cause("python", EPOCH_TURN, None, share)
    line, kind = _line_and_kind(span.stacks, parts, kind)
    if kind == "unknown":
        return Cause("unknown", "", line.frame, line.share) if line.frame else UNKNOWN
    return Cause(kind, "", line.frame, share)  # type: ignore[arg-type]


def _excess_of_kind(kind: str, parts: list[Part]) -> float:
    """Return the excess of parts of this kind. Waits for a CPU, if they are parts, count as "python"."""
    return sum(excess(part) for part in parts if part.kind == kind or (kind == "python" and part.kind == "no_cpu"))


def _line_and_kind(stacks: Sequence[FoldedStack], parts: list[Part], kind: str) -> tuple[Line, str]:
    """Return the line where most of the time of this kind was surely spent, and the kind.

    A turn may run at one line and wait at another. Then a line with half of the samples may be either of them. So it counts only
    if one other function has the other samples, and its share of the samples is about the share of this kind in the time. If
    it is about the share of another kind, the line has that kind.
    """
    kinds = ("python", "wait", "disk")
    seconds: dict[str, float] = {part.kind: max(0.0, _excess_of_kind(part.kind, parts)) for part in parts if part.kind in kinds}
    whole_s = max(sum(seconds.values()), 1e-9)
    share = seconds.get(kind, 0.0) / whole_s
    min_share = max(HALF, min(SURE, 2 * (1 - share))) if kind in seconds else HALF
    line = shared_line(stacks, allow_library=True)
    if line.share < min_share and line.frame and not line.frame.is_library:
        rest = stacks_outside(stacks, line.frame)
        other = shared_line(rest, min_share=SURE).frame
        difference, swapped = abs(line.share - share), abs(1 - line.share - share)
        has_rest = other is not None and not other.is_library
        if has_rest and difference <= min(ALIKE, swapped - ALIKE / 2):
            return line, kind
        other_kind = max((each for each in seconds if each != kind), key=lambda each: seconds[each], default="")
        if has_rest and abs(line.share - seconds.get(other_kind, 0.0) / whole_s) <= min(ALIKE, difference - ALIKE / 2):
            return line, other_kind
    return (line if line.share >= min_share else shared_line(stacks, allow_library=True, min_share=min_share)), kind


def _waited(parts: list[Part], excess_s: float) -> bool:
    """Return whether the code mostly waited, not counting its time without a CPU.

    Threads without a CPU make other threads wait. Code that ran whenever it had a CPU waited for nothing else.
    """
    seconds = {part.kind: excess(part) for part in parts}
    waited, ran, no_cpu = (seconds.get(kind, 0.0) for kind in ("wait", "python", "no_cpu"))
    is_most = waited >= max(HALF * (excess_s - no_cpu), SOME * excess_s)
    if no_cpu >= LITTLE * excess_s and waited < WAITED_MORE * ran:
        return False
    return is_most and not (no_cpu >= ran >= HALF * waited)
