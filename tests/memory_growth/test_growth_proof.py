"""When growth is proven, on made curves of one reading a second."""

from __future__ import annotations

import numpy as np
import pytest

from tftracer.memory_growth.growth_proof import growth, has_jumped, has_stopped, slope_of, until_it_stopped

MB = 1 << 20
AT = np.arange(180.0)
NOISE = np.random.default_rng(1).uniform(0, MB, len(AT))


def test_steady_growth_is_proven_with_its_rate() -> None:
    slope = growth(AT, 500 * MB + 0.5 * MB * AT + NOISE, 60.0)
    assert slope is not None
    assert slope.rate == pytest.approx(0.5 * MB, rel=0.1)
    assert slope.grown == pytest.approx(0.5 * MB * 165, rel=0.1)


def test_growth_in_jumps_of_many_is_proven() -> None:
    assert growth(AT, 500 * MB + 8 * MB * (AT // 6) + NOISE, 60.0) is not None


@pytest.mark.parametrize(
    "low",
    [
        500 * MB + NOISE,
        500 * MB + 60 * MB * (AT > 90) + NOISE,  # once
        500 * MB + 90 * MB * np.minimum(AT / 60, 1) + NOISE,  # a cache that fills and stops
        500 * MB + 90 * MB * (1 - np.exp(-AT / 30)) + NOISE,  # ever more slowly
        500 * MB + 4 * MB * (AT % 45) + NOISE,  # a sawtooth
        500 * MB + 0.01 * MB * AT,  # too little
    ],
)
def test_what_stops_or_comes_back_is_no_growth(low: np.ndarray) -> None:
    assert not any(growth(AT[:end], low[:end], 60.0) for end in range(125, len(AT) + 1, 5))


def test_a_start_and_late_jumps_with_kilobytes_between_are_no_growth() -> None:
    """As a balanced training of 45 minutes that had larger work to do at minutes 36, 38 and 42."""
    at = np.arange(2700.0)
    start, drift = 15 * MB * np.minimum(at / 480, 1), 500.0 * at
    low = 230 * MB + start + drift + sum(jump * MB * (at > when) for jump, when in ((2, 2160), (4, 2280), (6, 2520)))
    assert not any(growth(at[:end], low[:end], 60.0) for end in range(600, len(at) + 1, 20))
    assert growth(at, 230 * MB + 60 * MB * at / 2700 + start, 60.0) is not None  # a leak


def test_growth_ends() -> None:
    at = np.arange(400.0)
    low = 500 * MB + 0.5 * MB * np.minimum(at, 150)
    found = growth(at[:150], low[:150], 60.0)
    assert found is not None
    assert not has_stopped(at[:160], low[:160], found, 60.0)
    assert has_stopped(at, low, found, 60.0)
    ended = until_it_stopped(at, low, 60.0)
    assert ended is not None and 140 < ended.until <= 150 and ended.grown == pytest.approx(45 * MB, rel=0.1)


def test_a_jump_after_a_growth_is_no_part_of_it() -> None:
    """A judge read "grew by 205 MB in 13 min" of 17 MB in 12 min and a list of 190 MB that was freed later."""
    at = np.arange(1000.0)
    low = 250 * MB + 0.03 * MB * np.minimum(at, 720) + 190 * MB * ((at > 700) & (at < 900))
    steady, jumped = slope_of(at[:700], low[:700], 0.0, 699.0), slope_of(at[:850], low[:850], 0.0, 850.0)
    assert steady is not None and not has_jumped(steady) and jumped is not None and has_jumped(jumped)
    assert until_it_stopped(at[:850], low[:850], 0.0) is None


def test_growth_goes_on_over_a_time_without_readings() -> None:
    """As while it is found out what grows."""
    is_read = (AT < 75) | (AT > 115)
    slope = slope_of(AT[is_read], 0.5 * MB * AT[is_read], 15.0, 130.0)
    assert slope is not None and slope.rate == pytest.approx(0.5 * MB, rel=0.1) and slope.until == 130
