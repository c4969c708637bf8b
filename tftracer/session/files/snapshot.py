"""What a session held at one moment, as the records of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tftracer.contract.session import Session
from tftracer.input_pipelines import sheet as pipelines_sheet
from tftracer.ledger import sheet
from tftracer.memory_growth import sheet as memory_sheet
from tftracer.session.files import records
from tftracer.session.model import RunState, SessionModel, TraceState
from tftracer.session.steps.history import History
from tftracer.slow.record.log import SlowLog
from tftracer.slow.record.records import all_records
from tftracer.storage.spool import NewRecord


@dataclass(frozen=True)
class Snapshot:
    """The payloads of traces and slow steps, and the histories of loaded runs, are read when their turn comes."""

    facts: Session
    runs: list[tuple[RunState, Callable[[], History]]]
    traces: list[TraceState]
    slow: SlowLog
    ledger: sheet.Sheet | None
    input_pipelines: pipelines_sheet.Sheet | None
    memory: memory_sheet.Sheet | None

    @classmethod
    def of(cls, model: SessionModel) -> Snapshot:
        """To be taken under the owner's lock."""
        runs = [(replace(run, statistics=run.numbers()), run.history_reader()) for run in model.runs.values()]
        traces = [replace(trace) for trace in model.traces.values()]
        return cls(model.facts.copy(), runs, traces, model.slow.copy(), model.ledger, model.input_pipelines, model.memory)

    def records(self) -> Iterator[NewRecord]:
        yield records.session_record(self.facts)
        for run, history in self.runs:
            yield records.run_record(run)
            yield records.history_record(run, history())
        for trace in self.traces:
            yield records.copied_trace_record(trace)
        yield from all_records(self.slow)
        if self.ledger is not None:
            yield sheet.record(self.ledger)
        if self.input_pipelines is not None:
            yield pipelines_sheet.record(self.input_pipelines)
        if self.memory is not None:
            yield memory_sheet.record(self.memory)
