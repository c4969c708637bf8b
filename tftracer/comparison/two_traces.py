"""Compares two traces with the help of the other traces of their runs, for the page.

Two steps of the same code differ, too. So an op counts as changed only if the difference is larger than FLOOR_NS and FLOOR_SHARE
(odd_ops.py), and the other traces of the runs show that it is not chance. One test covers all ops and the step (odd_ops.py).
Traces of one run with no trace of the other run recorded between them count once, as their mean, because the machine's state
affects all of them. With too few other traces, no change is claimed: two traces alone only show by how much these two steps
differ. An op that is missing in a trace took no time in it; but if the trace's table was cut, the op's time is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tftracer.comparison import odd_ops
from tftracer.comparison.odd_ops import matters
from tftracer.comparison.recorded_in_turns import mean_of_each_turn
from tftracer.comparison.session_ops import MIN_SESSIONS
from tftracer.comparison.wording import left_out
from tftracer.contract.encoding import unpacked
from tftracer.trace.analyses.over_traces import OpTotals
from tftracer.trace.units import counted, duration, percent

if TYPE_CHECKING:
    from tftracer.contract.trace import ComparedOp, Comparison, OpRow, OpStatistics, OpStatus
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.answers import Answers
    from tftracer.trace.arrays.types import Float64


MAX_ROWS = 10_000
#: Maximum number of other traces, the newest ones: for each of two runs, and in all if both traces are of one run.
MAX_TRACES, MAX_OF_ONE_RUN = 8, odd_ops.MIN_OTHERS


class OtherTotals(NamedTuple):
    """The other traces of the two runs. ``a``, ``b``: the encoded ``Answers.op_totals`` of each."""

    a: Sequence[bytes] = ()
    b: Sequence[bytes] = ()  # empty if both traces are of one run
    same_run: bool = True
    older: int = 0  # number of traces that are not used
    unreadable: int = 0  # number of traces that cannot be read
    step_times: str = ""  # sentences about the step times of the two runs
    #: When the traces of each side were recorded, in epoch seconds; the compared trace is the first. Empty if not known: then no
    #: traces are averaged.
    started_a: Sequence[float] = ()
    started_b: Sequence[float] = ()


class Result(NamedTuple):
    """The result for one op or the step. ``is_changed``: whether the traces show that the difference is not chance."""

    is_changed: bool
    statistic: str


class Results(NamedTuple):
    """The result for the step, and for each op by its key. ``why_no_claim``: why no change can be claimed, or ""."""

    step: Result
    ops: dict[str, Result]
    why_no_claim: str


def compare(a: Answers, b: Answers, others: OtherTotals, by: By = "type") -> Comparison:
    """Compare the ops of two traces (times in ns); largest difference first, significant or not."""
    ops_a, ops_b = a.ops(by), b.ops(by)
    rows = compared_ops(ops_a, ops_b)
    results = _compare_totals(a, b, others, by, [row["key"] for row in rows])
    for row in rows:
        result = results.ops[row["key"]]
        row["statistic"] = result.statistic
        if result.is_changed and row["status"] in ("same", "unknown"):
            row["status"] = "changed"
    rows.sort(key=lambda row: (-abs(row["delta_ns"]), row["key"]))
    budget_a, budget_b = a.budget(), b.budget()
    step_a, step_b = budget_a["step_ns"], budget_b["step_ns"]
    changed = {key for key, result in results.ops.items() if result.is_changed}
    return {
        "by": by,
        "rows": rows[:MAX_ROWS],
        "left_out": max(0, len(rows) - MAX_ROWS) + ops_a["left_out"] + ops_b["left_out"],
        "step_a_ns": step_a,
        "step_b_ns": step_b,
        "budget_a": budget_a["whole"],
        "budget_b": budget_b["whole"],
        "summary": summary(rows, changed, step_a, step_b, results.step.is_changed, results.why_no_claim),
        "traces": used_traces(len(others.a), len(others.b), others.same_run, others.older, others.unreadable),
        "step_times": others.step_times,
    }


def compared_ops(a: OpStatistics, b: OpStatistics) -> list[ComparedOp]:
    """Return every op of either trace, in no particular order; times in ns.

    A difference that matters has the status ``unknown``, because it may be chance.
    """
    before = {row["key"]: row for row in a["rows"]}
    after = {row["key"]: row for row in b["rows"]}
    return [compared(key, before.get(key), after.get(key)) for key in {**before, **after}]


def compared(key: str, a: OpRow | None, b: OpRow | None) -> ComparedOp:
    total_a, total_b = (a["total_ns"] if a else 0.0), (b["total_ns"] if b else 0.0)
    either = a or b
    return {
        "key": key,
        "op": either["op"] if either else "",
        "status": status(a is not None, b is not None, total_a, total_b),
        "statistic": "",
        "count_a": a["count"] if a else 0,
        "count_b": b["count"] if b else 0,
        "total_a_ns": total_a,
        "total_b_ns": total_b,
        "delta_ns": total_b - total_a,
        "share_a": a["share"] if a else 0.0,
        "share_b": b["share"] if b else 0.0,
        "node_a": a["node"] if a else -1,
        "node_b": b["node"] if b else -1,
    }


def status(in_a: bool, in_b: bool, total_a: float, total_b: float) -> OpStatus:
    if not in_a:
        return "appeared"
    if not in_b:
        return "vanished"
    return "unknown" if matters(total_a, total_b) else "same"


def _compare_totals(a: Answers, b: Answers, others: OtherTotals, by: By, keys: list[str]) -> Results:
    selected = [OpTotals(**each.op_totals(by)) for each in (a, b)]
    others_a, others_b = ([OpTotals(**unpacked(body)) for body in side] for side in (others.a, others.b))
    if others.same_run:
        return _of_one_run(keys, selected, others_a)
    return _of_two_runs(keys, [selected[0], *others_a], [selected[1], *others_b], others.started_a, others.started_b)


def _of_two_runs(
    keys: list[str], a: Sequence[OpTotals], b: Sequence[OpTotals], started_a: Sequence[float], started_b: Sequence[float]
) -> Results:
    """Compare traces of one run with those of another."""
    times, first, traces = _times(keys, [*a, *b]), len(a), f"{len(a)} and {len(b)} traces"
    if min(len(a), len(b)) < MIN_SESSIONS:
        counts = f"{len(a)} and {len(b)}"
        why_no_claim = too_few_traces(MIN_SESSIONS, "of each run", counts)
        return _results(keys, [Result(False, f"too few traces: {counts}")] * len(times), why_no_claim)
    differs_by = times[:, len(a)] - times[:, 0]  # difference of the two compared traces
    if (len(started_a), len(started_b)) == (len(a), len(b)):
        times, first = mean_of_each_turn(times, started_a, started_b)
        if min(first, len(times[0]) - first) < MIN_SESSIONS:
            return _results(keys, [Result(False, "not traced in turns")] * len(times), NOT_IN_TURNS)
    differs, smallest = odd_ops.changed(times, first)
    before, after = (np.median(side, axis=1).tolist() for side in (times[:, :first], times[:, first:]))
    rows = zip(differs.tolist(), smallest.tolist(), differs_by.tolist(), before, after)
    return _results(keys, [_result(*row, traces) for row in rows], "")


def _result(is_changed: bool, smallest: float, differs_by: float, before: float, after: float, traces: str) -> Result:
    """Return the result of one op.

    ``smallest``: the smallest difference that would count as a change. ``differs_by``: the difference of the two traces.
    ``before``, ``after``: the medians over all traces of their runs.
    """
    if math.isnan(before) or math.isnan(after):
        return Result(False, "a trace has too many ops")
    if not is_changed:
        if not matters(before, after) and not matters(before, before + differs_by):
            return Result(False, "too small to matter")
        if before <= 0 or smallest == math.inf:
            return Result(False, CHANCE)
        return Result(False, f"{CHANCE}, as it may explain any difference below {percent(smallest / before)}")
    if differs_by * (after - before) < 0:
        usually = "longer" if after > before else "shorter"
        return Result(False, f"these two differ the other way: usually B takes {usually}, by more than chance in {traces}")
    return Result(matters(before, after), f"more than chance in {traces}")


def _of_one_run(keys: list[str], selected: Sequence[OpTotals], others: Sequence[OpTotals]) -> Results:
    """Compare two traces of a run with its other traces."""
    times, needed = _times(keys, [*selected, *others]), odd_ops.MIN_OTHERS
    results = [
        Result(False, "a trace has too many ops")
        if any(map(math.isnan, row[:2]))
        else Result(any(is_odd) and matters(*row[:2]), place_among(row[:2], row[2:]))
        for is_odd, row in zip(odd_ops.odd(times).tolist(), times.tolist())
    ]
    is_enough = len(others) >= needed
    return _results(keys, results, "" if is_enough else too_few_traces(needed, "of the run beside these two", f"{len(others)}"))


def _results(keys: list[str], results: Sequence[Result], why_no_claim: str) -> Results:
    """Combine the results; the last one is that of the step."""
    return Results(results[-1], dict(zip(keys, results)), why_no_claim)


def _times(keys: list[str], traces: Sequence[OpTotals]) -> Float64:
    """Return [keys and the step, traces] ns, NaN: not known."""
    columns = [[np.nan if (time := trace.time_of(key)) is None else time for key in keys] + [trace.step_ns] for trace in traces]
    return np.array(columns, np.float64).T


CHANCE = "chance may explain it"
NOT_IN_TURNS = (
    "The two runs were not traced in turns: whatever the machine did meanwhile looks like a change, so none is claimed. "
    f"To find out, trace the runs in turns, {MIN_SESSIONS} times each, or compare sessions (tftracer compare)."
)


def summary(
    rows: Sequence[ComparedOp],
    changed: AbstractSet[str],
    step_a_ns: float,
    step_b_ns: float,
    step_changed: bool,
    why_no_claim: str,
) -> str:
    """Return sentences about the step's difference, the op with the largest difference, and whether they are significant.

    ``rows``: largest difference first. ``changed``: keys of the ops that changed significantly. ``step_changed``: whether the
    step did. ``why_no_claim``: why no change can be claimed, or "".
    """
    delta = step_b_ns - step_a_ns
    if matters(step_a_ns, step_b_ns):
        word = "longer" if delta > 0 else "shorter"
        both = f"{duration(step_a_ns)} to {duration(step_b_ns)}, from first op to last"
        text = f"The second step is {duration(abs(delta))} {word} ({both})"
        significance = "" if why_no_claim else ", more than chance explains" if step_changed else ", which chance may explain"
        text += f"{significance}."
    else:
        text = f"The two steps take about as long: {duration(step_a_ns)} and {duration(step_b_ns)}."
    differing = [row for row in rows if matters(row["total_a_ns"], row["total_b_ns"])]
    if differing:
        text += f" The largest difference of an op: {_op_change(differing[0], differing[0]['key'] in changed)}"
        significant = next((row for row in differing if row["key"] in changed), None)
        if significant is not None and significant is not differing[0]:
            text += f" The largest that chance does not explain: {_op_change(significant, True)}"
    elif step_changed and matters(step_a_ns, step_b_ns):
        text += " No op differs that much: look at waiting and gaps in the budget."
    return f"{text} {why_no_claim}".rstrip()


def too_few_traces(needed: int, whose: str, number: str) -> str:
    return f"Two traces cannot tell a change from chance. That takes {needed} traces {whose}; there are {number}."


def place_among(two: Sequence[float], others: Sequence[float]) -> str:
    """Return a text about the rank of the two traces' times among the times of all traces; NaN: not known."""
    if not others:
        return "no other trace"
    known = [time for time in (*two, *others) if not math.isnan(time)]
    ends = [(name, word) for word, end in (("longest", max(known)), ("shortest", min(known))) for name, time in zip("AB", two)
            if time == end and known.count(end) == 1]  # fmt: skip
    return " and ".join(f"the {word} of {len(known)} traces is {name}'s" for name, word in ends) or "within the run's own spread"


def _op_change(row: ComparedOp, is_changed: bool) -> str:
    """Describe an op's change. Its share of the step's change is not given, because an op's executions may overlap."""
    counts = dict.fromkeys((row["count_a"], row["count_b"]))
    executions = " and ".join(f"{count:,}" for count in counts if count)
    summed = f" over its {executions} executions, which may run at the same time" if max(counts) > 1 else ""
    sign = "+" if row["delta_ns"] > 0 else "-"
    significance = ", more than chance explains" if is_changed and "chance" not in row["statistic"] else ""
    only = {"appeared": ", only in the second", "vanished": ", only in the first"}.get(row["status"], "")
    return f"{row['key']}, {sign}{duration(abs(row['delta_ns']))}{summed}{only} ({row['statistic']}{significance})."


def used_traces(others_a: int, others_b: int, same_run: bool, older: int, unreadable: int) -> str:
    """Return a text about the number of traces that the comparison is based on."""
    if same_run:
        text = f"Compared with the run's {counted(others_a, 'other trace')}."
    else:
        text = f"Judged by {counted(others_a + 1, 'trace')} of A's run and {counted(others_b + 1, 'trace')} of B's."
    if older:
        text += f" {counted(older, 'older trace')} not looked at."
    return text + left_out(unreadable)
