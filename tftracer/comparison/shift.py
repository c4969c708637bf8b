"""The difference of a value between two groups of sessions, with its 95% interval.

It is Welch's interval for the logarithms of the sessions' values, so the groups may differ in spread and size. A side with one
session uses the other side's spread. With one session per side, the spread within the sessions (between blocks of steps) is
added to ``ASSUMED_SPREAD``, an assumption about sessions of the same code. The same is done if a side has fewer than
``MIN_SESSIONS`` sessions and the values within each side are equal. If all values of both sides are equal, there is no
difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tftracer.comparison.recorded_in_turns import drift_variance
from tftracer.trace.arrays.types import Float64

CONFIDENCE = 0.95
#: Five values are compared at once (comparison.py). If each interval has this confidence, all five together have 95%
#: (Bonferroni).
CONFIDENCE_OF_EACH = 1 - (1 - CONFIDENCE) / 5
#: Standard deviation between sessions of the same code, as a share. It was 5% with steps of 2.8 ms on a shared machine.
ASSUMED_SPREAD = 0.05
#: With fewer sessions than this on a side, equal values do not show that there is no spread.
MIN_SESSIONS = 4
#: Maximum number of sessions per side that is recommended.
MAX_SESSIONS = 1000

Basis = Literal["sessions", "assumed"]


@dataclass(frozen=True)
class Shift:
    """The difference of a value.

    ``a``, ``b``: geometric means. ``shift``, ``low``, ``high``: the difference of b relative to a, and its interval; 0.05: 5%
    more.
    """

    metric: str
    a: float
    b: float
    shift: float
    low: float
    high: float
    spread: float  # standard deviation of the logarithms between sessions
    sessions_a: int
    sessions_b: int
    basis: Basis  # whether the spread was measured between sessions, or is assumed because there are few
    differs: bool = False  # whether it is significant although five values are compared; False with an assumed spread

    def sessions_to_decide(self, threshold: float) -> int | None:
        """Return how many sessions per side would probably exclude ``threshold`` from the interval; None if more than
        MAX_SESSIONS."""
        distance = abs(math.log1p(self.shift) - math.log1p(threshold))
        too_few, enough = 1, MAX_SESSIONS
        if _half_width(self.spread, enough) >= distance:
            return None
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            too_few, enough = (too_few, middle) if _half_width(self.spread, middle) < distance else (middle, enough)
        return enough


def _half_width(spread: float, sessions: int) -> float:
    """Return half the width of the interval (of logarithms) with this many sessions per side."""
    return quantile(0.5 + CONFIDENCE / 2, 2 * sessions - 2) * spread * math.sqrt(2 / sessions)


def shift_of(
    metric: str,
    a: Sequence[float],
    b: Sequence[float],
    blocks: tuple[Float64, Float64] | None = None,
    relative_error: float = 0.0,
    started: tuple[Sequence[float], Sequence[float]] | None = None,
    selected_from: int = 1,
) -> Shift | None:
    """Compute a shift; None if a side has no values, or a value is 0. If all values are equal (also 0) and exact, it is 0.

    ``blocks``: values of blocks of steps, for one session a side. ``started``: when the sessions began, if known for all. Two
    arguments widen the interval: ``relative_error``, the possible relative error of the values, in the same direction for all
    values of a side; ``selected_from``, the number of shifts of which the caller reports one.
    """
    if a and b and len({*a, *b}) == 1 and not relative_error:
        return Shift(metric, a[0], b[0], 0.0, 0.0, 0.0, 0.0, len(a), len(b), "sessions")
    if not a or not b or min(*a, *b) <= 0:
        return None  # the ratio to zero is undefined
    log_a, log_b = np.log(a), np.log(b)
    difference = float(log_b.mean() - log_a.mean())
    error, freedom, spread, basis = _error(log_a, log_b, blocks)
    if started is not None and basis == "sessions":
        error = math.hypot(error, math.sqrt(drift_variance(log_a, log_b, *started)))
    half_width, half_width_of_five = (
        (quantile(0.5 + confidence / 2, freedom) * error if error else 0.0) + 2 * math.log1p(relative_error)
        for confidence in (1 - (1 - CONFIDENCE) / selected_from, CONFIDENCE_OF_EACH)
    )
    return Shift(
        metric,
        a=math.exp(log_a.mean()),
        b=math.exp(log_b.mean()),
        shift=math.expm1(difference),
        low=math.expm1(difference - half_width),
        high=math.expm1(difference + half_width),
        spread=spread,
        sessions_a=len(a),
        sessions_b=len(b),
        basis=basis,
        differs=basis == "sessions" and abs(difference) > half_width_of_five,
    )


def _error(a: Float64, b: Float64, blocks: tuple[Float64, Float64] | None) -> tuple[float, float, float, Basis]:
    """Return (standard error, degrees of freedom, spread between sessions, its basis)."""
    if min(len(a), len(b)) < MIN_SESSIONS and not np.ptp(a) + np.ptp(b):
        # The variances within the sessions and between sessions.
        within = sum(_variance_of_mean(np.log(side[side > 0])) for side in blocks or ())
        between = ASSUMED_SPREAD**2 * (1 / len(a) + 1 / len(b))
        return math.sqrt(between + within), 1e6, ASSUMED_SPREAD, "assumed"  # 1e6: practically the normal distribution
    if len(a) > 1 and len(b) > 1:
        mean_variances = [float(side.var(ddof=1)) / len(side) for side in (a, b)]
        spread = math.sqrt((float(a.var(ddof=1)) + float(b.var(ddof=1))) / 2)
        return math.sqrt(sum(mean_variances)), _welch(mean_variances, (len(a), len(b))), spread, "sessions"
    several = a if len(a) > 1 else b
    spread = float(several.std(ddof=1))
    return spread * math.sqrt(1 / len(a) + 1 / len(b)), len(several) - 1, spread, "sessions"


def _variance_of_mean(blocks: Float64) -> float:
    """Return the variance of a mean of blocks."""
    return float(blocks.var(ddof=1)) / len(blocks) if len(blocks) > 1 else 0.0


def _welch(mean_variances: Sequence[float], sizes: tuple[int, int]) -> float:
    """Return the degrees of freedom by Welch and Satterthwaite."""
    denominator = sum(part**2 / (size - 1) for part, size in zip(mean_variances, sizes))
    return sum(mean_variances) ** 2 / denominator if denominator else float(sum(sizes) - 2)


def quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution with ``freedom`` degrees of freedom, to six digits.

    ``probability``: between 0 and 1.
    """
    root = math.sqrt(freedom)  # with t = root * tan(angle), the density of the angle is a power of cos(angle)
    angle = np.linspace(0.0, min(math.pi / 2, 12 / root), 20_001)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    positive_t = root * math.tan(np.interp(abs(2 * probability - 1) * area[-1], area, angle))
    return math.copysign(positive_t, probability - 0.5)
