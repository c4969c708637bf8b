"""What is said of two traces beside each other (two_traces.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tftracer.comparison.ops import LEAST_SESSIONS
from tftracer.trace.analyses.compare import matters
from tftracer.trace.units import counted, duration

if TYPE_CHECKING:
    from tftracer.contract.trace import ComparedOp


def summary(shown: Sequence[ComparedOp], step_a_ns: float, step_b_ns: float, step_shown: bool, too_few: str) -> str:
    """The step's change, and the op that changed most in its direction.

    ``shown``: ops that the runs' traces show to have changed. ``step_shown``: whether they show it of the step, too.
    ``too_few``: how many traces there are, where they are too few to tell.
    """
    delta = step_b_ns - step_a_ns
    if not matters(step_a_ns, step_b_ns):
        text = f"The two steps take about as long: {duration(step_a_ns)} and {duration(step_b_ns)}."
        return f"{text} {_op_change(shown[0])}" if shown else text
    word = "longer" if delta > 0 else "shorter"
    text = f"The second step is {duration(abs(delta))} {word} ({duration(step_a_ns)} to {duration(step_b_ns)})."
    if too_few:
        return f"{text} There are too few traces to tell that from chance: {too_few}. It takes {LEAST_SESSIONS} of a run."
    along = [row for row in shown if row["delta_ns"] * delta > 0]
    if along:
        return f"{text} {_op_change(along[0])}"
    if step_shown:
        return f"{text} The runs' traces show that, but no op that changed: look at waiting and gaps in the budget."
    return f"{text} That is within what the runs' traces scatter, and so are the ops."


def _op_change(row: ComparedOp) -> str:
    """No share of the step's change: an op's time is a sum, also of what runs at the same time."""
    change, count = duration(abs(row["delta_ns"])), max(row["count_a"], row["count_b"])
    summed = f" over its {count:,} executions, which may run at the same time" if count > 1 else ""
    if row["status"] == "appeared":
        text = f"Of the ops, {row['key']} appeared: {change}{summed}"
    elif row["status"] == "vanished":
        text = f"Of the ops, {row['key']} vanished: it took {change}{summed}"
    else:
        text = f"{row['key']} changed most of all ops: by {change}{summed}"
    return f"{text} ({row['statistic']})."


def used_traces(others_a: int, others_b: int, same_run: bool, older: int, unreadable: int) -> str:
    """By how many traces the two are judged."""
    if same_run:
        text = f"Judged by the run's {counted(others_a, 'other trace')}."
    else:
        text = f"Judged by {counted(others_a + 1, 'trace')} of A's run and {counted(others_b + 1, 'trace')} of B's."
    if older:
        text += f" {counted(older, 'older trace')} not looked at."
    if unreadable:
        text += f" {counted(unreadable, 'trace')} cannot be read and {'is' if unreadable == 1 else 'are'} left out."
    return text
