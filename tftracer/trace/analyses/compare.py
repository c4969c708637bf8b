"""Two traces beside each other: which ops changed, appeared or vanished, by time and by share.

An op is the same in both if its key is: its type, its node name, or its scope. It *changed* if its total time differs by more
than ``FLOOR_NS`` and by more than ``FLOOR_SHARE`` of the larger side; below that two executions of the same step differ too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tftracer.trace.units import duration

if TYPE_CHECKING:
    from tftracer.contract.trace import ComparedOp, Comparison, OpRow
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.answers import Answers

FLOOR_NS = 20_000.0
FLOOR_SHARE = 0.1
MAX_ROWS = 10_000
#: Said of every difference between two steps.
LIMIT = "Two steps cannot tell a change from chance: tftracer compare does, from all steps and traces of several sessions."


def compare(a: Answers, b: Answers, by: By = "type") -> Comparison:
    """Ops of two traces, the largest change first (times in ns)."""
    ops_a, ops_b = a.ops(by), b.ops(by)
    before = {row["key"]: row for row in ops_a["rows"]}
    after = {row["key"]: row for row in ops_b["rows"]}
    rows = [compared(key, before.get(key), after.get(key)) for key in {**before, **after}]
    rows.sort(key=lambda row: (-abs(row["delta_ns"]), row["key"]))
    budget_a, budget_b = a.budget(), b.budget()
    return {
        "by": by,
        "rows": rows[:MAX_ROWS],
        "left_out": max(0, len(rows) - MAX_ROWS) + ops_a["left_out"] + ops_b["left_out"],
        "step_a_ns": budget_a["step_ns"],
        "step_b_ns": budget_b["step_ns"],
        "budget_a": budget_a["whole"],
        "budget_b": budget_b["whole"],
        "summary": summary(rows, budget_a["step_ns"], budget_b["step_ns"]),
    }


def compared(key: str, a: OpRow | None, b: OpRow | None) -> ComparedOp:
    total_a, total_b = (a["total_ns"] if a else 0.0), (b["total_ns"] if b else 0.0)
    either = a or b
    return {
        "key": key,
        "op": either["op"] if either else "",
        "status": status(a is not None, b is not None, total_a, total_b),
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


def status(in_a: bool, in_b: bool, total_a: float, total_b: float) -> Literal["changed", "same", "appeared", "vanished"]:
    if not in_a:
        return "appeared"
    if not in_b:
        return "vanished"
    return "changed" if matters(total_a, total_b) else "same"


def matters(before_ns: float, after_ns: float) -> bool:
    """Whether two times differ by more than the floors."""
    return abs(after_ns - before_ns) > max(FLOOR_NS, FLOOR_SHARE * max(before_ns, after_ns))


def summary(rows: list[ComparedOp], step_a_ns: float, step_b_ns: float) -> str:
    """The step's change, the op that changed most in its direction, and what two steps cannot tell."""
    delta = step_b_ns - step_a_ns
    if not matters(step_a_ns, step_b_ns):
        return f"The two steps take about as long: {duration(step_a_ns)} and {duration(step_b_ns)}."
    word = "longer" if delta > 0 else "shorter"
    text = f"The second step is {duration(abs(delta))} {word} ({duration(step_a_ns)} to {duration(step_b_ns)})."
    along = [row for row in rows if row["delta_ns"] * delta > 0 and row["status"] != "same"]
    if not along:
        return f"{text} No op changed as much: look at waiting and gaps in the budget. {LIMIT}"
    return f"{text} {_op_change(along[0])} {LIMIT}"


def _op_change(row: ComparedOp) -> str:
    """No share of the step's change: an op's time is a sum, also of what runs at the same time."""
    change, count = duration(abs(row["delta_ns"])), max(row["count_a"], row["count_b"])
    summed = f" over its {count:,} executions, which may run at the same time" if count > 1 else ""
    if row["status"] == "appeared":
        return f"Of the ops, {row['key']} appeared: {change}{summed}."
    if row["status"] == "vanished":
        return f"Of the ops, {row['key']} vanished: it took {change}{summed}."
    return f"{row['key']} changed most of all ops: by {change}{summed}."
