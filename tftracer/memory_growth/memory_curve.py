"""A process's memory over time: every reading of the last minutes, and its whole life in a bounded number of bins."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from tftracer.trace.arrays.types import Float64

#: Maximum numbers of single readings, and of bins for the whole life. When the bins are full, neighbours are joined in pairs.
MAX_READINGS, MAX_BINS = 960, 240


class Reading(NamedTuple):
    at: float  # epoch seconds
    own: int  # resident bytes that belong to no file


class Bin(NamedTuple):
    at: float  # time of its first reading
    low: int  # bytes
    high: int


class Curve:
    """The curve of one process. ``period``: seconds between two readings."""

    def __init__(self, period: float) -> None:
        self.recent: deque[Reading] = deque(maxlen=MAX_READINGS)
        self.bins: list[Bin] = []
        self._width = period

    def add(self, reading: Reading) -> None:
        self.recent.append(reading)
        at, own = reading
        if self.bins and at < self.bins[-1].at + 0.999 * self._width:
            last = self.bins[-1]
            self.bins[-1] = Bin(last.at, min(last.low, own), max(last.high, own))
            return
        if len(self.bins) >= MAX_BINS:
            pairs = zip(self.bins[::2], self.bins[1::2])
            self.bins = [Bin(one.at, min(one.low, two.low), max(one.high, two.high)) for one, two in pairs]
            self._width *= 2
        self.bins.append(Bin(at, own, own))

    def lows(self, since: float) -> tuple[Float64, Float64]:
        """Return [n] times and [n] bytes from ``since`` on: single readings where they are kept, else the lows of bins."""
        recent = [(each.at, each.own) for each in self.recent if each.at >= since]
        begin = recent[0][0] if recent else since
        rows = [(each.at, each.low) for each in self.bins if since <= each.at < begin - self._width] + recent
        at, low = np.array(rows, float).reshape(-1, 2).T
        return at, low
