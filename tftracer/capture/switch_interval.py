"""A shorter switch interval while stacks are sampled: what holds the GIL for less than it is charged to the next line.

The interval belongs to the whole interpreter. A script's own setting is respected: one that is as short is not touched, and one
that the script sets meanwhile stays.
"""

from __future__ import annotations

import sys

SHORT_S = 0.0005


class SwitchInterval:
    """Used by one thread at a time; ``restore`` also in a child after a fork."""

    def __init__(self) -> None:
        self._before: float | None = None  # the script's, while ours is set

    def shorten(self) -> None:
        if self._before is None:
            before = sys.getswitchinterval()
            if before > SHORT_S * 1.01:
                sys.setswitchinterval(SHORT_S)
                self._before = before

    def restore(self) -> None:
        before, self._before = self._before, None
        if before is not None and abs(sys.getswitchinterval() - SHORT_S) < SHORT_S * 0.01:
            sys.setswitchinterval(before)
