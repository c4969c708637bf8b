"""Sessions that were recorded one after the other, on a machine that drifts: told as such, with wider intervals."""

from __future__ import annotations

import numpy as np
import pytest

from tftracer.comparison.comparison import compare
from tftracer.comparison.recorded_in_turns import in_a_row
from tftracer.comparison.shift import shift_of
from tftracer.comparison.values_of_session import Measured


def test_how_many_of_one_side_follow_each_other() -> None:
    assert in_a_row([1, 3, 5, 7], [2, 4, 6, 8]) == 1
    assert in_a_row([1, 2, 3, 4], [5, 6, 7, 8]) == 4
    assert in_a_row([1, 2, 5, 6], [3, 4, 7, 8]) == 2


def differing(sessions: int, in_turns: bool, drift: float, changed: float = 0.0) -> float:
    """How often equal sessions (or changed ones) differ on a machine that drifts at random by so much from one to the next."""
    rng, found, draws = np.random.default_rng(11), 0, 200
    for _ in range(draws):
        values = np.cumsum(rng.normal(0, drift, 2 * sessions)) + rng.normal(0, 0.02, 2 * sessions)
        times = np.arange(2 * sessions)
        first = times % 2 == 0 if in_turns else times < sessions
        values[~first] += changed
        a, b = (np.exp(values[side]).tolist() for side in (first, ~first))
        shift = shift_of("step", a, b, started=(times[first].tolist(), times[~first].tolist()))
        assert shift is not None
        found += shift.differs
    return found / draws


@pytest.mark.parametrize("sessions", [4, 8])
def test_equal_sessions_on_a_drifting_machine_are_hardly_ever_told_to_differ(sessions: int) -> None:
    assert differing(sessions, in_turns=False, drift=0.02) <= 0.05  # it was 20% with four a side, 45% with eight
    assert differing(sessions, in_turns=True, drift=0.02) <= 0.05


def test_in_turns_a_change_is_found() -> None:
    assert differing(8, in_turns=True, drift=0.01, changed=0.10) >= 0.95


def test_a_comparison_says_that_sessions_were_not_recorded_in_turns() -> None:
    def measured(number: int) -> Measured:
        return Measured(f"s{number}", 1000, {"step": 1e6 + number}, started_at=float(number))

    blocks = compare("train", [measured(n) for n in (1, 2, 3, 4)], [measured(n) for n in (5, 6, 7, 8)])
    assert any("not recorded in turns" in warning and "--repeat" in warning for warning in blocks.warnings)
    turns = compare("train", [measured(n) for n in (1, 3, 5, 7)], [measured(n) for n in (2, 4, 6, 8)])
    assert not any("in turns" in warning for warning in turns.warnings)
    assert blocks.shifts["step"].high > turns.shifts["step"].high


def test_five_equal_values_are_rarely_told_to_differ_in_any() -> None:
    rng, found = np.random.default_rng(5), 0
    for _ in range(200):
        shifts = [shift_of("x", *(np.exp(rng.normal(0, 0.03, 6)).tolist() for _ in range(2))) for _ in range(5)]
        found += any(shift is not None and shift.differs for shift in shifts)
    assert found / 200 <= 0.08  # 5%, and what 200 draws scatter; it was 20%
