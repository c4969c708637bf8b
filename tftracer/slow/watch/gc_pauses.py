"""Python's garbage collections, by ``gc.callbacks``: exact, where samples of stacks would blame the next line.

The callback runs on the thread that collects, often a training thread, between two of its bytecodes: two clock reads and a few
additions for each collection.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Mapping
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple

#: Pauses that are kept to tell what a slow step's time went into; shorter ones count in the sums alone.
MAX_PAUSES = 4096
SHORTEST_NS = 100_000


class Pause(NamedTuple):
    thread: int
    start_ns: int  # perf_counter
    end_ns: int
    generation: int


class GcPauses:
    """``under_way``: as StepQueue's. Sums are read from any thread."""

    def __init__(self, under_way: Mapping[int, int], failed: Callable[[BaseException], None]) -> None:
        self.between_ns: dict[int, int] = {}  # thread -> between its steps
        self.recent: deque[Pause] = deque(maxlen=MAX_PAUSES)
        self.unreported: deque[Pause] = deque(maxlen=MAX_PAUSES)  # for the page, until they are taken
        self._under_way = under_way
        self._failed = failed
        self._start_ns = 0  # collections do not overlap: Python has one at a time
        self._callback = self._called  # one object, so that it can be removed again

    def install(self) -> None:
        gc.callbacks.append(self._callback)

    def remove(self) -> None:
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def seconds(self, thread: int | None, start_ns: int, end_ns: int) -> float:
        """Seconds of collections on a thread (None: on any thread) between two times."""
        total = 0
        for pause in reversed(list(self.recent)):
            if pause.end_ns <= start_ns:
                break
            if thread is None or pause.thread == thread:
                total += max(0, min(end_ns, pause.end_ns) - max(start_ns, pause.start_ns))
        return total * 1e-9

    def _called(self, phase: str, info: dict[str, Any]) -> None:
        try:
            if phase == "start":
                self._start_ns = perf_counter_ns()
            elif self._start_ns:
                start, self._start_ns = self._start_ns, 0
                self._ended(start, perf_counter_ns(), info)
        except Exception as error:
            self.remove()
            self._failed(error)

    def _ended(self, start_ns: int, end_ns: int, info: dict[str, Any]) -> None:
        thread, took = get_ident(), end_ns - start_ns
        if self._under_way.get(thread, 0) < 0:
            self.between_ns[thread] = self.between_ns.get(thread, 0) + took
        if took >= SHORTEST_NS:
            pause = Pause(thread, start_ns, end_ns, int(info["generation"]))
            self.recent.append(pause)
            self.unreported.append(pause)
