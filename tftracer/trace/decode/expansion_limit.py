"""Limits the size of a graph when its references are expanded, such as nested calls.

A file may refer to the same function any number of times at a few bytes each, so the size of the file does not limit the size of
the graph.
"""

from __future__ import annotations

#: Every graph may take MIN_BYTES, plus FACTOR times its own size, up to MAX_BYTES. Real steps take 2 to 20 times their size.
MIN_BYTES, FACTOR, MAX_BYTES = 64 << 20, 50, 512 << 20
#: Approximate bytes of one node, input or argument in addition to its text.
ITEM_BYTES = 300


class Expansion:
    """The number of bytes (``left``) by which the graph of a file of ``size`` bytes may still grow."""

    def __init__(self, size: int) -> None:
        self.left = min(MAX_BYTES, MIN_BYTES + FACTOR * size)

    def admits(self, items: int, characters: int = 0) -> bool:
        """Reserve room for items and characters. Return whether there is enough; after the first False, always False."""
        cost = ITEM_BYTES * items + characters
        self.left = self.left - cost if cost <= self.left else 0
        return self.left > 0
