"""Keeps what is known of the memory of this process. On the thread ``tftracer-writer``."""

from __future__ import annotations

import time

from tftracer.memory_growth import sheet
from tftracer.memory_growth.watch import MemoryWatch
from tftracer.session.store import SessionStore

UPDATE_S = 1.0
#: What a kill may take: at first so much, later this part of the session's time.
LOST_S, LOST_SHARE = 5.0, 0.01


class MemoryWriter:
    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._watch = MemoryWatch(self._steps)
        self._began = time.monotonic()
        self._next_update = self._next_write = 0.0
        self._written = 0  # bytes of the newest record

    def start(self) -> None:
        self._watch.start()

    def take(self) -> None:
        """Ten times a second."""
        now = time.monotonic()
        if now >= self._next_update:
            self._next_update = now + UPDATE_S
            self._update()

    def write(self, at_once: bool = False) -> None:
        now = time.monotonic()
        if not (at_once or now >= self._next_write):
            return
        self._next_write = now + max(LOST_S, LOST_SHARE * (now - self._began))
        older, self._written = self._written, self._store.write(sheet.record(self._update()))
        if older:
            self._store.spool.release(older)

    def end(self) -> None:
        self._watch.stop()

    def _update(self) -> sheet.Sheet:
        known = self._watch.sheet()
        with self._store.lock:
            self._store.model.memory = known
        return known

    def _steps(self) -> int:
        return sum(run.statistics.steps for run in list(self._store.live_runs.values()))
