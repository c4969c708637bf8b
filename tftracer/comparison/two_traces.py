"""Two traces beside each other, judged by the other traces of their runs: what the page's comparison says.

Two steps of the same code differ, too. So an op counts as changed only if the traces of the runs show it:

- Traces of two runs: the op is *separated* (ops.py): all traces of one run above all of the other, and the medians differ by
  more than the floors.
- Traces of one run: one of the two lies outside the run's other traces, by more than the floors and by more than
  ``MARGIN`` times what those span. (Of 59 ops that scatter by 10% chance puts 0.8 there with four other traces, 0.04 with
  eight; with the span alone as the border 4.4 and 1.9.)

With fewer than four traces of a side nothing is claimed. An op that a trace does not have took no time in it, unless the trace
has more ops than its table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tftracer.comparison.ops import LEAST_SESSIONS, op_change
from tftracer.comparison.two_traces_words import summary, used_traces
from tftracer.contract.encoding import unpacked
from tftracer.trace.analyses.compare import FLOOR_NS, FLOOR_SHARE, compared_ops, matters
from tftracer.trace.analyses.over_traces import OpTotals
from tftracer.trace.units import duration

if TYPE_CHECKING:
    from tftracer.contract.trace import ComparedOp, Comparison
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.answers import Answers

MAX_ROWS = 10_000
#: Traces of each run that are looked at beside the two: the newest.
MOST_TRACES = 8
MARGIN = 2.0


class Beside(NamedTuple):
    """What is known beside the two traces. ``a``, ``b``: of each other trace of their runs, ``Answers.op_totals``, encoded."""

    a: Sequence[bytes] = ()
    b: Sequence[bytes] = ()  # of the same run: empty
    same_run: bool = True
    older: int = 0  # traces that are not looked at
    unreadable: int = 0
    step_times: str = ""


class Judged(NamedTuple):
    """``shown``: whether the traces tell the difference from chance."""

    shown: bool
    statistic: str


class Judge(Protocol):
    #: Why nothing can be told; "" where there are enough traces.
    too_few: str

    def __call__(self, time_of: Callable[[OpTotals], float | None]) -> Judged: ...


class TwoRuns:
    """Traces of one run against those of another."""

    def __init__(self, a: Sequence[OpTotals], b: Sequence[OpTotals]) -> None:
        self._a, self._b = a, b
        self.too_few = f"{len(a)} and {len(b)}" if min(len(a), len(b)) < LEAST_SESSIONS else ""

    def __call__(self, time_of: Callable[[OpTotals], float | None]) -> Judged:
        a, b = _known(self._a, time_of), _known(self._b, time_of)
        if min(len(a), len(b)) < LEAST_SESSIONS:
            return Judged(False, f"too few traces: {len(a)} and {len(b)}")
        change = op_change("", a, b)
        if not change.separated:
            return Judged(False, "the runs' traces overlap")
        if not change.matters:
            return Judged(False, f"separated by less than {duration(FLOOR_NS)} or {FLOOR_SHARE:.0%}")
        return Judged(True, f"separated in {len(a)} of {len(a)} and {len(b)} of {len(b)} traces")


class OneRun:
    """Two traces of a run against its others."""

    def __init__(self, a: OpTotals, b: OpTotals, others: Sequence[OpTotals]) -> None:
        self._a, self._b, self._others = a, b, others
        self.too_few = f"{len(others)} beside these two" if len(others) < LEAST_SESSIONS else ""

    def __call__(self, time_of: Callable[[OpTotals], float | None]) -> Judged:
        others, a, b = _known(self._others, time_of), time_of(self._a), time_of(self._b)
        if len(others) < LEAST_SESSIONS:
            return Judged(False, f"too few other traces: {len(others)}")
        if a is None or b is None:
            return Judged(False, "a trace has too many ops")
        outside = [name for name, time in (("A", a), ("B", b)) if _is_outside(time, others)]
        if not outside:
            return Judged(False, "within the run's own spread")
        lie = "lies" if len(outside) == 1 else "lie"
        return Judged(matters(a, b), f"{' and '.join(outside)} {lie} outside {len(others)} other traces")


def _known(traces: Sequence[OpTotals], time_of: Callable[[OpTotals], float | None]) -> list[float]:
    return [time for trace in traces if (time := time_of(trace)) is not None]


def _is_outside(time: float, others: Sequence[float]) -> bool:
    low, high = min(others), max(others)
    margin = MARGIN * (high - low)
    return (time > high + margin and matters(high, time)) or (time < low - margin and matters(low, time))


def compare(a: Answers, b: Answers, beside: Beside, by: By = "type") -> Comparison:
    """Ops of two traces (times in ns): those that the runs' traces show to have changed first, then the largest difference."""
    judge = _judge(a, b, beside, by)
    ops_a, ops_b = a.ops(by), b.ops(by)
    rows = compared_ops(ops_a, ops_b)
    shown = {row["key"] for row in rows if _judge_row(row, judge)}
    rows.sort(key=lambda row: (row["key"] not in shown, -abs(row["delta_ns"]), row["key"]))
    budget_a, budget_b = a.budget(), b.budget()
    step_a, step_b = budget_a["step_ns"], budget_b["step_ns"]
    step = judge(lambda trace: trace.step_ns)
    return {
        "by": by,
        "rows": rows[:MAX_ROWS],
        "left_out": max(0, len(rows) - MAX_ROWS) + ops_a["left_out"] + ops_b["left_out"],
        "step_a_ns": step_a,
        "step_b_ns": step_b,
        "budget_a": budget_a["whole"],
        "budget_b": budget_b["whole"],
        "summary": summary([row for row in rows if row["key"] in shown], step_a, step_b, step.shown, judge.too_few),
        "traces": used_traces(len(beside.a), len(beside.b), beside.same_run, beside.older, beside.unreadable),
        "step_times": beside.step_times,
    }


def _judge(a: Answers, b: Answers, beside: Beside, by: By) -> Judge:
    own_a, own_b = OpTotals(**a.op_totals(by)), OpTotals(**b.op_totals(by))
    others_a, others_b = ([OpTotals(**unpacked(body)) for body in side] for side in (beside.a, beside.b))
    if beside.same_run:
        return OneRun(own_a, own_b, others_a)
    return TwoRuns([own_a, *others_a], [own_b, *others_b])


def _judge_row(row: ComparedOp, judge: Judge) -> bool:
    """Notes what the traces say; whether they show a difference."""
    key = row["key"]
    judged = judge(partial(_time_of, key=key))
    row["statistic"] = judged.statistic
    if judged.shown and row["status"] in ("same", "unknown"):
        row["status"] = "changed"
    return judged.shown


def _time_of(trace: OpTotals, key: str) -> float | None:
    return trace.time_of(key)
