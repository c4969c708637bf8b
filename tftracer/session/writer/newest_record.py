"""Keeps what is known of the input pipelines, or of the memory: in the model once a second, in the file ever more rarely.

Of its records in the file the newest counts. On the thread ``tftracer-writer``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from tftracer.session.store import SessionStore
from tftracer.storage.spool import NewRecord

UPDATE_S = 1.0
#: What a kill may take: at first so much, later this part of the session's time.
LOST_S, LOST_SHARE = 5.0, 0.01
Sheet = TypeVar("Sheet")


class NewestRecord(Generic[Sheet]):
    """``name``: of the model's attribute. ``sheet``: what is known now, None for nothing. ``end``: nothing more is looked for."""

    def __init__(
        self,
        store: SessionStore,
        name: Literal["input_pipelines", "memory"],
        sheet: Callable[[], Sheet | None],
        record: Callable[[Sheet], NewRecord],
        end: Callable[[], None],
    ) -> None:
        self.end = end
        self._store = store
        self._name = name
        self._sheet = sheet
        self._record = record
        self._began = time.monotonic()
        self._next_update = self._next_write = 0.0
        self._last: Sheet | None = None  # in the file

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
        self._store.write_latest(self._name, self._record(known))

    def _update(self) -> Sheet | None:
        known = self._sheet()
        if known is not None:
            with self._store.lock:
                setattr(self._store.model, self._name, known)
        return known
