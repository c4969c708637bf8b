"""Where the usual step time changed, or drifts."""

from __future__ import annotations

import numpy as np
import pytest

from tftracer.session.steps.history import History
from tftracer.session.steps.usual_time_changes import ranks, step_changes
from tftracer.trace.arrays.types import Float64


def history(times: Float64, traced: tuple[int, ...] = ()) -> History:
    made = History()
    made.add(1, np.arange(len(times), dtype=float), times)
    made.traced.extend(traced)
    return made


def noisy(rng: np.random.Generator, steps: int, usual: float) -> Float64:
    made: Float64 = usual * rng.uniform(0.9, 1.1, steps)
    return made


@pytest.mark.parametrize("seed", range(40))
def test_noise_changes_nothing(seed: int) -> None:
    assert step_changes(history(noisy(np.random.default_rng(seed), 600, 0.04))) == ([], None)


def test_a_step_up_and_a_step_down_are_found_where_they_are() -> None:
    rng = np.random.default_rng(5)
    times = np.concatenate([noisy(rng, 200, 0.04), noisy(rng, 150, 0.06), noisy(rng, 250, 0.045)])
    (up, down), drift = step_changes(history(times))
    assert abs(up["step"] - 201) <= 4 and abs(down["step"] - 351) <= 4 and drift is None
    assert up["after_s"] == pytest.approx(0.06, rel=0.05) and down["before_s"] == up["after_s"]


def test_outliers_and_traced_steps_move_nothing() -> None:
    times = noisy(np.random.default_rng(9), 400, 0.04)
    times[350::5] = 3.0
    traced = tuple(range(100, 130))
    times[99:129] = 0.4
    assert step_changes(history(times, traced)) == ([], None)


def test_what_is_too_small_to_matter_or_too_short_to_tell_is_left_alone() -> None:
    rng = np.random.default_rng(3)
    assert step_changes(history(np.concatenate([noisy(rng, 2000, 0.04), noisy(rng, 2000, 0.0412)]))) == ([], None)
    assert step_changes(history(np.array([1.0, 1, 1, 2, 2, 2]))) == ([], None)
    assert step_changes(History()) == ([], None)


def test_a_history_of_any_length() -> None:
    rng = np.random.default_rng(11)
    changes, drift = step_changes(history(np.concatenate([noisy(rng, 20_000, 0.04), noisy(rng, 20_000, 0.08)])))
    assert len(changes) == 1 and abs(changes[0]["step"] - 20_001) <= 400 and drift is None


def test_slow_steps_that_end_are_no_change_of_the_usual_time() -> None:
    """A judge read "9.6% quicker from step 66,321 on" of a training of 73,378 steps: a hook's waits had ended before."""
    times = noisy(np.random.default_rng(4), 73_378, 0.0026)
    times[:46_000:60] += 0.15
    assert step_changes(history(times)) == ([], None)
    times[66_321:] *= 1.3
    (change,), _ = step_changes(history(times))
    assert abs(change["step"] - 66_322) <= 400
    assert change["after_s"] / change["before_s"] == pytest.approx(1.3, rel=0.05)


@pytest.mark.parametrize(("first", "last"), [(0.04, 0.08), (0.08, 0.05)])
def test_a_slow_drift_is_one_not_many_changes(first: float, last: float) -> None:
    rng = np.random.default_rng(2)
    times = np.linspace(first, last, 2000) * rng.uniform(0.9, 1.1, 2000)
    changes, drift = step_changes(history(times))
    assert changes == [] and drift is not None
    assert drift["first_s"] == pytest.approx(first, rel=0.1) and drift["last_s"] == pytest.approx(last, rel=0.1)


def test_equal_values_share_their_rank() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
