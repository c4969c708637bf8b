"""Sets of moments as sorted, disjoint intervals (union, intersection, difference), and distinct values of columns.

Pure NumPy on int64 without shared state: any thread may use it. Intervals are half-open, ``[start, end)``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.types import Bool, Float64, Int32, Int64

Sorted = TypeVar("Sorted", Int32, Int64)
Item = TypeVar("Item")

#: Later than every time of a trace; the difference of -FAR and FAR still fits into int64.
FAR = 1 << 61

_FEW = 8  # up to this many wanted values are compared one by one


@dataclass(frozen=True, eq=False)
class Cover:
    """Sorted, disjoint intervals; none is empty, no two touch."""

    start: Int64
    end: Int64

    @classmethod
    def of(cls, start: Int64, end: Int64) -> Cover:
        """Return the union of intervals in any order. O(n log n), faster if nearly sorted."""
        not_empty = end > start
        if not not_empty.all():
            start, end = start[not_empty], end[not_empty]
        if not len(start):
            return cls.empty()
        if np.any(start[1:] < start[:-1]):
            order = np.argsort(start, kind="stable")
            start, end = start[order], end[order]
        reached = np.maximum.accumulate(end)
        is_first = np.empty(len(start), bool)  # of a group of intervals that overlap or touch
        is_first[0] = True
        np.greater(start[1:], reached[:-1], out=is_first[1:])
        is_last = np.append(is_first[1:], True)
        return cls(start[is_first], reached[is_last])

    @classmethod
    def empty(cls) -> Cover:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def span(cls, start: int, end: int) -> Cover:
        """Return a cover of one interval, or of none if it is empty."""
        return cls.of(np.array([start], np.int64), np.array([end], np.int64))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> int:
        """The sum of the lengths."""
        return int((self.end - self.start).sum())

    def contains(self, times: Int64) -> Bool:
        """Return for each time whether it is in ``[start, end)`` of an interval."""
        return np.searchsorted(self.start, times, "right") > np.searchsorted(self.end, times, "right")

    def contains_before(self, times: Int64) -> Bool:
        """Return for each time whether it is in ``(start, end]`` of an interval."""
        return np.searchsorted(self.start, times, "left") > np.searchsorted(self.end, times, "left")

    def within(self, start: Int64, end: Int64) -> Int64:
        """Return the covered length of each interval ``[start, end)``."""
        return self._covered_before(end) - self._covered_before(start)

    def _covered_before(self, times: Int64) -> Int64:
        """Return the covered length before each time."""
        if not len(self):
            return np.zeros(len(times), np.int64)
        total = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.end - self.start, out=total[1:])
        at = np.searchsorted(self.start, times, "right") - 1
        inside = np.clip(times, self.start[at], self.end[at]) - self.start[at]
        return np.where(at < 0, 0, total[at] + inside)

    def __or__(self, other: Cover) -> Cover:
        if not len(self) or not len(other):
            return other if not len(self) else self
        return Cover.of(np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end]))

    def __and__(self, other: Cover) -> Cover:
        if not len(self) or not len(other):
            return Cover.empty()
        starts = np.concatenate([self.start[other.contains(self.start)], other.start[self.contains(other.start)]])
        ends = np.concatenate([self.end[other.contains_before(self.end)], other.end[self.contains_before(other.end)]])
        return Cover(distinct(starts), distinct(ends))  # a boundary that both share counts once

    def __sub__(self, other: Cover) -> Cover:
        return self & other.complement() if len(other) else self

    def complement(self) -> Cover:
        """Return every moment from ``-FAR`` to ``FAR`` that is not covered."""
        return Cover(np.concatenate([[-FAR], self.end]), np.concatenate([self.start, [FAR]]))


def concatenated(parts: Sequence[Int64]) -> Int64:
    """Concatenate the parts; an empty column if there are none."""
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def distinct(values: Sorted) -> Sorted:
    """Return the distinct values, sorted.

    ``np.unique`` hashes since NumPy 2.3. It takes 2 s instead of 20 ms and holds the GIL; and a process that exits while one of
    its daemon threads hashes is aborted ("terminate called without an active exception").
    """
    values = np.sort(values)
    new = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def is_in(values: npt.NDArray[Any], wanted: npt.ArrayLike) -> Bool:
    """Return for each value whether it is one of ``wanted``. ``np.isin`` may hash: see ``distinct``."""
    among = np.asarray(wanted).ravel()
    if len(among) <= _FEW:
        is_wanted = np.zeros(np.shape(values), np.bool_)
        for value in among:
            is_wanted |= values == value
        return is_wanted
    return positions_in(distinct(among), values) >= 0


def positions_in(ordered: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> Int64:
    """Return [wanted] the position of each value in ``ordered``, whose values ascend: its first; -1 if it is not there."""
    if not len(ordered):
        return np.full(np.shape(wanted), -1, np.int64)
    position = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[position] == wanted, position, -1)


class Numbering:
    """Numbers the distinct values of a column 0, 1, ... in sorted order. The values are not negative.

    Uses a table if it would not be too large: a search in the sorted values takes forty times as long.
    """

    def __init__(self, values: Int64) -> None:
        size = int(values.max(initial=-1)) + 1
        self._table: Int64 | None = None
        if size <= 16 * len(values) + (1 << 16):
            is_present = np.zeros(size + 1, np.bool_)
            is_present[values] = True
            self.values = np.flatnonzero(is_present)
            self._table = np.full(size + 1, -1, np.int64)
            self._table[self.values] = np.arange(len(self.values))
        else:
            self.values = distinct(values)

    def __len__(self) -> int:
        return len(self.values)

    def __call__(self, wanted: Int64) -> Int64:
        """Return the number of each value, -1 for unknown values."""
        if self._table is not None:
            last = len(self._table) - 1  # its entry is always -1
            return self._table[np.where((wanted < 0) | (wanted > last), last, wanted)]
        return positions_in(self.values, wanted)


def fair_shares(start: Int64, end: Int64, running: Bool | None = None) -> tuple[Float64, Float64]:
    """Split every moment evenly between the intervals that cover it.

    Return ``(share, alone)``, float64[n]. ``share``: each interval's part of the moments in which ``running`` intervals (default:
    all) run; only those get a part. ``alone``: each other interval's part of the moments in which no ``running`` interval runs.
    The sum of both is the length of the union.
    """
    n = len(start)
    running = np.ones(n, bool) if running is None else running
    times = np.concatenate([start, end])
    del start, end  # for 2^20 intervals each of these columns takes 8 or 16 MB
    order = np.argsort(times, kind="stable")
    gap = times[order]
    del times
    np.subtract(gap[1:], gap[:-1], out=gap[:-1])
    gap[-1:] = 0
    active = _running(running, order)
    share = _split(gap, active, order, n)
    share[~running] = 0.0
    if running.all():
        return share, np.zeros(n)
    waiting = _running(~running, order)
    waiting[active > 0] = 0
    alone = _split(gap, waiting, order, n)
    alone[running] = 0.0
    return share, alone


def _running(selected: Bool, order: Int64) -> npt.NDArray[np.int32]:
    """Return how many of the selected intervals run after each start and end, in the order of time."""
    change = selected.astype(np.int8)
    return np.cumsum(np.concatenate([change, -change])[order], dtype=np.int32)


def _split(gap: Int64, active: npt.NDArray[np.int32], order: Int64, n: int) -> Float64:
    """Return for each interval the sum of the gaps (between starts and ends) that it covers, each divided by ``active``."""
    portion = np.zeros(2 * n)
    np.divide(gap, active, out=portion, where=active > 0)
    before = np.cumsum(portion)
    before -= portion
    portion[order] = before
    return np.maximum(portion[n:] - portion[:n], 0.0)


def running_and_predecessors(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Assign intervals to places (such as threads): an interval takes the place that became free last.

    Return ``(running, before)`` of intervals that are sorted by start and not empty.

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
    smallest = np.min_scalar_type(int(running.max(initial=0)))  # NumPy sorts small integers in linear time
    ends_by_level = by_end[np.argsort(still_running.astype(smallest), kind="stable")]
    del by_end, still_running
    level = running.astype(smallest)
    starts_by_level = np.argsort(level, kind="stable")
    before = np.full(n, -1, np.int64)
    before[starts_by_level[1:]] = ends_by_level[:-1]
    level = level[starts_by_level]
    before[starts_by_level[1:][level[1:] != level[:-1]]] = -1
    return running, before


def batches(n: int, size: int = 2000) -> Iterator[range]:
    """Yield 0..n in short ranges, for Python loops: the training threads get the GIL between two ranges.

    A thread waits up to 5 ms for the GIL (``sys.getswitchinterval``) unless its holder releases it. 2,000 iterations take about
    1 ms, and a sleep of 20 µs always releases the GIL.
    """
    for first in range(0, n, size):
        if first:
            time.sleep(2e-5)
        yield range(first, min(first + size, n))


def paced(items: Iterable[Item], size: int = 2000) -> Iterator[Item]:
    """Yield the items, with the pauses of ``batches``."""
    for number, item in enumerate(items):
        if number and not number % size:
            time.sleep(2e-5)
        yield item
