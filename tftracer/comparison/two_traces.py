"""Two traces beside each other, judged by the other traces of their runs: what the page's comparison says.

Two steps of the same code differ, too. So an op counts as changed only if the runs' other traces tell the difference from chance,
all ops and the step looked at together (odd_ops.py), and if it is larger than the floors. Traces of one run that were recorded in
a row count once, as their mean: what the machine did meanwhile is in all of them. With fewer than four traces of a side,
or beside the two of one run, nothing is claimed: two traces alone show by how much these steps differ, and no more. An op that a
trace does not have took no time in it, unless the trace has more ops than its table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tftracer.comparison import odd_ops
from tftracer.comparison.ops import LEAST_SESSIONS
from tftracer.comparison.order import in_turns
from tftracer.comparison.two_traces_words import NOT_IN_TURNS, place_among, summary, too_few_traces, used_traces
from tftracer.contract.encoding import unpacked
from tftracer.trace.analyses.compare import compared_ops, matters
from tftracer.trace.analyses.over_traces import OpTotals

if TYPE_CHECKING:
    from tftracer.contract.trace import Comparison
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.answers import Answers
    from tftracer.trace.arrays.types import Float64

MAX_ROWS = 10_000
#: Traces that are looked at beside the two, of each of two runs and of one run: the newest.
MOST_TRACES, MOST_OF_ONE_RUN = 8, odd_ops.LEAST_OTHERS


class Beside(NamedTuple):
    """What is known beside the two traces. ``a``, ``b``: of each other trace of their runs, ``Answers.op_totals``, encoded."""

    a: Sequence[bytes] = ()
    b: Sequence[bytes] = ()  # of the same run: empty
    same_run: bool = True
    older: int = 0  # traces that are not looked at
    unreadable: int = 0
    step_times: str = ""
    #: When the traces of each side were recorded, in epoch seconds, the one that is compared first; empty: each counts by itself.
    started_a: Sequence[float] = ()
    started_b: Sequence[float] = ()


class Judged(NamedTuple):
    """``shown``: whether the traces tell the difference from chance."""

    shown: bool
    statistic: str


class Judge(NamedTuple):
    """``step``, ``ops``: of the step, and of each op by its key. ``untold``: why nothing can be told; "" where it can."""

    step: Judged
    ops: dict[str, Judged]
    untold: str


def compare(a: Answers, b: Answers, beside: Beside, by: By = "type") -> Comparison:
    """Ops of two traces (times in ns), the largest difference first, whether the runs' traces show it or not."""
    ops_a, ops_b = a.ops(by), b.ops(by)
    rows = compared_ops(ops_a, ops_b)
    judge = _judge(a, b, beside, by, [row["key"] for row in rows])
    for row in rows:
        judged = judge.ops[row["key"]]
        row["statistic"] = judged.statistic
        if judged.shown and row["status"] in ("same", "unknown"):
            row["status"] = "changed"
    rows.sort(key=lambda row: (-abs(row["delta_ns"]), row["key"]))
    budget_a, budget_b = a.budget(), b.budget()
    step_a, step_b = budget_a["step_ns"], budget_b["step_ns"]
    shown = {key for key, judged in judge.ops.items() if judged.shown}
    return {
        "by": by,
        "rows": rows[:MAX_ROWS],
        "left_out": max(0, len(rows) - MAX_ROWS) + ops_a["left_out"] + ops_b["left_out"],
        "step_a_ns": step_a,
        "step_b_ns": step_b,
        "budget_a": budget_a["whole"],
        "budget_b": budget_b["whole"],
        "summary": summary(rows, shown, step_a, step_b, judge.step.shown, judge.untold),
        "traces": used_traces(len(beside.a), len(beside.b), beside.same_run, beside.older, beside.unreadable),
        "step_times": beside.step_times,
    }


def _judge(a: Answers, b: Answers, beside: Beside, by: By, keys: list[str]) -> Judge:
    own = [OpTotals(**each.op_totals(by)) for each in (a, b)]
    others_a, others_b = ([OpTotals(**unpacked(body)) for body in side] for side in (beside.a, beside.b))
    if beside.same_run:
        return _of_one_run(keys, own, others_a)
    return _of_two_runs(keys, [own[0], *others_a], [own[1], *others_b], [*beside.started_a], [*beside.started_b])


def _of_two_runs(
    keys: list[str], a: Sequence[OpTotals], b: Sequence[OpTotals], started_a: list[float], started_b: list[float]
) -> Judge:
    """Traces of one run against those of another."""
    times, first, traces = _times(keys, [*a, *b]), len(a), f"{len(a)} and {len(b)} traces"
    if min(len(a), len(b)) < LEAST_SESSIONS:
        few = f"{len(a)} and {len(b)}"
        untold = too_few_traces(LEAST_SESSIONS, "of each run", few)
        return _judged(keys, [Judged(False, f"too few traces: {few}")] * len(times), untold)
    differs_by = times[:, len(a)] - times[:, 0]  # the two that are compared
    if (len(started_a), len(started_b)) == (len(a), len(b)):
        times, first = in_turns(times, started_a, started_b)
        if min(first, len(times[0]) - first) < LEAST_SESSIONS:
            return _judged(keys, [Judged(False, "not traced in turns")] * len(times), NOT_IN_TURNS)
    differs = odd_ops.changed(times, first)
    before, after = (np.median(side, axis=1).tolist() for side in (times[:, :first], times[:, first:]))
    rows = zip(differs.tolist(), differs_by.tolist(), before, after)
    return _judged(keys, [_changed(*row, traces) for row in rows], "")


def _changed(is_shown: bool, differs_by: float, before: float, after: float, traces: str) -> Judged:
    """Of one op. ``differs_by``: of the two traces; ``before``, ``after``: the medians of all of their runs."""
    if math.isnan(before) or math.isnan(after):
        return Judged(False, "a trace has too many ops")
    if not is_shown:
        return Judged(False, "chance may explain it")
    if differs_by * (after - before) < 0:
        usually = "longer" if after > before else "shorter"
        return Judged(False, f"the other way than usual: {usually} in B, more than chance in {traces}")
    return Judged(matters(before, after), f"more than chance in {traces}")


def _of_one_run(keys: list[str], own: Sequence[OpTotals], others: Sequence[OpTotals]) -> Judge:
    """Two traces of a run against its others."""
    times, number = _times(keys, [*own, *others]), len(others)
    judged = [
        Judged(False, "a trace has too many ops")
        if any(map(math.isnan, row[:2]))
        else Judged(any(is_odd) and matters(*row[:2]), place_among(row[:2], row[2:]))
        for is_odd, row in zip(odd_ops.odd(times).tolist(), times.tolist())
    ]
    least = odd_ops.LEAST_OTHERS
    return _judged(keys, judged, "" if number >= least else too_few_traces(least, "of the run beside these two", f"{number}"))


def _judged(keys: list[str], judged: Sequence[Judged], untold: str) -> Judge:
    """The last is of the step."""
    return Judge(judged[-1], dict(zip(keys, judged)), untold)


def _times(keys: list[str], traces: Sequence[OpTotals]) -> Float64:
    """[keys and the step, traces] ns, NaN where it is not known."""
    columns = [[np.nan if (time := trace.time_of(key)) is None else time for key in keys] + [trace.step_ns] for trace in traces]
    return np.array(columns, np.float64).T
