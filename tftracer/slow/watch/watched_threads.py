"""The Python threads of this process by their idents, looked up once a second. Only the watch's thread uses it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from threading import get_ident
from time import perf_counter_ns

from tftracer.slow.watch.frames_of_threads import frames_of_threads

OURS = "tftracer-"


class WatchedThreads:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # ident -> name
        self.native_ids: dict[int, int | None] = {}  # ident -> native id
        self._absent_ns: dict[int, int] = {}  # ident -> time of the last look-up in which the thread did not exist yet
        self._looked_ns = 0  # time of the last look-up

    def names_at(self, at_ns: int) -> dict[int, str]:
        """Return ident -> name of the threads that may have existed at this time, without those that have ended if a new thread
        has their ident since the last look-up."""
        now = {thread.ident: thread.native_id for thread in threading.enumerate()}
        return {
            ident: name
            for ident, name in self.names.items()
            if self._absent_ns[ident] < at_ns and now.get(ident, self.native_ids[ident]) == self.native_ids[ident]
        }

    def ours_at(self, at_ns: int) -> frozenset[int]:
        """Return the idents of the tracer's threads at this time. A later thread may have the ident of an ended one."""
        return _ours(self.names_at(at_ns))

    def natives_by_role(self, training: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
        """Return the native ids of the threads in ``training`` and the main thread, of the tracer's threads, and of the others.

        The main thread most likely runs a training.
        """
        main = threading.main_thread().native_id or 0
        trains = sorted({main, *self._natives(list(training))} - {0})
        ours = self._natives(_ours(self.names))
        return trains, ours, sorted({*self._natives(self.names)} - {*trains, *ours})

    def _natives(self, idents: Iterable[int]) -> list[int]:
        """Return the native ids of threads, as far as they are known."""
        return sorted(native for native in map(self.native_ids.get, idents) if native is not None)

    def refresh(self, training: Iterable[int]) -> list[tuple[int, int | None]]:
        """Look the threads up. Return (ident, native id) of the threads in ``training`` that have ended.

        A thread has also ended if another thread has its ident now.
        """
        before, looked_ns = self.native_ids, perf_counter_ns()
        threads = {thread.ident: thread for thread in threading.enumerate() if thread.ident is not None}
        self.names = {ident: thread.name for ident, thread in threads.items()}
        self.native_ids = {ident: thread.native_id for ident, thread in threads.items()}
        self._absent_ns = {
            ident: self._absent_ns[ident] if ident in before and before[ident] == native else self._looked_ns
            for ident, native in self.native_ids.items()
        }
        self._looked_ns = looked_ns
        unknown = [ident for ident in training if ident not in threads]
        alive = _threads_with_frames() if unknown else set()  # threading.enumerate lacks threads that Python did not start
        reused = [ident for ident in training if before.get(ident) != self.native_ids.get(ident) and ident in before]
        return [(ident, before.get(ident)) for ident in {*reused, *unknown} if ident in reused or ident not in alive]


def _ours(names: dict[int, str]) -> frozenset[int]:
    """Return the idents of the calling thread, which is the watch's, and of the tracer's other threads."""
    return frozenset({get_ident(), *(ident for ident, name in names.items() if name.startswith(OURS))})


def _threads_with_frames() -> set[int]:
    with frames_of_threads() as frames:
        return set(frames)
