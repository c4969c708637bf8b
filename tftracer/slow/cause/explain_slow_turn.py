"""Explains a slow turn: splits it into parts, and finds its cause, other causes, and what is doubtful. No side effects."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tftracer.slow.cause.blamed_code import (
    EVALUATIONS,
    FIT,
    below_loop,
    is_in_callback,
    is_in_phase,
    is_owned,
    line_of_script,
    owner_line,
    seconds_of_owner,
    shared_line,
    within_tensorflow,
)
from tftracer.slow.cause.cause_inside_step import HALF, SOME
from tftracer.slow.cause.main_cause import (
    CLOCKED_KINDS,
    cause_of,
    clocked_parts,
    without_few_samples,
)
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.cause.parts_of_turn import excess, parts_of, share_of_code
from tftracer.slow.cause.seconds_of_other_causes import MOST, is_notable, other_causes
from tftracer.slow.cause.why_unknown import why_unknown
from tftracer.slow.record.sums_by_kind import HOOK_CAUSES
from tftracer.slow.watch.slow_turn import SlowTurn, is_no_loop
from tftracer.slow.watch_results import Cause, Frame, OtherCause, Part

#: Causes that are reported even if most of the excess is not explained: their time is measured, or stacks show it.
SURE_KINDS = (*CLOCKED_KINDS, *HOOK_CAUSES, "lock", "input", "py_function", "stopped")
#: A single sample may show the usual time if that is at least this share of the span.
HIT_BY_CHANCE = 0.05


class Explained(NamedTuple):
    parts: tuple[Part, ...]
    cause: Cause
    others: tuple[OtherCause, ...]
    doubt: str  # why the cause, or its line, is not known; "" if both are known
    place: Frame | None  # where the thread was while it had no CPU, if that is the cause; None: not known


def explain(turn: SlowTurn, observed: Observed) -> Explained:
    """Split a slow turn into parts and find its causes."""
    methods = _methods(turn)
    between, inside = (_below_loop(span, methods) for span in (observed.between, observed.inside))
    if turn.run.title.partition(":")[0] in (FIT, *EVALUATIONS):  # Keras calls callbacks only between two steps
        inside = replace(inside, stacks=tuple(stack for stack in inside.stacks if not is_in_callback(stack)))
    if not turn.run.has_python:
        inside = replace(inside, stacks=within_tensorflow(inside.stacks))
    if observed.is_busy:
        between, inside = _without_single_sample(between), _without_single_sample(inside)
    between = _without_usual_sample(between, observed.usual_lines, (turn.usual_ns - turn.usual_inside_ns) * 1e-9)
    observed = replace(observed, between=between, inside=inside)
    parts = parts_of(turn, observed)
    excess_s = max(1e-9, (turn.length_ns - turn.usual_ns) * 1e-9)
    cause = cause_of(parts, observed, excess_s, turn.is_inside)
    if cause.kind == "tensorflow" and turn.run.has_python:  # in an eager loop, lines of the script call single ops
        line = shared_line(without_few_samples(observed.inside, excess_s).stacks).frame
        cause = cause._replace(frame=None if line is None or line.is_library else line)
    span = observed.side(turn.is_inside)
    if observed.is_busy and cause.kind in HOOK_CAUSES and span.is_single_sample and not is_in_phase(span.stacks[0]):
        cause = cause._replace(frame=None)
    others = other_causes(cause, parts, observed, excess_s, turn.is_inside)
    if cause.kind == "unknown" and sum(other.seconds for other in others) >= HALF * excess_s:
        cause, others = _largest_first(others)  # together they explain the excess, although none does alone
    elif cause.kind == "unknown":  # parts that a clock measured, or that stacks show, are known nevertheless
        others = tuple(other for other in others if other.cause.kind in SURE_KINDS and other.seconds >= SOME * excess_s)
    elif others:
        main = OtherCause(cause, excess_s - sum(other.seconds for other in others))
        cause, others = _largest_first((main, *others) if is_notable(main, excess_s) else others)
    if cause.kind in HOOK_CAUSES:
        cause = cause._replace(share=_share_with_clocked_parts(cause, parts, excess_s, others))
        among_hooks = _share_among_hooks(cause, span)
        if cause.share is not None and not others and among_hooks < 1:
            cause = cause._replace(share=share_of_code(parts, excess_s) * among_hooks)
    place = _place_without_cpu(observed) if cause.kind == "machine" and not turn.is_inside else None
    return Explained(parts, cause, others, why_unknown(cause, parts, observed, turn), place)


def _share_with_clocked_parts(
    cause: Cause, parts: tuple[Part, ...], excess_s: float, others: tuple[OtherCause, ...]
) -> float | None:
    """Return the share of a hook or callback, including the parts in it that a clock measured: evaluations, checkpoints.

    If there are other causes, only parts whose text begins with its name are added, and the share leaves room for the others.
    """
    own = [part for part in clocked_parts(parts, excess_s) if not others or part.what.startswith(cause.name)]
    max_share = 1 - sum(other.seconds for other in others) / excess_s
    return cause.share if cause.share is None else min(max_share, cause.share + sum(map(excess, own)) / excess_s)


def _share_among_hooks(cause: Cause, span: Span) -> float:
    """Return the share of a hook or callback in the samples of all hooks and callbacks.

    Another hook may be in the samples, but in too few of them to be a cause of its own.
    """
    owned = [stack for stack in span.stacks if is_owned(stack)]
    own_s = seconds_of_owner(owned, cause.name)
    return own_s / sum(stack.seconds for stack in owned) if own_s else 1.0


def _below_loop(span: Span, methods: tuple[str, ...]) -> Span:
    return replace(span, stacks=tuple(below_loop(stack, methods) for stack in span.stacks))


def _largest_first(causes: tuple[OtherCause, ...]) -> tuple[Cause, tuple[OtherCause, ...]]:
    """Return the cause with the most seconds, and the others."""
    first, *rest = sorted(causes, key=lambda each: -each.seconds)
    return first.cause, tuple(rest)


def _place_without_cpu(observed: Observed) -> Frame | None:
    """Return the line of the script, hook or callback where the thread was for most of the time between steps; None: unknown."""
    span = observed.between
    if span.sampled_s < HALF * span.length_s:
        return None
    owner = owner_line(span.stacks, span.sampled_s, MOST)
    line = owner.frame._replace(owner=owner.name) if owner else shared_line(span.stacks, min_share=MOST).frame
    return None if line is None or (line.is_library and not owner) else line


def _without_single_sample(span: Span) -> Span:
    """Return the span without its only sample of the training thread, unless this sample shows a hook or callback."""
    return replace(span, stacks=tuple(filter(is_owned, span.stacks))) if span.is_single_sample else span


def _without_usual_sample(span: Span, usual_lines: frozenset[Frame], usual_s: float) -> Span:
    """Return the span without one of its samples at a usual line of the time between steps.

    This sample may be of the usual time (``usual_s``), which is a part of a slow turn, too. The span is returned unchanged if
    the usual time is too short for a sample to hit it by chance, or if several samples are all at usual lines.
    """
    usual = [stack for stack in span.stacks if line_of_script(stack) in usual_lines]
    samples = sum(stack.samples for stack in usual)
    if not usual or usual_s < HIT_BY_CHANCE * span.length_s or (samples > 1 and len(usual) == len(span.stacks)):
        return span
    first = usual[0]
    reduced = first._replace(samples=first.samples - 1, seconds=first.seconds * (first.samples - 1) / first.samples)
    stacks = (reduced if stack is first else stack for stack in span.stacks)
    return replace(span, stacks=tuple(stack for stack in stacks if stack.samples))


def _methods(turn: SlowTurn) -> tuple[str, ...]:
    """Return Keras's methods that may run this loop.

    Return () if the script itself runs the loop and trains another model with ``fit`` in it. Then the line that calls ``fit``
    matters.
    """
    method = turn.run.title.partition(":")[0]
    if is_no_loop(turn.run):
        return FIT, method
    is_loop_of_script = method != FIT and any(other.title.partition(":")[0] == FIT for other in turn.other_runs)
    return () if is_loop_of_script else (FIT,)
