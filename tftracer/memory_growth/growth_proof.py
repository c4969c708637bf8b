"""Proves growth: in twelve equal parts of a time span, the lowest value rises from part to part, above all earlier values.

The lowest values leave out memory that a step takes and frees. The following is not growth: one, two or three jumps; a curve that
flattens, such as a cache that fills; a sawtooth, which does not exceed its earlier values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tftracer.trace.arrays.types import Float64

PARTS = 12
#: Of the 66 pairs of parts, the number that rise minus the number that fall has to be at least this. Three jumps give only 54.
RISES = 56
#: A pair of parts counts as rising if it rises by at least this share of what steady growth gives: heaps always grow a little.
STEADY = 0.25
#: The least growth that counts. Allocators may keep a few extra megabytes in the first minutes, but not later.
MIN_BYTES = 16 << 20
#: In its last quarter, the growth has at least STILL times its average slope. In the equally long time before the growth began,
#: the slope was at most SLOWER times the growth's slope: else the curve flattens.
STILL, SLOWER = 0.75, 1.5
#: The share of the growth that has to lie above all earlier values.
NEW = 0.25
#: The end of a growth that has stopped is the first reading from which on at most this share of the growth was missing. If the
#: memory later falls by more than this share of the growth, the recorded growth does not change.
NEAR = 0.05
#: A growth that is more than this multiple of what its median rate gives comes mostly from a jump, which is not growth.
JUMP = 2.5
#: Growth is searched for in the whole time, and in the latest spans that last this many times the shortest proof (60 s).
SPANS = (1, 4, 16)


class Slope(NamedTuple):
    since: float
    until: float
    start_bytes: float
    end_bytes: float
    rate: float  # bytes a second: the median of all pairs of parts

    @property
    def grown(self) -> float:
        return self.end_bytes - self.start_bytes


def floors(at: Float64, low: Float64, since: float, until: float) -> Float64:
    """Return [PARTS]: the lowest value in each equal part of the time; inf for a part without a reading."""
    part = np.floor((at - since) / (until - since) * PARTS).astype(int)
    part[at == until] = PARTS - 1
    known = (part >= 0) & (part < PARTS)
    lowest = np.full(PARTS, np.inf)
    np.minimum.at(lowest, part[known], low[known])
    return lowest


def slope_of(at: Float64, low: Float64, since: float, until: float) -> Slope | None:
    """Return the slope through the lowest values of the parts, growth or not; None if the first or last part has no reading.

    Parts without a reading are left out: the memory is not read while the watch finds what grows.
    """
    lowest = floors(at, low, since, until)
    known = np.isfinite(lowest)
    if not known[0] or not known[-1]:
        return None
    i, j = np.triu_indices(PARTS, 1)
    i, j = i[known[i] & known[j]], j[known[i] & known[j]]
    rate = np.median((lowest[j] - lowest[i]) / (j - i)) * PARTS / (until - since)
    return Slope(since, until, float(lowest[0]), float(lowest[-1]), float(rate))


def proven(at: Float64, low: Float64, since: float, until: float) -> Slope | None:
    """Return the slope from ``since`` to ``until`` if it is proven growth, else None.

    ``at``, ``low``: [n] times in seconds and bytes of the readings.
    """
    slope, lowest = slope_of(at, low, since, until), floors(at, low, since, until)
    if slope is None or not np.isfinite(lowest).all() or slope.grown < MIN_BYTES:
        return None
    i, j = np.triu_indices(PARTS, 1)
    quarter = PARTS // 4
    goes_on = (lowest[-1] - lowest[-1 - quarter]) * (PARTS - 1) >= STILL * quarter * slope.grown
    before = at < since
    highest = floors_before(at[before], low[before], (until - since) / PARTS)
    is_new = lowest[-1] - highest >= NEW * slope.grown
    higher = lowest[j] - lowest[i]
    rises = (higher >= STEADY * slope.grown * (j - i) / (PARTS - 1)).sum() - (higher < 0).sum()
    return slope if rises >= RISES and goes_on and is_new else None


def floors_before(at: Float64, low: Float64, width: float) -> float:
    """Return the highest of the lowest values in parts of ``width`` seconds: lowest values leave out short peaks."""
    if not len(at):
        return -np.inf
    part = np.floor((at - at[0]) / width).astype(int)
    lowest = np.full(part[-1] + 1, np.inf)
    np.minimum.at(lowest, part, low)
    return float(lowest[np.isfinite(lowest)].max())


def growth(at: Float64, low: Float64, shortest: float, since: float = 0.0) -> Slope | None:
    """Return the growth that is proven over the longest time after ``since``, the end of an earlier growth.

    ``at``, ``low``: [n] readings during the training; ``shortest``: seconds.
    """
    if not len(at):
        return None
    until, known = float(at[-1]), float(at[-1] - max(at[0], since))
    spans = [known] if known >= shortest else []
    for span in [*spans, *(shortest * each for each in reversed(SPANS))]:
        if span <= known:
            slope = proven(at, low, until - span, until)
            before = slope_of(at, low, until - 2 * span, until - span)  # None: not known
            if slope is not None and (before is None or before.rate <= SLOWER * slope.rate):
                return slope
    return None


def until_it_stopped(at: Float64, low: Float64, since: float) -> Slope | None:
    """Return the slope from ``since`` until the memory came near its last value and stayed there; None if it is not known.

    A step may take more memory before that, and free it again.
    """
    slope = slope_of(at, low, since, float(at[-1]))
    if slope is None:
        return None
    missing = np.flatnonzero((at > since) & (low < slope.end_bytes - NEAR * slope.grown))
    until = float(at[min(missing[-1] + 1, len(at) - 1)]) if len(missing) else slope.until
    steady = slope_of(at, low, since, until)
    if steady is not None and has_jumped(steady._replace(end_bytes=slope.end_bytes)):
        return None
    return slope._replace(until=until, rate=slope.grown / max(until - since, 1.0))


def has_jumped(slope: Slope) -> bool:
    """Return whether most of the difference comes from a jump: it is far more than the steady rate gives."""
    return slope.grown > JUMP * max(0.0, slope.rate) * (slope.until - slope.since)


def has_stopped(at: Float64, low: Float64, slope: Slope, shortest: float) -> bool:
    """Return whether the growth has ended: memory now grows at less than a quarter of the proven rate.

    The present rate is measured over a span as long as the proof, but at least ``shortest`` and at most 16 times that (seconds).
    """
    until = float(at[-1])
    span = min(max(slope.until - slope.since, shortest), SPANS[-1] * shortest)
    now = slope_of(at, low, max(until - span, float(at[0])), until)
    return now is not None and now.rate < slope.rate / 4
