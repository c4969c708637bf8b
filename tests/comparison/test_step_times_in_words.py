"""The step times of two runs in words: the interval of one session a side, and its limit."""

from __future__ import annotations

import numpy as np

from tftracer.comparison.comparison import compare
from tftracer.comparison.step_times_in_words import step_times_in_words
from tftracer.comparison.values_of_session import Measured, Steps, block_values, counted_steps, step_values
from tftracer.comparison.wording import ONE_SESSION, interval
from tftracer.contract.session import StepTimes
from tftracer.trace.arrays.columns import column


def recorded(seconds: list[float], count: int = 1, traced: tuple[int, ...] = ()) -> StepTimes:
    """A run with these steps, each entry standing for ``count``."""
    times, number = np.array(seconds, np.float32), np.arange(1, len(seconds) + 1)
    return {
        "run_id": 1,
        "step": column(number.astype(np.float64)),
        "count": column(np.full(len(times), count, np.uint32)),
        "start_at": column(1.7e9 + number.astype(np.float64)),
        "mean_s": column(times),
        "min_s": column(times),
        "max_s": column(times),
        "traced": column(np.array(traced, np.float64)),
    }


def noisy(seed: int, usual: float) -> list[float]:
    return (usual * np.exp(np.random.default_rng(seed).normal(0, 0.05, 1000))).tolist()


def measured(seconds: list[float]) -> Measured:
    number = np.arange(1, len(seconds) + 1)
    duration = np.rint(np.array(seconds, np.float32).astype(np.float64) * 1e9).astype(np.int64)
    usual = counted_steps(Steps(number, number * 10**9, duration), np.zeros(0, np.int64))
    return Measured("", len(usual.number), step_values(usual), block_values(usual))


def test_it_is_the_interval_of_tftracer_compare_with_its_limit() -> None:
    a, b = noisy(1, 0.002), noisy(2, 0.003)
    shift = compare("run", [measured(a)], [measured(b)]).shifts["step"]
    assert shift.basis == "assumed" and shift.low > 0.2
    text = step_times_in_words(recorded(a), recorded(b))
    assert f"{shift.shift:+.1%} ({interval(shift)}), too few sessions to tell. {ONE_SESSION}" in text
    assert text.startswith("Recorded steps, step time (p25): 1.93 ms to 2.9 ms") and text.endswith(ONE_SESSION)


def test_few_steps_are_said() -> None:
    assert step_times_in_words(recorded([0.002] * 100), recorded(noisy(1, 0.003))).endswith(
        "Only 90 steps of a run are compared (without warm-up and traced steps)."
    )


def test_traced_steps_do_not_count() -> None:
    times = [0.002] * 1000
    times[499:501] = [5.0, 5.0]
    assert "2 ms to 2 ms, +0.0%" in step_times_in_words(recorded([0.002] * 1000), recorded(times, traced=(500,)))


def test_without_steps_nothing_is_said() -> None:
    some = recorded([0.002] * 1000)
    for none in (recorded([]), recorded([0.002] * 1000, count=8)):
        assert step_times_in_words(some, none) == step_times_in_words(none, some) == ""
