"""A range of raw bytes as arrays: of bytes, and of the little-endian 8-byte words that begin at each byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.types import Int64

#: Number of messages read together: their columns fit into the second-level cache, and most time is spent within NumPy, which
#: releases the GIL.
BLOCK = 1 << 15
#: A window can be read this far past its end: the longest run of unchecked varints is shorter.
PADDING = 512


class Window:
    """raw[low:high], with at least PADDING more readable bytes after it. Positions are relative to ``low``."""

    __slots__ = ("bytes", "low", "size", "words")

    def __init__(self, raw: bytes, low: int, high: int) -> None:
        self.low = low
        self.size = high - low
        if high + PADDING <= len(raw):
            self.bytes = np.frombuffer(raw, np.uint8, self.size + PADDING, low)
        else:  # near the end of ``raw``: copy, and pad with zeros
            self.bytes = np.empty(self.size + PADDING, np.uint8)
            self.bytes[: self.size] = np.frombuffer(raw, np.uint8, self.size, low)
            self.bytes[self.size :] = 0
        self.words: npt.NDArray[Any] = np.ndarray((len(self.bytes) - 7,), "<u8", self.bytes, strides=(1,))


def blocks(raw: bytes, begin: Int64, end: Int64, size: int = BLOCK) -> Iterator[tuple[slice, Window, Int64, Int64]]:
    """Yield (rows, window, begins, ends) of blocks of messages or texts; positions are relative to the window."""
    for first in range(0, len(begin), size):
        rows = slice(first, min(first + size, len(begin)))
        low, high = int(begin[rows].min()), int(end[rows].max())
        yield rows, Window(raw, low, high), begin[rows] - low, end[rows] - low
