"""Frames of other threads, read with garbage collections off.

On Python 3.11 reading a frame of a running thread makes a frame object. That allocation may start a collection, whose Python
callbacks let the other thread go on; the frame is gone then, and the process dies (SIGSEGV). Without a collection nothing lets
the GIL go while frames are read.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType

from tftracer.slow.watch.collections_off import collections_off


@contextlib.contextmanager
def frames_of_threads() -> Iterator[dict[int, FrameType]]:
    """The innermost frame of each thread. Frames may be walked (``f_back``) inside of the block alone."""
    with collections_off():
        frames = sys._current_frames()
        try:
            yield frames
        finally:
            frames.clear()
