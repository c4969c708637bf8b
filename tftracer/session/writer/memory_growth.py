"""Keeps what is known of the memory of this process. On the thread ``tftracer-writer``."""

from __future__ import annotations

from tftracer.memory_growth.sheet import Sheet, record
from tftracer.memory_growth.watch import MemoryWatch
from tftracer.session.store import SessionStore
from tftracer.session.writer.newest_record import NewestRecord
from tftracer.storage.spool import NewRecord


class MemoryWriter(NewestRecord[Sheet]):
    def __init__(self, store: SessionStore) -> None:
        super().__init__(store)
        self._watch = MemoryWatch(self._steps)

    def start(self) -> None:
        self._watch.start()

    def end(self) -> None:
        self._watch.stop()

    def sheet(self) -> Sheet:
        if self._store.session()["ended_at"] is not None:  # a server that stays after its script is none of its memory
            self._watch.stop()
        return self._watch.sheet()

    def keep(self, sheet: Sheet) -> None:
        self._store.model.memory = sheet

    def record(self, sheet: Sheet) -> NewRecord:
        return record(sheet)

    def _steps(self) -> int:
        return sum(run.statistics.steps for run in list(self._store.live_runs.values()))
