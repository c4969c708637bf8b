"""Keeps a record of which the newest counts: in the model once a second, in the file ever more rarely. On ``tftracer-writer``."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from tftracer.session.store import SessionStore
from tftracer.storage.spool import NewRecord

UPDATE_S = 1.0
#: What a kill may take: at first so much, later this part of the session's time.
LOST_S, LOST_SHARE = 5.0, 0.01
Sheet = TypeVar("Sheet")


class NewestRecord(ABC, Generic[Sheet]):
    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._began = time.monotonic()
        self._next_update = self._next_write = 0.0
        self._last: Sheet | None = None  # in the file

    @abstractmethod
    def sheet(self) -> Sheet | None:
        """What is known now; None: nothing."""

    @abstractmethod
    def keep(self, sheet: Sheet) -> None:
        """Put it into the session's model. The store is locked."""

    @abstractmethod
    def record(self, sheet: Sheet) -> NewRecord: ...

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
        self._store.write_latest(type(self), self.record(known))

    def _update(self) -> Sheet | None:
        known = self.sheet()
        if known is not None:
            with self._store.lock:
                self.keep(known)
        return known
