"""What is said of two traces beside each other (two_traces.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from tftracer.comparison.ops import LEAST_SESSIONS
from tftracer.trace.analyses.compare import matters
from tftracer.trace.units import counted, duration

if TYPE_CHECKING:
    from tftracer.contract.trace import ComparedOp

NOT_IN_TURNS = (
    "The two runs were not traced in turns: whatever the machine did meanwhile looks like a change, so none is claimed. To tell, "
    f"trace them in turns, {LEAST_SESSIONS} times each, or compare sessions (tftracer compare)."
)


def summary(
    rows: Sequence[ComparedOp], shown: AbstractSet[str], step_a_ns: float, step_b_ns: float, step_shown: bool, untold: str
) -> str:
    """The step's difference, the op with the largest, and whether the traces tell them from chance.

    ``rows``: the largest difference first. ``shown``: keys of the ops that the runs' traces show to have changed; ``step_shown``:
    whether they show it of the step. ``untold``: why nothing can be told; "" where it can.
    """
    delta = step_b_ns - step_a_ns
    if matters(step_a_ns, step_b_ns):
        word = "longer" if delta > 0 else "shorter"
        both = f"{duration(step_a_ns)} to {duration(step_b_ns)}, from first op to last"
        text = f"The second step is {duration(abs(delta))} {word} ({both})"
        known = "" if untold else ", more than chance explains" if step_shown else ", which chance may explain"
        text += f"{known}."
    else:
        text = f"The two steps take about as long: {duration(step_a_ns)} and {duration(step_b_ns)}."
    differing = [row for row in rows if matters(row["total_a_ns"], row["total_b_ns"])]
    if differing:
        text += f" The largest difference of an op: {_op_change(differing[0])}"
        certain = next((row for row in differing if row["key"] in shown), None)
        if certain is not None and certain is not differing[0]:
            text += f" The largest that chance does not explain: {_op_change(certain)}"
    elif step_shown and matters(step_a_ns, step_b_ns):
        text += " No op differs that much: look at waiting and gaps in the budget."
    return f"{text} {untold}".rstrip()


def too_few_traces(least: int, of: str, number: str) -> str:
    return f"Two traces cannot tell a change from chance. That takes {least} traces {of}; there are {number}."


def place_among(two: Sequence[float], others: Sequence[float]) -> str:
    """Where the times of the two traces lie among those of the others, NaN where it is not known."""
    if not others:
        return "no other trace"
    known = [time for time in (*two, *others) if not math.isnan(time)]
    ends = [(name, word) for word, end in (("longest", max(known)), ("shortest", min(known))) for name, time in zip("AB", two)
            if time == end and known.count(end) == 1]  # fmt: skip
    return " and ".join(f"the {word} of {len(known)} traces is {name}'s" for name, word in ends) or "within the run's own spread"


def _op_change(row: ComparedOp) -> str:
    """No share of the step's change: an op's time is a sum, also of what runs at the same time."""
    counts = dict.fromkeys((row["count_a"], row["count_b"]))
    executions = " and ".join(f"{count:,}" for count in counts if count)
    summed = f" over its {executions} executions, which may run at the same time" if max(counts) > 1 else ""
    sign = "+" if row["delta_ns"] > 0 else "-"
    only = {"appeared": ", only in the second", "vanished": ", only in the first"}.get(row["status"], "")
    return f"{row['key']}, {sign}{duration(abs(row['delta_ns']))}{summed}{only} ({row['statistic']})."


def used_traces(others_a: int, others_b: int, same_run: bool, older: int, unreadable: int) -> str:
    """By how many traces the two are judged."""
    if same_run:
        text = f"Compared with the run's {counted(others_a, 'other trace')}."
    else:
        text = f"Judged by {counted(others_a + 1, 'trace')} of A's run and {counted(others_b + 1, 'trace')} of B's."
    if older:
        text += f" {counted(older, 'older trace')} not looked at."
    if unreadable:
        text += f" {counted(unreadable, 'trace')} cannot be read and {'is' if unreadable == 1 else 'are'} left out."
    return text
