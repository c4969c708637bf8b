"""A run's step times in bounded memory: recent steps one by one, older ones aggregated; and percentiles from a sketch.

Not thread-safe: the owner locks.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

#: So many recent steps are kept one by one; each older level holds entries of twice as many steps as the one before.
RECENT = 4096
LEVEL = 512


class Entry(NamedTuple):
    """``steps`` steps in a row; a single one has mean = min = max."""

    step: int  # number of the first, from 1
    steps: int
    start_at: float  # epoch seconds at which the first began
    mean_s: float
    min_s: float
    max_s: float


def merged(a: Entry, b: Entry) -> Entry:
    count = a.steps + b.steps
    mean = (a.mean_s * a.steps + b.mean_s * b.steps) / count
    return Entry(a.step, count, a.start_at, mean, min(a.min_s, b.min_s), max(a.max_s, b.max_s))


class History:
    """Entries in time order. 10^6 steps take some 8,000 entries, 10^9 some 13,000."""

    def __init__(self) -> None:
        self._levels: list[deque[Entry]] = [deque()]
        self.traced: deque[int] = deque(maxlen=1000)  # numbers of the steps that were traced

    def add(self, step: int, start_at: float, duration_s: float, traced: bool = False) -> None:
        if traced:
            self.traced.append(step)
        self.add_entry(Entry(step, 1, start_at, duration_s, duration_s, duration_s))

    def add_entry(self, entry: Entry) -> None:
        """Entries that stand for many steps (of a history read back) go to the level of their size."""
        level = entry.steps.bit_length() - 1
        while len(self._levels) <= level:
            self._levels.append(deque())
        self._levels[level].append(entry)
        self._settle(level)

    def _settle(self, level: int) -> None:
        while len(self._levels[level]) > (RECENT if level == 0 else LEVEL):
            if level + 1 == len(self._levels):
                self._levels.append(deque())
            older = self._levels[level]
            self._levels[level + 1].append(merged(older.popleft(), older.popleft()))
            level += 1

    def copy(self) -> History:
        other = History()
        other._levels = [level.copy() for level in self._levels]
        other.traced = self.traced.copy()
        return other

    @property
    def last_step(self) -> int:
        last = next((level[-1] for level in self._levels if level), None)
        return last.step + last.steps - 1 if last else 0

    def entries(self) -> list[Entry]:
        """Oldest first."""
        return [entry for level in reversed(self._levels) for entry in level]

    def __len__(self) -> int:
        return sum(map(len, self._levels))


class Sketch:
    """Percentiles of any number of durations, each right to 1%, in at most 2,000 counters (buckets of equal ratio)."""

    _RATIO = math.log(1.02)
    _FLOOR_S = 1e-9

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.total_s = 0.0
        self.min_s = math.inf
        self.max_s = 0.0

    def add(self, duration_s: float) -> None:
        duration_s = max(duration_s, self._FLOOR_S)
        bucket = int(math.log(duration_s / self._FLOOR_S) / self._RATIO)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1
        self.total_s += duration_s
        self.min_s = min(self.min_s, duration_s)
        self.max_s = max(self.max_s, duration_s)

    def percentile(self, share: float) -> float | None:
        """The duration below which ``share`` (0 to 1) of all lie."""
        if not self.count:
            return None
        left = share * (self.count - 1)
        for bucket in sorted(self._counts):
            left -= self._counts[bucket]
            if left < 0:
                break
        middle = self._FLOOR_S * math.exp((bucket + 0.5) * self._RATIO)
        return min(max(middle, self.min_s), self.max_s)

    @property
    def mean_s(self) -> float | None:
        return self.total_s / self.count if self.count else None
