"""Keeps what is seen of the input pipelines of this process. On the thread ``tftracer-writer``."""

from __future__ import annotations

import time

from tftracer.input_pipelines import sheet
from tftracer.input_pipelines.watch import Pipelines
from tftracer.session.store import SessionStore

UPDATE_S = 1.0
#: What a kill may take: at first so much, later this part of the session's time.
LOST_S, LOST_SHARE = 5.0, 0.01


class PipelineWriter:
    def __init__(self, pipelines: Pipelines, store: SessionStore) -> None:
        self._pipelines = pipelines
        self._store = store
        self._began = time.monotonic()
        self._next_update = self._next_write = 0.0
        self._written = 0  # bytes of the newest record
        self._last: sheet.Sheet | None = None  # in the file

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
        known = self._update()
        if known is None or known == self._last:
            return
        self._last = known
        older, self._written = self._written, self._store.write(sheet.record(known))
        if older:
            self._store.spool.release(older)

    def end(self) -> None:
        self._pipelines.stop()

    def _update(self) -> sheet.Sheet | None:
        known = self._pipelines.sheet()
        if known is not None:
            with self._store.lock:
                self._store.model.input_pipelines = known
        return known
