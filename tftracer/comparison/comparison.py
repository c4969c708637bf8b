"""Two groups of sessions compared: values of their steps, ops, findings, and what else differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tftracer.comparison import html
from tftracer.comparison.measured import Measured
from tftracer.comparison.ops import LEAST_SESSIONS, OpChanges, op_changes
from tftracer.comparison.order import IN_TURNS, in_a_row
from tftracer.comparison.shift import Shift, shift_of
from tftracer.comparison.words import NOT_IN_TURNS, ONE_SESSION
from tftracer.display import markup

#: In the order in which they are shown.
METRICS = ("step", "p99", "gap", "memory", "bytes")


@dataclass(frozen=True)
class Comparison:
    """``shifts``: by metric, of those that both sides tell. ``warnings``: what weakens the comparison, in words."""

    run: str
    a: list[Measured]
    b: list[Measured]
    shifts: dict[str, Shift]
    ops: OpChanges
    new_findings: list[str]  # codes that traces of b have and none of a
    warnings: list[str]

    def op_type(self, name: str) -> Shift | None:
        """Of an op type's time in a step (``MatMul``: ``_MklMatMul``, too); None where a side has no trace with it."""
        before, after = ([sum(times) for each in side if (times := each.times_of(name))] for side in (self.a, self.b))
        return shift_of(f"op {name}", before, after)

    def _repr_html_(self) -> str:
        """In a notebook: what differs, the values of both sides, the ops that differ most."""
        shown = self.run, len(self.a), len(self.b), self.shifts, self.ops, self.new_findings, self.warnings
        return markup.shown("Comparison", lambda: html.as_html(*shown))


def compare(run: str, a: Sequence[Measured], b: Sequence[Measured]) -> Comparison:
    """``a``: before, ``b``: after; one entry a session."""
    shifts = {metric: shift for metric in METRICS if (shift := _shift(metric, a, b)) is not None}
    traced = [[each for each in side if each.traces] for side in (a, b)]
    traced_a, traced_b = ([each.ops for each in side] for side in traced)
    findings = [frozenset[str]().union(*(each.findings for each in side)) for side in (a, b)]
    new = sorted(findings[1] - findings[0]) if traced_a and traced_b else []
    return Comparison(
        run, list(a), list(b), shifts, op_changes(traced_a, traced_b, _started(*traced)), new, list(_warnings(a, b))
    )


def _shift(metric: str, a: Sequence[Measured], b: Sequence[Measured]) -> Shift | None:
    before, after = ([each.values[metric] for each in side if metric in each.values] for side in (a, b))
    blocks = None
    if len(before) == len(after) == 1 and all(metric in side[0].blocks for side in (a, b)):
        blocks = (a[0].blocks[metric], b[0].blocks[metric])
    started = _started(*([each for each in side if metric in each.values] for side in (a, b)))
    rounding = max((each.rounding.get(metric, 0.0) for each in (*a, *b)), default=0.0)
    return shift_of(metric, before, after, blocks, rounding, started)


def _started(a: Sequence[Measured], b: Sequence[Measured]) -> tuple[list[float], list[float]] | None:
    """When the sessions of both sides began; None where that is not known of all."""
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
    elif min(len(a), len(b)) < LEAST_SESSIONS:
        yield f"With fewer than {LEAST_SESSIONS} sessions a side, ops cannot be told from chance."
    started = _started(a, b)
    if min(len(a), len(b)) > 1 and started is not None and (row := in_a_row(*started)) >= IN_TURNS:
        yield NOT_IN_TURNS.format(row)
    sketched = max((each.rounding.get("p99", 0.0) for each in (*a, *b)), default=0.0)
    if sketched:
        yield (
            f"p99 is of all steps after the first tenth, each side's right to {sketched:.0%}, which is part of the interval. "
            "The other step times are of the last steps, which are kept one by one."
        )
    few = [each.name for each in (*a, *b) if each.steps < 200]
    if few:
        yield f"Fewer than 200 steps count in {', '.join(few[:5])}{', ...' if len(few) > 5 else ''}."
