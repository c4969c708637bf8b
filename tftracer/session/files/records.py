"""Makes the records of a session's file; reading.py reads them. See docs/file-format.rst."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tftracer.contract.session import Session
from tftracer.input_pipelines import saved_pipelines as pipeline_facts
from tftracer.ledger import saved_ledger as ledger_facts
from tftracer.memory_growth import saved_memory_growth as memory_facts
from tftracer.session.model import RunState, SessionModel, TraceState
from tftracer.session.steps.columns import history_payload, steps_payload
from tftracer.session.steps.history import History
from tftracer.slow.record.kept_slow_steps import SlowLog
from tftracer.slow.record.make_records import all_records
from tftracer.storage.spool import NewRecord
from tftracer.storage.tftrace_format import HISTORY, RUN, SESSION, STEPS, TRACE, compress
from tftracer.trace.arrays.types import Float64
from tftracer.trace.model import TraceContext

#: Facts that are not written: the reader determines them.
_FOUND_BY_READER = ("live", "file", "cut", "damage")
#: Fields of a trace's context about its run and the run's other traces. Other records hold these facts, and the facts may change
#: after the trace was written.
_OF_RUN = (
    "step",
    "title",
    "run_median_s",
    "feeds",
    "between_lines",
    "sampled_gc",
    "turn_lines",
    "lock_holder",
    "slow_times",
    "steps_around_s",
    "other_traced",
    "fastest_traced_s",
    "follows_traced",
)
_NOT_WRITTEN = (*_OF_RUN, "device_pattern")  # the user who opens the file chooses the pattern
WRITTEN_OF_CONTEXT = tuple(field.name for field in fields(TraceContext) if field.name not in _NOT_WRITTEN)


@dataclass(frozen=True)
class Snapshot:
    """A session's state at one time. Payloads, and the histories of loaded runs, are read one by one, when they are written."""

    facts: Session
    runs: list[tuple[RunState, Callable[[], History]]]
    traces: list[TraceState]
    slow: SlowLog
    ledger: ledger_facts.LedgerFacts | None
    input_pipelines: pipeline_facts.PipelineFacts | None
    memory: memory_facts.MemoryFacts | None

    @classmethod
    def of(cls, model: SessionModel) -> Snapshot:
        """Copy the model's state. The caller holds the session's lock."""
        runs = [(replace(run, statistics=run.numbers()), run.history_reader()) for run in model.runs.values()]
        traces = [replace(trace) for trace in model.traces.values()]
        return cls(model.facts.copy(), runs, traces, model.slow.copy(), model.ledger, model.input_pipelines, model.memory)

    def records(self) -> Iterator[NewRecord]:
        yield session_record(self.facts)
        for run, history in self.runs:
            yield run_record(run)
            yield history_record(run, history())
        for trace in self.traces:
            yield copied_trace_record(trace)
        yield from all_records(self.slow)
        if self.ledger is not None:
            yield ledger_facts.record(self.ledger)
        if self.input_pipelines is not None:
            yield pipeline_facts.record(self.input_pipelines)
        if self.memory is not None:
            yield memory_facts.record(self.memory)


def session_record(facts: Session) -> NewRecord:
    return NewRecord(SESSION, {name: value for name, value in facts.items() if name not in _FOUND_BY_READER})


def run_record(run: RunState) -> NewRecord:
    names = ("id", "origin", "title", "fetches", "feeds", "options", "definition")
    return NewRecord(RUN, {**{name: getattr(run, name) for name in names}, "stats": run.statistics})


def steps_record(run: RunState, first_step: int, starts: Float64, durations: Float64, traced: Sequence[int]) -> NewRecord:
    """Return the record of consecutive steps. ``traced``: positions among them."""
    meta = {"run_id": run.id, "first_step": first_step, "stats": run.statistics}
    return _compressed(STEPS, meta, steps_payload(starts, durations, traced))


def history_record(run: RunState, history: History) -> NewRecord:
    return _compressed(HISTORY, {"run_id": run.id, "stats": run.statistics}, history_payload(history))


def trace_record(record: Any, context: TraceContext, stored: bytes, raw_size: int) -> NewRecord:
    """Return the record of a trace. ``record``: a TraceRecord; ``stored``: the trace's zstd frame."""
    return NewRecord(
        TRACE, {**record, "context": {name: getattr(context, name) for name in WRITTEN_OF_CONTEXT}}, stored, raw_size
    )


def copied_trace_record(trace: TraceState) -> NewRecord:
    """Return the record of a trace that is in a file already. Its bytes are copied with their checksum, damaged or not."""
    payload = trace.payload
    new = trace_record(trace.record, trace.context, payload.frame_unchecked(), payload.raw_size)
    if payload.crc is not None:
        new.meta["payload_crc"] = payload.crc
    return new


def _compressed(kind: str, meta: dict[str, Any], raw: bytes) -> NewRecord:
    return NewRecord(kind, meta, compress(raw), len(raw))
