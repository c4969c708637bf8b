"""Finds where a run's usual step time changed for good, or whether it drifts.

It compares the times by their ranks (positions in the sorted list), so that outliers count little. A change must be both beyond
chance and large enough to matter.

An old entry of the history has the mean of many steps, which slow steps make larger than their median. So how large a change is,
and whether there is one, is decided by the medians before and after it. Where a median is not known, no change is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tftracer.contract.stalls import Drift, StepChange
from tftracer.session.steps.history import History
from tftracer.trace.arrays.intervals import is_in
from tftracer.trace.arrays.types import Float64

#: Maximum number of points that are compared. In longer histories, each point is the median of several entries.
MAX_POINTS = 400
#: Minimum number of points on either side of a change.
MIN_POINTS = 8
#: Minimum deviation of a change, in standard deviations of the rank sum. The best of 400 splits of pure noise stays below 4.
BEYOND_CHANCE = 5.0
#: Minimum size of a change or a drift, as a share of the time before it.
MIN_CHANGE = 0.05
MAX_CHANGES = 8
#: A sketch of step times counts for a range if at least this share of its steps is in it: the rest hardly changes a median.
MIN_WITHIN = 0.8


def step_changes(history: History) -> tuple[list[StepChange], Drift | None]:
    """Return (the changes in order of steps, None), or ([], the drift) if a drift fits better."""
    rows = _untraced(history)
    steps, times = _points(rows)
    edges = [0, *sorted(_splits(times, 0)), len(times)]
    first_steps = [*steps.tolist(), math.inf]

    def usual(start: int, end: int) -> float | None:
        return _usual(history, rows, first_steps[start], first_steps[end])

    drift = _drift(steps, times, edges, usual)
    if drift:
        return [], drift
    while len(edges) > 2:
        levels = [usual(start, end) for start, end in zip(edges, edges[1:])]
        sizes = [_size(*pair) for pair in zip(levels, levels[1:])]
        smallest = sizes.index(min(sizes))
        if sizes[smallest] >= MIN_CHANGE:
            known = [level for level in levels if level is not None]  # all of them
            parts = zip(edges[1:], known, known[1:])
            return [{"step": int(steps[at]), "before_s": before, "after_s": after} for at, before, after in parts], None
        del edges[smallest + 1]  # the medians do not show it
    return [], None


def _untraced(history: History) -> Float64:
    """Return the history's entries without traced steps. Entries of several steps stay, also if some were traced."""
    rows = history.entries()
    step, count = rows.T[:2]
    untraced: Float64 = rows[~((count == 1) & is_in(step, np.array(history.traced, float)))]
    return untraced


def _usual(history: History, rows: Float64, first: float, end: float) -> float | None:
    """Return the median of the untraced steps from number ``first`` to the one before ``end``, in seconds; None if not known.

    ``rows``: untraced entries.
    """
    _, count, _, mean = rows[(rows[:, 0] >= first) & (rows[:, 0] < end)].T[:4]
    return float(np.median(mean)) if (count == 1).all() else history.sketched.within(first, end, MIN_WITHIN).percentile(0.5)


def _size(before_s: float | None, after_s: float | None) -> float:
    """Return the size of a change as a share of the time before it; 0 if a median is not known."""
    return abs(after_s - before_s) / before_s if before_s is not None and after_s is not None else 0.0


def _points(rows: Float64) -> tuple[Float64, Float64]:
    """Divide entries into groups of the same size; return the first step and the median time of each group."""
    step, _, _, mean = rows.T[:4]
    size = max(1, -(-len(step) // MAX_POINTS))
    starts = range(0, len(step), size)
    return step[::size], np.array([np.median(mean[at : at + size]) for at in starts], float)


def _splits(times: Float64, splits_before: int) -> list[int]:
    """Return the positions where the level changes."""
    if len(times) < 2 * MIN_POINTS or splits_before >= MAX_CHANGES:
        return []
    at, deviations = _best_split(times)
    before, after = float(np.median(times[:at])), float(np.median(times[at:]))
    if deviations < BEYOND_CHANCE or abs(after - before) < MIN_CHANGE * before:
        return []
    left = _splits(times[:at], splits_before + 1)
    right = _splits(times[at:], splits_before + 1 + len(left))
    return [*left, at, *(at + position for position in right)]


def _best_split(times: Float64) -> tuple[int, float]:
    """Return the split whose sides differ most in rank, and by how many standard deviations (Mann-Whitney)."""
    n = len(times)
    left = np.arange(MIN_POINTS, n - MIN_POINTS + 1)
    sums = np.cumsum(ranks(times))[left - 1]
    deviations = np.abs(sums - left * (n + 1) / 2) / np.sqrt(left * (n - left) * (n + 1) / 12)
    best = int(np.argmax(deviations))
    return int(left[best]), float(deviations[best])


def ranks(values: Float64) -> Float64:
    """Return the rank of each value, from 1. Equal values share the mean of their ranks."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    shared: Float64 = (ends - (sizes - 1) / 2)[group.reshape(-1)]
    return shared


def _drift(steps: Float64, times: Float64, edges: list[int], usual: Callable[[int, int], float | None]) -> Drift | None:
    """Return the straight line through the medians of the first and last quarter, if it fits better than levels do.

    ``usual``: (start, end) -> the usual time of the points from position ``start`` to the one before ``end``.
    """
    n = len(times)
    if n < 4 * MIN_POINTS:
        return None
    position = np.arange(1.0, n + 1)
    deviations = abs(np.corrcoef(ranks(times), position)[0, 1]) * np.sqrt(n - 1) if np.ptp(times) else 0.0
    quarter = n // 4
    first, last = float(np.median(times[:quarter])), float(np.median(times[-quarter:]))
    if deviations < BEYOND_CHANCE or abs(last - first) < MIN_CHANGE * first:
        return None
    slope = (last - first) / (n - quarter)
    line = first + slope * (np.arange(n) - (quarter - 1) / 2)
    levels = np.concatenate([np.full(end - start, np.median(times[start:end])) for start, end in zip(edges, edges[1:])])
    if _cost(times - line, 2) >= _cost(times - levels, 2 * len(edges) - 3):
        return None
    first_s, last_s = usual(0, quarter), usual(n - quarter, n)
    if first_s is None or last_s is None:
        return None
    first, last = first_s, last_s
    if (last - first) * slope <= 0 or abs(last - first) < MIN_CHANGE * first:
        return None  # the medians do not show it
    beyond = (last - first) / (n - quarter) * (quarter - 1) / 2
    return {"first_step": int(steps[0]), "last_step": int(steps[-1]), "first_s": first - beyond, "last_s": last + beyond}


def _cost(residuals: Float64, parameters: int) -> float:
    """Return the cost of a fit: its residuals, and a penalty for each fitted parameter (Bayesian information criterion)."""
    n = len(residuals)
    return float(n * np.log(max(float(np.abs(residuals).mean()), 1e-12)) + parameters * np.log(n) / 2)
