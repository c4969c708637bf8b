"""The Python threads of this process by their numbers, looked up once a second. Used by the watch's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from threading import get_ident
from time import perf_counter_ns

from tftracer.slow.watch.frames_of_threads import frames_of_threads

OURS = "tftracer-"


class WatchedThreads:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.native_ids: dict[int, int | None] = {}  # the kernel's numbers
        self.ours: frozenset[int] = frozenset()  # the tracer's own threads
        self._absent_ns: dict[int, int] = {}  # when the thread was last seen not to exist yet
        self._looked_ns = 0

    def names_at(self, at_ns: int) -> dict[int, str]:
        """Return the names of the threads that may have existed then: a later thread may get the number of one that has ended."""
        return {ident: name for ident, name in self.names.items() if self._absent_ns[ident] < at_ns}

    def refresh(self, training: Iterable[int]) -> list[tuple[int, int | None]]:
        """Look the threads up. Return (number, kernel number) of those in ``training`` that ended, even if it is reused."""
        before, looked_ns = self.native_ids, perf_counter_ns()
        threads = {thread.ident: thread for thread in threading.enumerate() if thread.ident is not None}
        self.names = {ident: thread.name for ident, thread in threads.items()}
        self.native_ids = {ident: thread.native_id for ident, thread in threads.items()}
        self._absent_ns = {
            ident: self._absent_ns[ident] if ident in before and before[ident] == native else self._looked_ns
            for ident, native in self.native_ids.items()
        }
        self._looked_ns = looked_ns
        self.ours = frozenset({get_ident(), *(ident for ident, name in self.names.items() if name.startswith(OURS))})
        unknown = [ident for ident in training if ident not in threads]
        alive = _threads_with_frames() if unknown else set()  # threads that Python did not start are not enumerated
        reused = [ident for ident in training if before.get(ident) != self.native_ids.get(ident) and ident in before]
        return [(ident, before.get(ident)) for ident in {*reused, *unknown} if ident in reused or ident not in alive]


def _threads_with_frames() -> set[int]:
    with frames_of_threads() as frames:
        return set(frames)
