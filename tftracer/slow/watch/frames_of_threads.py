"""Reads the frames of other threads, with garbage collections off.

On Python 3.11, reading a frame of a running thread allocates a frame object. This may start a collection, whose Python callbacks
let the other thread continue. Then the frame may no longer exist, and the process dies (SIGSEGV). Without collections, nothing
releases the GIL while frames are read.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType

from tftracer.slow.watch.collections_off import collections_off


@contextlib.contextmanager
def frames_of_threads() -> Iterator[dict[int, FrameType]]:
    """Yield the innermost frame of each thread. Frames may be walked (``f_back``) only inside the block."""
    with collections_off():
        frames = sys._current_frames()
        try:
            yield frames
        finally:
            frames.clear()
