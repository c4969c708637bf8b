"""The lines that allocate what grows: Python's tracemalloc for some seconds. It slows Python down, and says for how long it did.

``tracemalloc.stop()`` alone can crash a process: a thread that waits for Python's lock within a hook of tracemalloc's goes on in
memory that was freed (seen on Python 3.11 with a ``numpy_function`` in a dataset; 3.12.9 and 3.13.2 have mended it). So Python's
allocators are put back first, and tracing ends when those threads have left the hooks.
"""

from __future__ import annotations

import ctypes
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from tftracer.slow.cause.frame_names import is_library, is_tracers

FRAMES = 32
#: NumPy's arrays have a domain of their own (``np.lib.tracemalloc_domain``).
NUMPY = 389047
#: Blocks that are known take some 100 bytes each.
MOST_BYTES = 48 << 20
LOOK_S, LEAVE_S = 0.2, 2.0
_DOMAINS = (0, 1, 2)


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


@dataclass
class Lines:
    """``seconds``: what is known is of so long a time."""

    seconds: float = 0.0
    held_s: float = 0.0  # tracemalloc was on
    python: float = 0.0  # bytes a second that Python's memory grows by
    arrays: float = 0.0  # of them, those of NumPy's arrays
    array_rate: float = 0.0  # arrays a second
    places: Counter[str] = field(default_factory=Counter)  # bytes by line
    array_places: Counter[str] = field(default_factory=Counter)


def place_of(frames: Iterable[Any]) -> str:
    """Of the innermost line that the user has written, "" if there is none. ``frames``: as tracemalloc's, the outermost first."""
    for frame in reversed(list(frames)):
        if not is_library(frame.filename):
            return f"{PurePath(frame.filename.replace(chr(92), '/')).name}:{frame.lineno}"
    return ""


def trace(
    least_s: float, most_s: float, is_enough: Callable[[], bool], wait: Callable[[float], bool], then: Callable[[], None]
) -> Lines:
    """What grows after the first third of the time. ``wait``: for seconds, True if all ends; ``then``: called before the end."""
    theirs = tracemalloc.is_tracing()
    allocators = [] if theirs else _allocators()
    began = time.monotonic()
    if not theirs:
        tracemalloc.start(FRAMES)
    try:
        _wait(began, least_s / 3, most_s, lambda: True, wait)
        first, first_at = _sizes(), time.monotonic()
        _wait(began, least_s, most_s, is_enough, wait)
        last, last_at = _sizes(), time.monotonic()
        then()
    finally:
        if not theirs:
            _stop(allocators)
    lines = _grown(first, last, last_at - first_at)
    lines.held_s = 0.0 if theirs else time.monotonic() - began
    return lines


def _wait(began: float, least_s: float, most_s: float, is_enough: Callable[[], bool], wait: Callable[[float], bool]) -> None:
    while tracemalloc.get_tracemalloc_memory() < MOST_BYTES and not wait(LOOK_S):
        passed = time.monotonic() - began
        if passed >= most_s or (passed >= least_s and is_enough()):
            break


_Sizes = dict[Any, tuple[int, int]]  # traceback -> bytes, blocks


def _sizes() -> tuple[_Sizes, _Sizes]:
    """(All, NumPy's arrays.)"""
    snapshot = tracemalloc.take_snapshot()
    arrays = snapshot.filter_traces([tracemalloc.DomainFilter(True, NUMPY)])
    return _by_traceback(snapshot.statistics("traceback")), _by_traceback(arrays.statistics("traceback"))


def _by_traceback(statistics: Sequence[tracemalloc.Statistic]) -> _Sizes:
    return {each.traceback: (each.size, each.count) for each in statistics}


def _grown(first: tuple[_Sizes, _Sizes], last: tuple[_Sizes, _Sizes], seconds: float) -> Lines:
    lines = Lines(seconds)
    for before, after, places in zip(first, last, (lines.places, lines.array_places)):
        for traceback, (size, _) in after.items():
            if not any(is_tracers(frame.filename) for frame in traceback):
                places[place_of(traceback)] += size - before.get(traceback, (0, 0))[0]
    if seconds > 0:
        lines.python, lines.arrays = (sum(places.values()) / seconds for places in (lines.places, lines.array_places))
        blocks = [sum(count for _, count in sizes.values()) for sizes in (first[1], last[1])]
        lines.array_rate = (blocks[1] - blocks[0]) / seconds
    return lines


def _allocators() -> list[_Allocator]:
    found = [_Allocator() for _ in _DOMAINS]
    for domain, allocator in zip(_DOMAINS, found):
        ctypes.pythonapi.PyMem_GetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
    return found


def _stop(allocators: list[_Allocator]) -> None:
    for domain, allocator in zip(_DOMAINS, allocators):
        ctypes.pythonapi.PyMem_SetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
    until = time.monotonic() + LEAVE_S
    while time.monotonic() < until:
        time.sleep(LOOK_S)  # each time the threads that wait for Python's lock have their turn
    tracemalloc.stop()
