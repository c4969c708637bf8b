"""The interval of a difference: right on numbers that others computed, and as often as it says on sessions drawn at random."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tftracer.comparison.shift import ASSUMED_SPREAD, Shift, quantile, shift_of
from tftracer.comparison.values_of_session import BLOCK, Measured, Steps, block_values, counted_steps, step_values
from tftracer.comparison.wording import outcome


@pytest.mark.parametrize(
    ("probability", "freedom", "t"),  # of the printed tables
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.95, 7, 1.894579),
        (0.975, 10, 2.228139),
        (0.995, 30, 2.749996),
        (0.975, 1e6, 1.959966),
    ],
)
def test_student_s_quantiles(probability: float, freedom: float, t: float) -> None:
    assert quantile(probability, freedom) == pytest.approx(t, rel=1e-5)
    assert quantile(1 - probability, freedom) == pytest.approx(-t, rel=1e-5)


def test_welch_s_interval() -> None:
    """The formula, written out."""
    a, b = [10.0, 14, 12, 16, 13, 15, 11, 13], [17.0, 24, 19, 23, 16, 25, 21, 19]
    shift = found(a, b)
    n, var = 8, (np.var(a, ddof=1), np.var(b, ddof=1))
    error = math.sqrt(var[0] / n + var[1] / n)
    freedom = (var[0] / n + var[1] / n) ** 2 / ((var[0] / n) ** 2 / 7 + (var[1] / n) ** 2 / 7)
    assert 11 < freedom < 12
    assert math.log1p(shift.shift) == pytest.approx((np.mean(b) - np.mean(a)) / 100)
    assert math.log1p(shift.high) - math.log1p(shift.shift) == pytest.approx(quantile(0.975, float(freedom)) * error / 100)


def found(a: list[float], b: list[float]) -> Shift:
    """Of values whose logarithms are these, as percents."""
    shift = shift_of("step", [math.exp(x / 100) for x in a], [math.exp(x / 100) for x in b])
    assert shift is not None
    return shift


def draw(rng: np.random.Generator, sessions: int, longer: float, steps: int = 1000) -> list[Measured]:
    """Sessions as real ones are: alike neighbours, rare long steps, a level of its own for each."""
    made = []
    for _ in range(sessions):
        noise = rng.normal(0, 0.05, steps)
        for step in range(1, steps):
            noise[step] += 0.8 * noise[step - 1]
        duration = 2.8e6 * longer * math.exp(rng.normal(0, 0.03)) * np.exp(noise) * (1 + 3 * (rng.random(steps) < 0.02))
        every = Steps(np.arange(1, steps + 1), np.cumsum(duration).astype(np.int64), duration.astype(np.int64))
        usual = counted_steps(every, np.zeros(0, np.int64))
        made.append(Measured("", len(usual.number), step_values(usual), block_values(usual)))
    return made


def shift_between(a: list[Measured], b: list[Measured]) -> Shift:
    blocks = (a[0].blocks["step"], b[0].blocks["step"]) if len(a) == len(b) == 1 else None
    shift = shift_of("step", [each.values["step"] for each in a], [each.values["step"] for each in b], blocks)
    assert shift is not None
    return shift


@pytest.mark.parametrize("sessions", [2, 8])
def test_it_does_not_cry_wolf(sessions: int) -> None:
    rng = np.random.default_rng(17)
    alarms = [shift_between(draw(rng, sessions, 1), draw(rng, sessions, 1)).differs for _ in range(100)]
    assert np.mean(alarms) <= 0.1


def test_one_session_a_side_proves_nothing() -> None:
    rng = np.random.default_rng(19)
    pairs = [shift_between(draw(rng, 1, 1), draw(rng, 1, 1)) for _ in range(100)]
    assert not any(pair.differs for pair in pairs)
    assert np.mean([pair.low > 0 or pair.high < 0 for pair in pairs]) <= 0.1


def test_eight_sessions_a_side_find_ten_percent_and_most_of_five() -> None:
    rng = np.random.default_rng(18)
    ten = [shift_between(draw(rng, 8, 1), draw(rng, 8, 1.1)).low > 0 for _ in range(40)]
    assert np.mean(ten) == 1
    five = [shift_between(draw(rng, 8, 1), draw(rng, 8, 1.05)).low > 0 for _ in range(40)]
    assert np.mean(five) > 0.75


def test_one_session_a_side_assumes_a_spread_and_more_do_not() -> None:
    one = shift_of("step", [100.0], [120.0], (np.full(5, 100.0), np.full(5, 120.0)))
    assert one is not None and one.basis == "assumed" and one.spread == ASSUMED_SPREAD
    assert math.log1p(one.high) - math.log(1.2) == pytest.approx(1.96 * ASSUMED_SPREAD * math.sqrt(2), rel=1e-3)
    noisy = shift_of("step", [100.0], [120.0], (np.array([90.0, 110] * 3), np.array([100.0, 140] * 3)))
    assert noisy is not None and noisy.high > one.high
    several = shift_of("step", [100.0, 101.0, 99.0], [120.0])
    assert several is not None and several.basis == "sessions" and several.low > 0.1


def test_few_equal_sessions_are_no_proof() -> None:
    few = shift_of("memory", [100.0, 100.0], [105.0, 105.0])
    assert few is not None and not few.differs and few.basis == "assumed"
    many = shift_of("memory", [100.0] * 4, [105.0] * 4)
    assert many is not None and many.differs
    same = shift_of("memory", [100.0], [100.0])
    assert same is not None and (same.low, same.shift, same.high) == (0, 0, 0)


def test_of_nothing_no_ratio_is_told() -> None:
    assert shift_of("bytes", [0.0], [10.0]) is None
    assert shift_of("step", [], [10.0]) is None
    nothing = shift_of("bytes", [0.0, 0.0], [0.0])
    assert nothing is not None and not nothing.differs


def test_how_many_sessions_would_decide() -> None:
    shift = found([0.0, 2, 4, 6], [4.0, 6, 8, 10])
    number = shift.sessions_to_decide(0.02)
    assert number is not None and 10 < number < 100
    fewer = shift.sessions_to_decide(-0.02)
    assert fewer is not None and fewer < number
    assert shift.sessions_to_decide(shift.shift) is None


def test_what_is_left_out_of_the_steps() -> None:
    number = np.arange(1, 101)
    steps = Steps(number, number * 1000, np.full(100, 100))
    usual = counted_steps(steps, np.array([50, 60]))
    assert usual.number.tolist() == [n for n in range(11, 101) if n not in (50, 51, 60, 61)]
    assert step_values(usual) == {"step": 100, "p99": 100, "gap": 900}
    assert step_values(counted_steps(steps, number)) == {}


def test_blocks_are_of_so_many_steps() -> None:
    number = np.arange(1, 2 * BLOCK + 51)
    steps = Steps(number, number * 1000, np.where(number <= BLOCK, 100, 200))
    assert block_values(steps)["step"].tolist() == [100, 200]
    assert block_values(steps.only(number < BLOCK))["step"].tolist() == []


def test_values_that_are_rounded_have_a_wider_interval() -> None:
    equal = ([1.0] * 4, [1.0] * 4)
    assert (exact := shift_of("p99", *equal)) is not None and exact.low == exact.high == 0.0
    rounded = shift_of("p99", *equal, relative_error=0.01)
    assert rounded is not None and not rounded.differs
    assert (rounded.low, rounded.high) == pytest.approx((1 / 1.01**2 - 1, 1.01**2 - 1))
    apart = shift_of("p99", [1.0, 1.001, 1.002, 1.003], [1.02, 1.021, 1.022, 1.023], relative_error=0.01)
    assert apart is not None and not apart.differs, "one bucket further, which may be chance"


def test_a_difference_that_only_99_percent_leave_open_is_not_called_none() -> None:
    """ "+22.3% (+2.7% to +45.7%)  no difference beyond chance" denies its own interval."""
    shift = shift_of("gap", [10.0, 11.0, 12.0, 11.5], [12.5, 13.5, 14.5, 12.0])
    assert shift is not None and shift.low > 0 and not shift.differs
    assert outcome(shift).startswith("perhaps longer")
    none = shift_of("gap", [10.0, 11.0, 12.0, 11.5], [10.5, 11.5, 12.5, 11.0])
    assert none is not None and none.low < 0 and outcome(none) == "no difference beyond chance"
