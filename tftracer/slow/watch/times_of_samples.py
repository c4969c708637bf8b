"""Finds the times of stack samples from the samples themselves.

py-spy's times count from a moment that it does not print; on a busy machine this moment is uncertain by half a second. So the
training's watch thread sleeps in several functions in turn (``slot_0``, ``slot_1``, ...). When it enters the next function, it
writes the time to shared memory: a *beat*. A sample that shows the thread in a slot was taken while that slot was current.
"""

from __future__ import annotations

import mmap
import struct
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

SLOTS = 64
PREFIX = "slot_"
#: Maximum number of beats that are kept (two minutes), and of beats in shared memory (six seconds).
MAX_BEATS, MAX_SHARED = 2400, 128
#: Shared memory: native id of the watch's thread, number of beats so far, and the times of the last beats.
HEADER, BEAT = struct.Struct("qq"), struct.Struct("q")
PULSE_BYTES = HEADER.size + MAX_SHARED * BEAT.size
#: If the next beat was lost, a beat is assumed to have lasted at most this long.
UNKNOWN_NS = 50_000_000
NEVER = 1 << 62


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def sleeps() -> list[Callable[[float], None]]:
    """Return functions that sleep, each with a different name."""
    return [FunctionType(_sleep.__code__.replace(**_named(f"{PREFIX}{slot}")), globals()) for slot in range(SLOTS)]


def _named(name: str) -> dict[str, Any]:
    has_qualified = hasattr(_sleep.__code__, "co_qualname")  # from Python 3.11
    return {"co_name": name, "co_qualname": name} if has_qualified else {"co_name": name}


def slot_of(function: str) -> int | None:
    """Return the slot of a function's name; None for any other function."""
    number = function.rpartition(".")[2][len(PREFIX) :] if function.rpartition(".")[2].startswith(PREFIX) else ""
    return int(number) if number.isdecimal() and int(number) < SLOTS else None


def write_beat(memory: mmap.mmap, native: int, number: int, at_ns: int) -> None:
    """Write that the thread begins its sleep ``number`` (from 0), in slot ``number % SLOTS``."""
    BEAT.pack_into(memory, HEADER.size + number % MAX_SHARED * BEAT.size, at_ns)
    HEADER.pack_into(memory, 0, native, number + 1)


def read_beats(memory: mmap.mmap, since: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the thread, and (number, start) of the beats from ``since`` on that are still in the memory."""
    native, count = HEADER.unpack_from(memory)
    numbers = range(max(since, count - MAX_SHARED + 1), count)
    return native, [(number, BEAT.unpack_from(memory, HEADER.size + number % MAX_SHARED * BEAT.size)[0]) for number in numbers]


class SampleClock:
    """The times at which the watch's thread entered each slot."""

    def __init__(self) -> None:
        self._beats: deque[tuple[int, int]] = deque(maxlen=MAX_BEATS)  # (start, number)

    def add(self, number: int, at_ns: int) -> None:
        self._beats.append((at_ns, number))

    def offset(self, seen: Iterable[tuple[int, int]], earliest_ns: int, latest_ns: int) -> int | None:
        """Return the moment from which a window's times count: the one that fits the most samples. None: not known.

        The moment lies between ``earliest_ns`` and ``latest_ns``. ``seen``: (time since that moment, slot) of samples.
        """
        beats = list(self._beats)
        edges: list[tuple[int, int]] = []  # where each sample's range of possible moments begins (1) and ends (-1)
        for since, slot in seen:
            for begun, ended in _times_of(slot, beats, earliest_ns + since, latest_ns + since):
                start, end = max(earliest_ns, begun - since), min(latest_ns, ended - since)
                if start < end:
                    edges += [(start, 1), (end, -1)]
        edges.sort()
        depth, deepest, best = 0, 0, None
        for (moment, change), following in zip(edges, [*edges[1:], (0, 0)]):
            depth += change
            if depth > deepest:
                deepest, best = depth, (moment + following[0]) // 2
        return best

    def when(self, slot: int, earliest_ns: int, latest_ns: int) -> int:
        """Return the time of a sample that shows a slot: the middle of the possible times."""
        at = self.offset([(0, slot)], earliest_ns, latest_ns)
        return (earliest_ns + latest_ns) // 2 if at is None else at

    def last_moment(self, slot: int, earliest_ns: int, latest_ns: int) -> int:
        """Return the latest possible time of a sample that shows a slot. ``latest_ns``: its time stamp, which may be too late."""
        times = _times_of(slot, list(self._beats), earliest_ns, latest_ns)
        return min(latest_ns, max((ended for _, ended in times), default=latest_ns))


def _times_of(slot: int, beats: list[tuple[int, int]], earliest_ns: int, latest_ns: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of a slot's beats that overlap a span. The last beat has not ended."""
    first = max(0, bisect_right(beats, (earliest_ns, 0)) - 1)
    for index in range(first, bisect_right(beats, (latest_ns, 0))):
        begun, number = beats[index]
        if number % SLOTS == slot:
            following, next_number = beats[index + 1] if index + 1 < len(beats) else (NEVER, number + 1)
            yield begun, following if next_number == number + 1 else min(following, begun + UNKNOWN_NS)
