"""When growth is proven: the lowest values of twelve equal parts of a time rise throughout, to where they have never been. Pure.

The lowest values leave out what a step takes and gives back. What rises once, twice or three times and stays is no growth, nor is
what rises ever more slowly, such as a cache that fills, nor a sawtooth: it comes no higher than it has been.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tftracer.trace.arrays.types import Float64

PARTS = 12
#: Of the 66 pairs of parts, the later one is the higher in so many more than it is the lower. With three jumps it is in 54.
RISES = 56
#: It is the higher by so much of what even growth would make it, at least: a heap gains some kilobytes all the time.
EVEN = 0.25
#: Allocators keep some megabytes more for minutes, and then no more.
LEAST_BYTES = 16 << 20
#: In the same time: the last quarter rises at least so much of the whole, and what came before so many times as fast at most.
STILL, SLOWER = 0.75, 1.5
#: The part of the growth that has to lie above all that was reached before.
NEW = 0.25
#: A growth has ended where so much of it is missing.
NEAR = 0.05
#: Times in which growth is looked for, in shortest proofs (60 s); and all that is known.
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
    """[PARTS] lowest values; inf of a part without a reading."""
    part = np.floor((at - since) / (until - since) * PARTS).astype(int)
    part[at == until] = PARTS - 1
    known = (part >= 0) & (part < PARTS)
    lowest = np.full(PARTS, np.inf)
    np.minimum.at(lowest, part[known], low[known])
    return lowest


def slope_of(at: Float64, low: Float64, since: float, until: float) -> Slope | None:
    """The slope through the lowest values of the parts, whether or not it is growth.

    Parts without a reading are left out: nothing is read while it is found out what grows.
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
    """``since`` to ``until``: the time that is judged; ``at``, ``low``: [n] it and what came before it."""
    slope, lowest = slope_of(at, low, since, until), floors(at, low, since, until)
    if slope is None or not np.isfinite(lowest).all() or slope.grown < LEAST_BYTES:
        return None
    i, j = np.triu_indices(PARTS, 1)
    quarter = PARTS // 4
    goes_on = (lowest[-1] - lowest[-1 - quarter]) * (PARTS - 1) >= STILL * quarter * slope.grown
    before = at < since
    highest = floors_before(at[before], low[before], (until - since) / PARTS)
    is_new = lowest[-1] - highest >= NEW * slope.grown
    higher = lowest[j] - lowest[i]
    rises = (higher >= EVEN * slope.grown * (j - i) / (PARTS - 1)).sum() - (higher < 0).sum()
    return slope if rises >= RISES and goes_on and is_new else None


def floors_before(at: Float64, low: Float64, width: float) -> float:
    """The highest of the lowest values of parts of this length: a short peak is not what the process holds."""
    if not len(at):
        return -np.inf
    part = np.floor((at - at[0]) / width).astype(int)
    lowest = np.full(part[-1] + 1, np.inf)
    np.minimum.at(lowest, part, low)
    return float(lowest[np.isfinite(lowest)].max())


def growth(at: Float64, low: Float64, shortest: float) -> Slope | None:
    """The one proven over the longest time. ``at``, ``low``: [n] since the training is under way; ``shortest``: seconds."""
    if not len(at):
        return None
    until, known = float(at[-1]), float(at[-1] - at[0])
    spans = [known] if known >= shortest else []
    for span in [*spans, *(shortest * each for each in reversed(SPANS))]:
        if span <= known:
            slope = proven(at, low, until - span, until)
            before = slope_of(at, low, until - 2 * span, until - span)  # None: nothing is known of it
            if slope is not None and (before is None or before.rate <= SLOWER * slope.rate):
                return slope
    return None


def until_it_stopped(at: Float64, low: Float64, since: float) -> Slope | None:
    """The growth from ``since`` until nearly all of what it reached was there."""
    slope = slope_of(at, low, since, float(at[-1]))
    if slope is None:
        return None
    reached = at[(at > since) & (low >= slope.end_bytes - NEAR * slope.grown)]
    until = float(reached[0]) if len(reached) else slope.until
    return slope._replace(until=until, rate=slope.grown / max(until - since, 1.0))


def has_stopped(at: Float64, low: Float64, found: Slope, shortest: float) -> bool:
    """Whether nothing is left of the growth in as long a time as proved it, at most the last 16 shortest ones."""
    until = float(at[-1])
    span = min(max(found.until - found.since, shortest), SPANS[-1] * shortest)
    now = slope_of(at, low, max(until - span, float(at[0])), until)
    return now is not None and now.rate < found.rate / 4
