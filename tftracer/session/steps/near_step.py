"""The steps of a run near a traced one, and how long its loop's turns took, from the history of step times."""

from __future__ import annotations

from typing import Any

import numpy as np

from tftracer.session.steps.history import History

NEAR = 4  # steps on each side of the traced step
FEWEST = 3  # of fewer steps nothing is said
MAX_TURNS = 501  # as many recent turns as times between steps (statistics.py)


def near_step(history: History, step: int | None) -> dict[str, Any]:
    """Return fields of a trace's context: the median turn until a step, the turn of the step, and the untraced steps around it.

    A turn is the time from the end of a step to the end of the run's next one. Empty where the history no longer has the step.
    """
    rows = history.entries()
    numbers, count, start, seconds = rows[:, :4].T
    position = int(np.searchsorted(numbers, step or 0))
    if step is None or position >= len(rows) or numbers[position] != step or count[position] != 1:
        return {}
    recent = slice(max(0, position - MAX_TURNS), position + 1)
    is_next = (np.diff(numbers[recent]) == 1) & (count[recent][:-1] == 1)
    turns = np.diff((start + seconds)[recent])
    known = turns[is_next & (turns > 0)]
    is_near, left_out = (count == 1) & (np.abs(numbers - step) <= NEAR), {step, *history.traced}
    around = [float(took) for number, took in zip(numbers[is_near], seconds[is_near]) if int(number) not in left_out]
    return {
        "turn_s": float(np.median(known)) if len(known) else None,
        "this_turn_s": float(turns[-1]) if len(turns) and is_next[-1] and turns[-1] > 0 else None,
        "steps_around_s": around if len(around) >= FEWEST else [],
    }
