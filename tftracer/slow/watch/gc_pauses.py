"""Measures Python's garbage collections exactly, with ``gc.callbacks``. Stack samples show only the line after a collection.

The callbacks run on the thread that collects, often a training thread. They take seven microseconds for each collection, half
of them for the counters of its thread. They consist only of C functions: a line of Python would run the handlers of pending
signals, and Python drops what a callback raises, also the KeyboardInterrupt of Ctrl-C. The watch's thread reads the notes that
the callbacks append to a list.
"""

from __future__ import annotations

import contextlib
import gc
import operator
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from threading import get_ident
from time import perf_counter_ns, thread_time_ns
from typing import Any, NamedTuple

#: Maximum number of pauses that are kept to explain slow steps, and their minimum duration. Shorter pauses count only in sums.
MAX_PAUSES = 4096
SHORTEST_NS = 100_000
#: Minimum duration of a long collection. For SOON_NS after it, stacks show where its thread released Python's lock, not where it
#: collected.
LONG_NS, SOON_NS = 30_000_000, 30_000_000
#: A collection only computes. If its thread gave its CPU away (a voluntary context switch) and its CPU time is less than this
#: share of the pause, a callback of the script (in ``gc.callbacks``) or a finalizer waited: then the pause does not count as a
#: collection.
RAN = 0.1
#: Maximum number of notes that wait to be read. Each collection makes four.
MAX_NOTES = 32_768


try:
    from resource import RUSAGE_THREAD, getrusage

    use_of_thread: Callable[[], Any] = partial(getrusage, RUSAGE_THREAD)
except ImportError:  # not Linux
    use_of_thread = thread_time_ns


def used_since(before: Any, after: Any = None) -> tuple[int, bool]:
    """Return the CPU time of this thread in nanoseconds since ``before``, and whether it has waited since then.

    ``before``, ``after``: what ``use_of_thread`` returned; None: now. A thread that only had no CPU has not waited. Where that is
    not known, it counts as waiting.
    """
    after = use_of_thread() if after is None else after
    if isinstance(before, int):
        return after - before, True
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(cpu_s * 1e9), after.ru_nvcsw > before.ru_nvcsw


def _has_waited(before: Any, after: Any, length_ns: int) -> bool:
    cpu_ns, may_have_waited = used_since(before, after)
    return may_have_waited and cpu_ns < RAN * length_ns


class Pause(NamedTuple):
    thread: int
    start_ns: int  # perf_counter
    end_ns: int
    generation: int


class GcPauses:
    """The collections up to the last ``settle``. Only one thread may read them. ``under_way``: ``StepQueue.under_way``."""

    def __init__(self, under_way: Mapping[int, int]) -> None:
        self.between_ns: dict[int, int] = {}  # thread -> time of collections between its steps
        self.recent: deque[Pause] = deque(maxlen=MAX_PAUSES)
        self.unreported: deque[Pause] = deque(maxlen=MAX_PAUSES)  # for the page
        self._long_end_ns = 0  # when the last long collection ended
        self._start_ns = 0  # when the current collection began; Python makes one at a time
        self._start_use: Any = None  # what its thread had used then, as ``use_of_thread`` returns it
        self._start: Any = None  # the information that Python passed to the callback at the last start that was read
        self._stop: Any = None  # the same for the last end
        phases: dict[str, Any] = {"start": None, "stop": None}  # phase -> the information at the last call in this phase
        self._noted: deque[tuple[int, Any, int, int | None, tuple[Any, ...]]] = deque(maxlen=MAX_NOTES)
        notes = zip(
            iter(perf_counter_ns, None),
            iter(use_of_thread, None),
            iter(get_ident, None),
            map(under_way.get, iter(get_ident, None)),
            iter(partial(tuple, phases.values()), None),
        )
        note = partial(next, map(operator.not_, map(self._noted.append, notes)))
        #: ``max`` calls ``note`` for both of its arguments.
        self._callbacks: list[Any] = [phases.__setitem__, partial(max, key=note)]

    def install(self) -> None:
        gc.callbacks.extend(self._callbacks)

    def remove(self) -> None:
        for callback in self._callbacks:
            with contextlib.suppress(ValueError):
                gc.callbacks.remove(callback)

    def by_thread(self, start_ns: int, end_ns: int) -> dict[int, float]:
        """Return thread -> seconds of its collections between two times, the most seconds first."""
        self.settle()
        lengths: Counter[int] = Counter()
        for pause in takewhile(lambda pause: pause.end_ns > start_ns, reversed(self.recent)):
            lengths[pause.thread] += max(0, min(end_ns, pause.end_ns) - max(start_ns, pause.start_ns))
        return {thread: length * 1e-9 for thread, length in lengths.most_common()}

    def has_just_ended(self, now_ns: int) -> bool:
        """Return whether a long collection has just ended. Its thread releases Python's lock only at the next function."""
        self.settle()
        return now_ns - self._long_end_ns < SOON_NS

    def settle(self) -> None:
        """Read the notes, and add the collections that have ended. Each note is in the list twice."""
        while self._noted:
            now_ns, use, thread, under_way, (start, stop) = self._noted.popleft()
            if start is not self._start:
                self._start, self._start_ns, self._start_use = start, now_ns, use
            elif stop is not self._stop:
                self._stop = stop
                if self._start_ns and not _has_waited(self._start_use, use, now_ns - self._start_ns):
                    self._add_collection(thread, self._start_ns, now_ns, (under_way or 0) < 0, int(stop["generation"]))
                self._start_ns = 0

    def _add_collection(self, thread: int, start_ns: int, end_ns: int, is_between: bool, generation: int) -> None:
        if is_between:
            self.between_ns[thread] = self.between_ns.get(thread, 0) + end_ns - start_ns
        if end_ns - start_ns >= LONG_NS:
            self._long_end_ns = end_ns
        if end_ns - start_ns >= SHORTEST_NS:
            pause = Pause(thread, start_ns, end_ns, generation)
            self.recent.append(pause)
            self.unreported.append(pause)
