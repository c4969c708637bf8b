"""Compares two groups of sessions: values of their steps, their ops and findings, and other differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tftracer.comparison.recorded_in_turns import MAX_MEAN_IN_A_ROW, in_a_row
from tftracer.comparison.session_ops import MIN_SESSIONS, OpChange, OpChanges, op_changes
from tftracer.comparison.shift import Shift, shift_of
from tftracer.comparison.values_of_session import Measured
from tftracer.comparison.wording import FLOORS, NOT_IN_TURNS, ONE_SESSION, OPS_NOT_COMPARED, interval, outcome, title, value
from tftracer.display import markup
from tftracer.trace.units import counted, duration

#: The compared values, in display order.
METRICS = ("step", "p99", "gap", "memory", "bytes")
_SHOWN_OPS = 5


@dataclass(frozen=True)
class Comparison:
    """The result of comparing sessions before (``a``) and after (``b``) a change.

    ``shifts``: metric -> shift, without metrics that only one side has. ``warnings``: limits of the comparison, in words.
    """

    run: str
    a: list[Measured]
    b: list[Measured]
    shifts: dict[str, Shift]
    ops: OpChanges
    new_findings: list[str]  # codes of the findings that only traces of b have
    warnings: list[str]

    def op_type(self, name: str) -> Shift | None:
        """Return the shift of an op type's time per step (``MatMul`` includes ``_MklMatMul``); None if no trace of a side has it.

        The median or the shortest time over each session's traces is compared, whichever scatters less between the sessions. The
        interval is wider because of this choice.
        """
        by_shortest = (False, True) if _have_equal_trace_counts([*self.a, *self.b]) else (False,)
        shifts = [shift for each in by_shortest if (shift := self._op_shift(name, each, len(by_shortest))) is not None]
        return min(shifts, key=lambda shift: shift.spread, default=None)

    def _op_shift(self, name: str, shortest: bool, selected_from: int) -> Shift | None:
        sides = [[each for each in side if each.time_of(name, shortest) is not None] for side in (self.a, self.b)]
        before, after = ([each.time_of(name, shortest) or 0.0 for each in side] for side in sides)
        return shift_of(f"op {name}", before, after, started=_started(*sides), selected_from=selected_from)

    def _repr_html_(self) -> str:
        """Show the differences, the values of both sides, and the ops that differ most in a notebook."""
        return markup.shown("Comparison", lambda: as_html(self))


def compare(run: str, a: Sequence[Measured], b: Sequence[Measured]) -> Comparison:
    """Compare sessions before (``a``) and after (``b``) a change; one entry per session."""
    shifts = {metric: shift for metric in METRICS if (shift := _shift(metric, a, b)) is not None}
    traced = [[each for each in side if each.traces] for side in (a, b)]
    traced_a, traced_b = ([each.ops for each in side] for side in traced)
    findings = [frozenset[str]().union(*(each.findings for each in side)) for side in (a, b)]
    new = sorted(findings[1] - findings[0]) if traced_a and traced_b else []
    traced_sessions = [each for side in traced for each in side]
    shortest = [each.shortest_ops for each in traced_sessions] if _have_equal_trace_counts(traced_sessions) else []
    ops = op_changes(traced_a, traced_b, _started(*traced), shortest)
    return Comparison(run, list(a), list(b), shifts, ops, new, list(_warnings(a, b)))


def _shift(metric: str, a: Sequence[Measured], b: Sequence[Measured]) -> Shift | None:
    before, after = ([each.values[metric] for each in side if metric in each.values] for side in (a, b))
    blocks = None
    if len(before) == len(after) == 1 and all(metric in side[0].blocks for side in (a, b)):
        blocks = (a[0].blocks[metric], b[0].blocks[metric])
    started = _started(*([each for each in side if metric in each.values] for side in (a, b)))
    relative_error = max((each.relative_error.get(metric, 0.0) for each in (*a, *b)), default=0.0)
    return shift_of(metric, before, after, blocks, relative_error, started)


def _have_equal_trace_counts(sessions: Sequence[Measured]) -> bool:
    """Return whether all traced sessions have equally many traces. (With more traces, the shortest times get shorter.)"""
    return len({each.traces for each in sessions if each.traces}) == 1


def _started(a: Sequence[Measured], b: Sequence[Measured]) -> tuple[list[float], list[float]] | None:
    """Return when the sessions of both sides began (epoch seconds); None if that is not known for all sessions."""
    started = [[each.started_at for each in side if each.started_at] for side in (a, b)]
    return (started[0], started[1]) if (len(started[0]), len(started[1])) == (len(a), len(b)) else None


def _warnings(a: Sequence[Measured], b: Sequence[Measured]) -> Iterator[str]:
    for name in sorted({name for each in (*a, *b) for name in each.facts}):
        sides = [sorted({each.facts.get(name, "") for each in side} - {""}) for side in (a, b)]
        if all(sides) and sides[0] != sides[1]:
            both = " and ".join(", ".join(side) for side in sides)
            yield f"The sides differ in {name}: {both}. That alone may explain a difference."
    if len(a) == len(b) == 1:
        yield ONE_SESSION
    elif min(len(a), len(b)) < MIN_SESSIONS:
        yield f"With fewer than {MIN_SESSIONS} sessions a side, differences of ops cannot be separated from chance."
    started = _started(a, b)
    if min(len(a), len(b)) > 1 and started is not None and (row := in_a_row(*started)) >= MAX_MEAN_IN_A_ROW:
        yield NOT_IN_TURNS.format(row)
    sketched = max((each.relative_error.get("p99", 0.0) for each in (*a, *b)), default=0.0)
    if sketched:
        yield (
            f"p99 is computed from all steps except the first 10%, with an error of up to {sketched:.0%}, which the interval "
            "includes. The other step times are computed from the last steps, whose times are stored individually."
        )
    short = [each.name for each in (*a, *b) if each.steps < 200]
    if short:
        yield f"Fewer than 200 steps are compared in {', '.join(short[:5])}{', ...' if len(short) > 5 else ''}."


def as_html(compared: Comparison) -> str:
    """Return the sentences, the values before and after, and the ops that differ most, as HTML."""
    ops = compared.ops
    changes = [change for change in ops.changes if change.separated or not ops.enough_sessions]
    return markup.block(
        compared.run,
        markup.note(f"{counted(len(compared.a), 'session')} before, {counted(len(compared.b), 'session')} after"),
        markup.points(sentences(compared.shifts, ops, changes, compared.new_findings)),
        _shift_table([shift for shift in compared.shifts.values() if shift.a or shift.b]),
        _op_table(changes[:_SHOWN_OPS]),
        markup.note(f"{len(changes) - _SHOWN_OPS:,} more ops") if len(changes) > _SHOWN_OPS else "",
        *(markup.note(f"Note: {warning}") for warning in compared.warnings),
    )


def sentences(shifts: Mapping[str, Shift], ops: OpChanges, changes: Sequence[OpChange], new_findings: Sequence[str]) -> list[str]:
    """Return sentences about the differences. ``changes``: the ops that differ."""
    texts = [_step_sentence(shifts.get("step"))]
    other_shifts = (shift for metric, shift in shifts.items() if metric != "step" and shift.differs)
    texts += [f"{title(shift.metric)}: {shift.shift:+.1%}, {outcome(shift)}." for shift in other_shifts]
    texts.append(_ops_sentence(ops, len(changes)))
    for side, times in (("before", ops.only_a), ("after", ops.only_b)):
        if times:
            shown = ", ".join(f"{key} {duration(ns)}" for key, ns in list(times.items())[:_SHOWN_OPS])
            texts.append(f"{len(times):,} ops only {side}: {shown}{', ...' if len(times) > _SHOWN_OPS else ''}")
    if new_findings:
        texts.append(f"New findings: {', '.join(new_findings)}.")
    return texts


def _step_sentence(shift: Shift | None) -> str:
    if shift is None:
        return "Step times cannot be compared: a side has no steps besides the warm-up and traced steps."
    return f"Step time: {shift.shift:+.1%} ({interval(shift)}), {outcome(shift)}."


def _ops_sentence(ops: OpChanges, differing: int) -> str:
    if not ops.compared and not ops.only_a and not ops.only_b:
        return OPS_NOT_COMPARED
    if not ops.enough_sessions:
        needed = f"It takes {MIN_SESSIONS} sessions a side, in turns, to rule out chance for ops"
        return f"{needed}; below are those whose medians differ most."
    by = f"by more than chance explains, and by {FLOORS}"
    return f"{differing} of {ops.compared} ops differ {by}. {ops.smallest_difference}".rstrip()


def _shift_table(shifts: Sequence[Shift]) -> str:
    rows = [
        (title(shift.metric), value(shift.metric, shift.a), value(shift.metric, shift.b), f"{shift.shift:+.1%}", interval(shift),
         outcome(shift))
        for shift in shifts
    ]  # fmt: skip
    return markup.table(("", " before", " after", " difference", " 95% interval", ""), rows)


def _op_table(changes: Sequence[OpChange]) -> str:
    rows = [
        (
            change.key + " (shortest time in each session's traces)" * change.of_shortest,
            duration(change.a_ns),
            duration(change.b_ns),
            f"{change.delta_ns / change.a_ns:+.0%}" if change.a_ns else "",
        )
        for change in changes
    ]
    return markup.table(("op", " before", " after", " difference"), rows)
