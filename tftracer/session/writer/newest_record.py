"""Updates the ledger, the facts about input pipelines or about memory: in the model once a second, in the file less often.

Only the newest record in the file is valid. On the thread ``tftracer-writer``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from tftracer.session.store import SessionStore
from tftracer.storage.spool import NewRecord

UPDATE_S = 1.0
#: (seconds, share of the session's time): a killed process loses at most the facts of the longer of these two times.
LOST = (5.0, 0.01)
Facts = TypeVar("Facts")


class NewestRecord(Generic[Facts]):
    """The newest record of one kind of facts.

    ``name``: the model's attribute. ``facts`` returns the current facts, or None. ``end`` stops collecting the facts.
    """

    def __init__(
        self,
        store: SessionStore,
        name: Literal["ledger", "input_pipelines", "memory"],
        facts: Callable[[], Facts | None],
        record: Callable[[Facts], NewRecord],
        end: Callable[[], None] = lambda: None,
        lost: tuple[float, float] = LOST,
    ) -> None:
        self.end = end
        self._store = store
        self._name = name
        self._facts = facts
        self._record = record
        self._lost_s, self._lost_share = lost
        self._began = time.monotonic()
        self._next_update = self._next_write = 0.0
        self._written: Facts | None = None  # the facts of the newest record in the file

    def update_if_due(self) -> None:
        """Update the model if ``UPDATE_S`` have passed since the last update. Called five times a second."""
        if time.monotonic() >= self._next_update:
            self.update()

    def write(self, at_once: bool = False) -> None:
        """Write the facts if it is time or ``at_once``, and if they have changed since they were written."""
        now = time.monotonic()
        if not (at_once or now >= self._next_write):
            return
        self._next_write = now + max(self._lost_s, self._lost_share * (now - self._began))
        facts = self.update()
        if facts is None or facts == self._written:
            return
        self._written = facts
        self._store.write_latest(self._name, self._record(facts))

    def update(self) -> Facts | None:
        """Update the model now, and return the facts."""
        self._next_update = time.monotonic() + UPDATE_S
        facts = self._facts()
        if facts is not None:
            with self._store.lock:
                setattr(self._store.model, self._name, facts)
        return facts
