"""Limits how large a file may become when its references are followed: calls of calls, readers of readers.

A file may name the same thing any number of times at a few bytes each, so its size does not bound what it expands to.
"""

from __future__ import annotations

#: Every graph may take LEAST bytes; a large one FACTOR times its own size, up to MOST. Real steps take 2 to 20 times theirs.
LEAST, FACTOR, MOST = 64 << 20, 50, 512 << 20
#: Bytes that one node, input or argument takes in addition to its text, roughly.
ITEM = 300


class Expansion:
    """The bytes that a file of ``size`` bytes may still expand to: ``left``."""

    def __init__(self, size: int) -> None:
        self.left = min(MOST, LEAST + FACTOR * size)

    def admits(self, items: int, characters: int = 0) -> bool:
        """Reserves room for these. False if there was none, and for everything after that."""
        cost = ITEM * items + characters
        self.left = self.left - cost if cost <= self.left else 0
        return self.left > 0
