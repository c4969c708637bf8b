"""Keeps what is seen of the input pipelines of this process. On the thread ``tftracer-writer``."""

from __future__ import annotations

from tftracer.input_pipelines.sheet import Sheet, record
from tftracer.input_pipelines.watch import Pipelines
from tftracer.session.store import SessionStore
from tftracer.session.writer.newest_record import NewestRecord
from tftracer.storage.spool import NewRecord


class PipelineWriter(NewestRecord[Sheet]):
    def __init__(self, pipelines: Pipelines, store: SessionStore) -> None:
        super().__init__(store)
        self._pipelines = pipelines

    def end(self) -> None:
        self._pipelines.stop()

    def sheet(self) -> Sheet | None:
        return self._pipelines.sheet()

    def keep(self, sheet: Sheet) -> None:
        self._store.model.input_pipelines = sheet

    def record(self, sheet: Sheet) -> NewRecord:
        return record(sheet)
