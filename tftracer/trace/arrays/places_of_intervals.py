"""Assigns intervals to places (such as threads): an interval takes the place that became free last. Pure NumPy, O(n log n)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.types import Int64


def running_and_predecessors(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Return ``(running, before)`` of intervals that are sorted by start and not empty.

    ``running``: [n] the number of earlier intervals that contain each start. ``before``: [n] the interval whose place each one
    takes, -1 if it opens a new place. An interval can take the place of one that ends at the moment at which it starts.

    At each number of running intervals (level), starts and ends alternate, so the j-th start at a level takes the place of the
    (j-1)-th end at that level. A column of 2^20 intervals takes 8 MB, so each is freed as early as possible.
    """
    n = len(start)
    by_end = np.argsort(end, kind="stable")
    ends = end[by_end]
    running = np.searchsorted(ends, start, "right")
    np.subtract(np.arange(n), running, out=running)
    still_running = np.searchsorted(start, ends, "left")  # the number running after each end, by end
    del ends
    still_running -= np.arange(1, n + 1)
    levels = int(running.max(initial=0)) + 1
    ends_by_level = by_end[np.argsort(narrow(still_running, levels), kind="stable")]
    del by_end, still_running
    level = narrow(running, levels)
    starts_by_level = np.argsort(level, kind="stable")
    before = np.full(n, -1, np.int64)
    before[starts_by_level[1:]] = ends_by_level[:-1]
    level = level[starts_by_level]
    before[starts_by_level[1:][level[1:] != level[:-1]]] = -1
    return running, before


def narrow(values: Int64, bound: int) -> npt.NDArray[np.integer[Any]]:
    """Convert values below ``bound`` to the smallest integer type: NumPy sorts small integers in linear time."""
    if bound <= 1 << 8:
        return values.astype(np.uint8)
    return values.astype(np.uint16) if bound <= 1 << 16 else values.astype(np.int32)
