"""How many file descriptors strangers' connections may take: a quarter of those that the script has left.

Where a process may have 256 files open (macOS's default), 256 connections of strangers made the script's own ``open()`` fail.
Used on the server's loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

SHARE = 4
EVERY_S = 1.0  # counting a thousand open files takes 0.5 ms
#: Where the open files are listed.
FILES = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")


def descriptors_left() -> int | None:
    """Those that this process can still open; None where the system does not say."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return None if limit == resource.RLIM_INFINITY else limit - sum(1 for _ in FILES.iterdir())
    except (ImportError, OSError):
        return None


class FileRoom:
    """Measured once a second at most, for the script opens and closes files, too."""

    def __init__(self, left: Callable[[], int | None] = descriptors_left, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = left
        self._clock = clock
        self._measured_at = float("-inf")
        self._places: int | None = None

    def has_place(self, held: int) -> bool:
        """held: connections that strangers have now. One is always let in: it may be no stranger's."""
        if self._clock() >= self._measured_at + EVERY_S:
            self._measured_at = self._clock()
            left = self._left()
            self._places = None if left is None else max(1, (left + held) // SHARE)
        return self._places is None or held < self._places
