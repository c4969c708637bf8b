"""A run's step times in bounded memory: recent steps one by one, older ones aggregated, and percentiles of all of them.

Steps come in blocks of NumPy columns, because a loop may run 10,000 steps a second. Not thread-safe: the owner locks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from tftracer.session.steps.percentile_sketch import SketchedSteps
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Bool, Float64

#: RECENT steps are kept one by one. Each older level has LEVEL entries, which cover twice as many
#: steps as entries of the level before.
RECENT = 4096
LEVEL = 512

#: The columns of an entry, which covers ``count`` consecutive steps. ``step`` is the number of the first one, from 1,
#: ``start_at`` its start in epoch seconds; the others are seconds, and equal if the entry has one step.
COLUMNS = ("step", "count", "start_at", "mean_s", "min_s", "max_s")
_STEP, _COUNT, _START, _MEAN, _MIN, _MAX = range(6)
_NO_ENTRIES: Float64 = np.zeros((0, 6))


def merged_pairs(rows: Float64) -> Float64:
    """Merge entries 0 and 1, entries 2 and 3, ..."""
    first, second = rows[0::2], rows[1::2]
    both = first.copy()
    both[:, _COUNT] = first[:, _COUNT] + second[:, _COUNT]
    both[:, _MEAN] = (first[:, _MEAN] * first[:, _COUNT] + second[:, _MEAN] * second[:, _COUNT]) / both[:, _COUNT]
    both[:, _MIN] = np.minimum(first[:, _MIN], second[:, _MIN])
    both[:, _MAX] = np.maximum(first[:, _MAX], second[:, _MAX])
    return both


class History:
    """Entries in time order. 10^6 steps take some 8,000 entries, 10^9 some 13,000, of 48 bytes each."""

    def __init__(self) -> None:
        self._levels: list[Float64] = [_NO_ENTRIES]  # an array is replaced, never changed: copies share them
        self.traced: deque[int] = deque(maxlen=1000)  # numbers of the steps that were traced
        self.sketched = SketchedSteps()

    def add(self, first_step: int, starts: Float64, durations: Float64, traced: Sequence[int] = ()) -> None:
        """Add consecutive steps from number ``first_step``. ``traced``: positions among them, in order."""
        self.sketched.add(first_step, durations, self._traced_or_after(first_step, len(durations), traced))
        self.traced.extend(first_step + position for position in traced)
        numbers = np.arange(first_step, first_step + len(starts), dtype=np.float64)
        self._extend(0, np.stack([numbers, np.ones(len(starts)), starts, durations, durations, durations], axis=1))

    def _traced_or_after(self, first_step: int, steps: int, traced: Sequence[int]) -> Bool:
        """Return [steps]: whether each was traced, or came right after a traced one."""
        after_last = bool(self.traced) and self.traced[-1] == first_step - 1
        mask = np.zeros(steps + 1, bool)
        mask[0] = after_last
        for distance in (0, 1):
            mask[np.asarray(traced, int) + distance] = True
        return mask[:steps]

    def add_entries(self, rows: Float64) -> None:
        """Add entries that were read from a file, each to the level of its size."""
        levels = np.clip(np.log2(np.maximum(rows[:, _COUNT], 1)), 0, 40).astype(int)
        for level in distinct(levels)[::-1].tolist():
            self._extend(level, rows[levels == level])

    def _extend(self, level: int, rows: Float64) -> None:
        while len(rows):
            while len(self._levels) <= level:
                self._levels.append(_NO_ENTRIES)
            rows = np.concatenate([self._levels[level], rows])
            excess = max(0, len(rows) - (RECENT if level == 0 else LEVEL))
            excess += excess % 2
            self._levels[level] = rows[excess:].copy()  # a view would keep the whole array
            rows, level = merged_pairs(rows[:excess]), level + 1

    def copy(self) -> History:
        other = History()
        other._levels, other.traced, other.sketched = list(self._levels), self.traced.copy(), self.sketched.copy()
        return other

    @property
    def last_step(self) -> int:
        last = next((level[-1] for level in self._levels if len(level)), None)
        return 0 if last is None else int(last[_STEP] + last[_COUNT]) - 1

    def entries(self) -> Float64:
        """Return [n, 6], oldest first. See COLUMNS."""
        return np.concatenate(self._levels[::-1])
