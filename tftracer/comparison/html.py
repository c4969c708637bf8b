"""A comparison in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tftracer.comparison.ops import LEAST_SESSIONS, OpChange, OpChanges
from tftracer.comparison.shift import Shift
from tftracer.comparison.words import interval, outcome, sessions, title, value
from tftracer.display import markup
from tftracer.trace.analyses.compare import FLOOR_NS, FLOOR_SHARE
from tftracer.trace.units import duration

_SHOWN_OPS = 5


class Comparison(Protocol):
    """What is shown of a comparison (comparison.py)."""

    @property
    def run(self) -> str: ...

    @property
    def a(self) -> Sequence[object]: ...

    @property
    def b(self) -> Sequence[object]: ...

    @property
    def shifts(self) -> dict[str, Shift]: ...

    @property
    def ops(self) -> OpChanges: ...

    @property
    def new_findings(self) -> list[str]: ...

    @property
    def warnings(self) -> list[str]: ...


def as_html(comparison: Comparison) -> str:
    """The sentences, the values before and after, and the ops that differ most."""
    ops = comparison.ops
    changes = [change for change in ops.changes if change.separated or not ops.enough_sessions]
    return markup.block(
        comparison.run,
        markup.note(f"{sessions(len(comparison.a))} before, {sessions(len(comparison.b))} after"),
        markup.points(sentences(comparison, changes)),
        _shift_table([shift for shift in comparison.shifts.values() if shift.a or shift.b]),
        _op_table(changes[:_SHOWN_OPS]),
        markup.note(f"{len(changes) - _SHOWN_OPS:,} more ops") if len(changes) > _SHOWN_OPS else "",
        *(markup.note(f"Note: {warning}") for warning in comparison.warnings),
    )


def sentences(comparison: Comparison, changes: Sequence[OpChange]) -> list[str]:
    """The sentences that say what differs. ``changes``: the ops that differ."""
    said = [_of_step(comparison.shifts.get("step"))]
    others = (shift for metric, shift in comparison.shifts.items() if metric != "step" and shift.differs)
    said += [f"{title(shift.metric)}: {shift.shift:+.1%}, {outcome(shift)}." for shift in others]
    said.append(_of_ops(comparison.ops, len(changes)))
    for side, times in (("before", comparison.ops.only_a), ("after", comparison.ops.only_b)):
        if times:
            shown = ", ".join(f"{key} {duration(ns)}" for key, ns in list(times.items())[:_SHOWN_OPS])
            said.append(f"{len(times):,} ops only {side}: {shown}{', ...' if len(times) > _SHOWN_OPS else ''}")
    if comparison.new_findings:
        said.append(f"New findings: {', '.join(comparison.new_findings)}.")
    return said


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
