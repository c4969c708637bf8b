"""Percentiles of any number of step times, accurate to 1%, in a few KB. Not thread-safe: the owner locks."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable

import numpy as np

from tftracer.trace.arrays.types import Bool, Float64, Int64

#: The largest relative error of a percentile.
ERROR = 0.01
_RATIO = math.log(1.02)  # so the middle of a bucket is 1% from its ends
_FLOOR_S = 1e-9  # start of the first bucket; shorter durations count as this
_BUCKETS = 1800  # up to 3,000,000 s


class Sketch:
    """A histogram of durations: each bucket ends at the same multiple of its start. Only buckets in the seen range are kept."""

    def __init__(self) -> None:
        self._low = 0  # bucket of the first counter
        self._counts: Int64 = np.zeros(0, np.int64)
        self.count = 0
        self.total_s = 0.0
        self.min_s = math.inf
        self.max_s = 0.0

    def add(self, durations: Float64) -> None:
        if not len(durations):
            return
        durations = np.maximum(durations, _FLOOR_S)
        buckets = np.minimum(np.log(durations / _FLOOR_S) / _RATIO, _BUCKETS - 1).astype(np.int64)
        low = int(buckets.min())
        self._add_counts(low, np.bincount(buckets - low))
        self.total_s += float(durations.sum())
        self.min_s = min(self.min_s, float(durations.min()))
        self.max_s = max(self.max_s, float(durations.max()))

    def _add_counts(self, low: int, counts: Int64) -> None:
        """Add counts. Makes a new array, because copies of this sketch share the old one."""
        if not self.count:
            self._low, self._counts = low, np.zeros(0, np.int64)
        first, end = min(self._low, low), max(self._low + len(self._counts), low + len(counts))
        merged = np.zeros(end - first, np.int64)
        merged[self._low - first : self._low - first + len(self._counts)] = self._counts
        merged[low - first : low - first + len(counts)] += counts
        self._low, self._counts, self.count = first, merged, self.count + int(counts.sum())

    def percentile(self, share: float) -> float | None:
        """Return the duration below which ``share`` (0 to 1) of all durations are; None without durations."""
        if not self.count:
            return None
        rank = math.floor(share * (self.count - 1))
        bucket = self._low + int(np.searchsorted(np.cumsum(self._counts), rank, side="right"))
        middle = _FLOOR_S * math.exp((bucket + 0.5) * _RATIO)
        return min(max(middle, self.min_s), self.max_s)

    @property
    def mean_s(self) -> float | None:
        return self.total_s / self.count if self.count else None

    @classmethod
    def merged(cls, sketches: Iterable[Sketch]) -> Sketch:
        total = cls()
        for each in sketches:
            if each.count:
                total._add_counts(each._low, each._counts)
                total.total_s += each.total_s
                total.min_s, total.max_s = min(total.min_s, each.min_s), max(total.max_s, each.max_s)
        return total

    def counters(self) -> tuple[Int64, Int64]:
        """Return the buckets that are not empty, and their counts."""
        filled = np.flatnonzero(self._counts)
        return filled + self._low, self._counts[filled]

    @classmethod
    def of_counters(cls, buckets: Int64, counts: Int64) -> Sketch:
        """Restore a sketch from its counters. Its mean, minimum and maximum are only as exact as the buckets."""
        sketch = cls()
        valid = (buckets >= 0) & (buckets < _BUCKETS) & (counts > 0)
        if valid.any():
            buckets, counts = buckets[valid], counts[valid]
            dense = np.zeros(int(buckets.max() - buckets.min()) + 1, np.int64)
            np.add.at(dense, buckets - buckets.min(), counts)
            sketch._add_counts(int(buckets.min()), dense)
            middles = _FLOOR_S * np.exp((buckets + 0.5) * _RATIO)
            sketch.total_s = float((middles * counts).sum())
            sketch.min_s, sketch.max_s = float(middles.min()), float(middles.max())
        return sketch


class SketchedSteps:
    """At most ``MAX_SKETCHES`` sketches of a run's steps, each of equally many consecutive steps.

    ``after`` leaves out the sketches of early steps. Traced steps, and the slower steps right after them, are in no sketch.
    """

    MAX_SKETCHES = 16
    SHORTEST = 512  # steps

    def __init__(self, first_step: int = 1, length: int = SHORTEST, sketches: Iterable[Sketch] = ()) -> None:
        self.first_step = first_step
        self.length = length
        self.sketches = list(sketches)

    def add(self, first_step: int, durations: Float64, left_out: Bool) -> None:
        """Add consecutive steps from number ``first_step``, without those of the mask ``left_out``."""
        if not self.sketches:
            self.first_step = first_step
        while len(durations):
            number = max(0, first_step - self.first_step) // self.length
            if number >= self.MAX_SKETCHES:
                self._halve()
                continue
            while len(self.sketches) <= number:
                self.sketches.append(Sketch())
            fitting = self.first_step + (number + 1) * self.length - first_step
            self.sketches[number].add(durations[:fitting][~left_out[:fitting]])
            first_step, durations, left_out = first_step + fitting, durations[fitting:], left_out[fitting:]

    def _halve(self) -> None:
        self.sketches = [Sketch.merged(self.sketches[i : i + 2]) for i in range(0, len(self.sketches), 2)]
        self.length *= 2

    def after(self, step: float) -> Sketch:
        """Merge the sketches that begin after ``step``. Later steps that are in the same sketch as ``step`` are left out."""
        return self.within(math.floor(step) + 1, math.inf)

    def within(self, first: float, end: float, min_share: float = 1.0) -> Sketch:
        """Merge the sketches that have at least ``min_share`` of their steps from ``first`` on and before ``end``."""
        starts = [self.first_step + number * self.length for number in range(len(self.sketches))]
        return Sketch.merged(
            sketch
            for start, sketch in zip(starts, self.sketches)
            if min(start + self.length, end) - max(start, first) >= min_share * self.length
        )

    def copy(self) -> SketchedSteps:
        return SketchedSteps(self.first_step, self.length, map(copy.copy, self.sketches))
