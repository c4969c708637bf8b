"""The difference of the step times of two runs in words, computed as by ``tftracer compare`` with one session per side."""

from __future__ import annotations

import numpy as np

from tftracer.comparison.shift import Shift, shift_of
from tftracer.comparison.values_of_session import BLOCK, Steps, block_values, counted_steps, step_values
from tftracer.comparison.wording import ONE_SESSION, interval, outcome, title, value
from tftracer.contract.session import StepTimes
from tftracer.trace.arrays.columns import array


def step_times_in_words(a: StepTimes, b: StepTimes) -> str:
    """Return one or more sentences; "" if a run has no counted steps (values_of_session.py)."""
    before, after = _counted(a), _counted(b)
    shift = _shift(before, after)
    if shift is None:
        return ""
    values = f"{value('step', shift.a)} to {value('step', shift.b)}"
    text = f"Recorded steps, {title('step')}: {values}, {shift.shift:+.1%} ({interval(shift)}), {outcome(shift)}."
    fewest = min(len(before.number), len(after.number))
    text += f" {ONE_SESSION}" if shift.basis == "assumed" else ""
    return text + (f" Only {fewest} steps of a run are compared (without warm-up and traced steps)." if fewest < BLOCK else "")


def _shift(before: Steps, after: Steps) -> Shift | None:
    values = [[step_values(side)["step"]] if len(side.number) else [] for side in (before, after)]
    return shift_of("step", values[0], values[1], (block_values(before)["step"], block_values(after)["step"]))


def _counted(times: StepTimes) -> Steps:
    """Return the counted steps, without entries that stand for several steps."""
    single = array(times["count"]) == 1
    number, start_at, mean_s = (array(times[name])[single] for name in ("step", "start_at", "mean_s"))
    nanoseconds = (np.rint(each.astype(np.float64) * 1e9).astype(np.int64) for each in (start_at, mean_s))
    return counted_steps(Steps(number.astype(np.int64), *nanoseconds), array(times["traced"]).astype(np.int64))
