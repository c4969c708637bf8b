"""The turns and the steps near a traced one, from the history of step times."""

from __future__ import annotations

import numpy as np
import pytest

from tftracer.session.steps.history import RECENT, History
from tftracer.session.steps.near_step import near_step


def test_the_turn_of_a_loop_and_untraced_steps_around_a_traced_one() -> None:
    history = History()
    durations = np.array([0.5, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08])
    history.add(1, 100 + np.arange(9.0), durations, [4, 5])
    near = near_step(history, 5)
    assert near["steps_around_s"] == pytest.approx([0.5, 0.01, 0.02, 0.03, 0.06, 0.07, 0.08])  # without steps 5 and 6
    assert near["this_turn_s"] == pytest.approx(1.01) and near["turn_s"] == pytest.approx(1.01)


def test_unknown_stays_unknown() -> None:
    history = History()
    assert near_step(history, 1) == {} == near_step(history, None)
    history.add(1, np.array([100.0]), np.array([0.5]))
    assert near_step(history, 1) == {"turn_s": None, "this_turn_s": None, "steps_around_s": []}
    history.add(2, 101 + np.arange(2.0 * RECENT), np.full(2 * RECENT, 0.1))
    assert near_step(history, 5) == {}  # aggregated with other steps
