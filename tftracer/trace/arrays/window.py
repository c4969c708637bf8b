"""A range of raw bytes as arrays: of bytes, and of the little-endian 8-byte words that begin at each byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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
