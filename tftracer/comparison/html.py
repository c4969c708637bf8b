"""A comparison in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tftracer.comparison.ops import LEAST_SESSIONS, OpChange, OpChanges
from tftracer.comparison.shift import Shift
from tftracer.comparison.words import interval, outcome, sessions, title, value
from tftracer.display import markup
from tftracer.trace.analyses.compare import FLOOR_NS, FLOOR_SHARE
from tftracer.trace.units import duration

_SHOWN_OPS = 5


def as_html(
    run: str,
    before: int,
    after: int,
    shifts: Mapping[str, Shift],
    ops: OpChanges,
    new_findings: Sequence[str],
    warnings: Sequence[str],
) -> str:
    """The sentences, the values before and after, and the ops that differ most. ``before``, ``after``: how many sessions."""
    changes = [change for change in ops.changes if change.separated or not ops.enough_sessions]
    return markup.block(
        run,
        markup.note(f"{sessions(before)} before, {sessions(after)} after"),
        markup.points(sentences(shifts, ops, changes, new_findings)),
        _shift_table([shift for shift in shifts.values() if shift.a or shift.b]),
        _op_table(changes[:_SHOWN_OPS]),
        markup.note(f"{len(changes) - _SHOWN_OPS:,} more ops") if len(changes) > _SHOWN_OPS else "",
        *(markup.note(f"Note: {warning}") for warning in warnings),
    )


def sentences(shifts: Mapping[str, Shift], ops: OpChanges, changes: Sequence[OpChange], new_findings: Sequence[str]) -> list[str]:
    """The sentences that say what differs. ``changes``: the ops that differ."""
    texts = [_of_step(shifts.get("step"))]
    others = (shift for metric, shift in shifts.items() if metric != "step" and shift.differs)
    texts += [f"{title(shift.metric)}: {shift.shift:+.1%}, {outcome(shift)}." for shift in others]
    texts.append(_of_ops(ops, len(changes)))
    for side, times in (("before", ops.only_a), ("after", ops.only_b)):
        if times:
            shown = ", ".join(f"{key} {duration(ns)}" for key, ns in list(times.items())[:_SHOWN_OPS])
            texts.append(f"{len(times):,} ops only {side}: {shown}{', ...' if len(times) > _SHOWN_OPS else ''}")
    if new_findings:
        texts.append(f"New findings: {', '.join(new_findings)}.")
    return texts


def _of_step(shift: Shift | None) -> str:
    if shift is None:
        return "Step times cannot be compared: a side has no steps that count."
    return f"Step time: {shift.shift:+.1%} ({interval(shift)}), {outcome(shift)}."


def _of_ops(ops: OpChanges, differ: int) -> str:
    if not ops.compared and not ops.only_a and not ops.only_b:
        return "Ops are not compared: a side has no trace of this run."
    if not ops.enough_sessions:
        needed = f"It takes {LEAST_SESSIONS} sessions a side, in turns, to rule out chance for ops"
        return f"{needed}; below are those whose medians differ most."
    floors = f"more than {duration(FLOOR_NS)} and {FLOOR_SHARE:.0%}"
    return f"{differ} of {ops.compared} ops differ by more than chance explains, and by {floors}."


def _shift_table(shifts: Sequence[Shift]) -> str:
    rows = [
        (title(shift.metric), value(shift.metric, shift.a), value(shift.metric, shift.b), f"{shift.shift:+.1%}", interval(shift),
         outcome(shift))
        for shift in shifts
    ]  # fmt: skip
    return markup.table(("", " before", " after", " difference", " 95% interval", ""), rows)


def _op_table(changes: Sequence[OpChange]) -> str:
    rows = [
        (change.key, duration(change.a_ns), duration(change.b_ns), f"{change.delta_ns / change.a_ns:+.0%}" if change.a_ns else "")
        for change in changes
    ]
    return markup.table(("op", " before", " after", " difference"), rows)
