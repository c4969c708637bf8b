"""When samples of stacks were taken: told by the samples themselves.

py-spy counts its times from a moment that it does not tell, and a busy machine makes that moment uncertain by half a second. So
the training's watch thread sleeps in one of several functions in turn (``slot_0``, ``slot_1``, ...), and says in shared memory
when it begins the next one. A sample that shows the thread in a slot was taken while the slot was the current one.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

SLOTS = 16
PREFIX = "slot_"
#: Beats that are remembered: two minutes.
KEPT = 2400


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def sleeps() -> list[Callable[[float], None]]:
    """Functions that sleep, each with a name of its own."""
    return [FunctionType(_sleep.__code__.replace(**_named(f"{PREFIX}{slot}")), globals()) for slot in range(SLOTS)]


def _named(name: str) -> dict[str, Any]:
    has_qualified = hasattr(_sleep.__code__, "co_qualname")  # from Python 3.11
    return {"co_name": name, "co_qualname": name} if has_qualified else {"co_name": name}


def slot_of(function: str) -> int | None:
    """The slot of a function's name; None for any other function."""
    number = function.rpartition(".")[2][len(PREFIX) :] if function.rpartition(".")[2].startswith(PREFIX) else ""
    return int(number) if number.isdecimal() and int(number) < SLOTS else None


class SampleClock:
    """Which slot was the current one, and when."""

    def __init__(self) -> None:
        self._beats: deque[tuple[int, int]] = deque(maxlen=KEPT)  # when it began, the slot

    def add(self, at_ns: int, slot: int) -> None:
        self._beats.append((at_ns, slot))

    def offset(self, seen: Iterable[tuple[int, int]], earliest_ns: int, latest_ns: int) -> int | None:
        """The moment from which a window's times count: that which agrees with the most of its samples. None: no sample tells.

        ``seen``: (time since that moment, slot) of samples; it lies between ``earliest_ns`` and ``latest_ns``.
        """
        beats = list(self._beats)
        at = [beat for beat, _ in beats]
        edges: list[tuple[int, int]] = []
        for since, slot in seen:
            first, last = bisect_right(at, earliest_ns + since) - 1, bisect_right(at, latest_ns + since)
            for number in range(max(0, first), min(last, len(beats) - 1)):
                if beats[number][1] == slot:
                    start, end = max(earliest_ns, at[number] - since), min(latest_ns, at[number + 1] - since)
                    if start < end:
                        edges += [(start, 1), (end, -1)]
        edges.sort()
        depth, deepest, best = 0, 0, None
        for (here, change), following in zip(edges, [*edges[1:], (0, 0)]):
            depth += change
            if depth > deepest:
                deepest, best = depth, (here + following[0]) // 2
        return best

    def when(self, slot: int, earliest_ns: int, latest_ns: int) -> int:
        """When a sample was taken that shows a slot."""
        found = self.offset([(0, slot)], earliest_ns, latest_ns)
        return (earliest_ns + latest_ns) // 2 if found is None else found
