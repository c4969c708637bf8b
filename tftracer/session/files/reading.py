"""Reads a session from a file's records. Checks types and sizes, because a stranger may have written the file.

Only contract/session.py, which defines the messages, and this module know the fields of the messages. Data that this process
recorded itself is not read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast, get_args

from tftracer.contract.session import AskedBy, RunStatistics, Session, TraceRecord
from tftracer.input_pipelines import saved_pipelines as pipeline_facts
from tftracer.ledger import saved_ledger as ledger_facts
from tftracer.memory_growth import saved_memory_growth as memory_facts
from tftracer.session.files.records import WRITTEN_OF_CONTEXT
from tftracer.session.model import RunState, SessionModel, TraceState
from tftracer.session.steps.statistics import RECENT_STEPS
from tftracer.slow.record import read_slow_steps as slow_reading
from tftracer.slow.record.kept_slow_steps import SlowLog
from tftracer.storage import tftrace_format, untrusted
from tftracer.storage.tftrace_format import Record, StoredPayload
from tftracer.storage.tftrace_reader import Reader
from tftracer.storage.untrusted import count, fields_of, one_of, positive_or_none, readers, seconds, short, text, texts
from tftracer.trace.model import TraceContext
from tftracer.trace.units import counted

#: Maximum numbers of runs and traces in a session.
MAX_RUNS = 100_000
MAX_TRACES = 1_000_000

Applier = Callable[[SessionModel, Record], None]


def _recent(given: Any) -> list[float]:
    return [seconds(value) for value in untrusted.items(given)[-RECENT_STEPS:]]


SESSION_FIELDS = readers(
    Session,
    place=untrusted.launcher_info,
    processor=short,
    gpu_devices=untrusted.gpu_devices,
    measured_roof=untrusted.measured_roof,
    slow_watch=one_of("", "on", "off"),
    problems=untrusted.problems,
)
STATISTICS_FIELDS = readers(RunStatistics, recent_s=_recent)
TRACE_FIELDS = readers(
    TraceRecord,
    step=positive_or_none,
    asked_by=one_of(*get_args(AskedBy)),
    findings=untrusted.findings,
    bookmarks=untrusted.bookmarks,
    state=one_of("pending", "ready", "broken"),
)
CONTENTS_FIELDS = {name: TRACE_FIELDS[name] for name in ("nodes", "devices", "findings", "headline", "state")}
CONTEXT_FIELDS = readers(
    TraceContext,
    WRITTEN_OF_CONTEXT,
    trace_level=short,
    gpu_facts=untrusted.gpu_facts,
    gpu_devices=untrusted.gpu_devices,
    measured_roof=untrusted.measured_roof,
    cpu_use=untrusted.cpu_use,
    fed=untrusted.fed_values,
    findings=untrusted.findings,
)


def read_facts(given: Any) -> Session:
    return cast(Session, fields_of(given, SESSION_FIELDS))


def new_facts() -> Session:
    """Return the facts of a session of which nothing is known: every field has its empty value."""
    return read_facts({})


def read_statistics(given: Any) -> RunStatistics:
    return cast(RunStatistics, fields_of(given, STATISTICS_FIELDS))


def read_trace_record(given: Any) -> TraceRecord:
    return cast(TraceRecord, fields_of(given, TRACE_FIELDS))


def with_sizes(record: TraceRecord, payload: StoredPayload) -> TraceRecord:
    """Return the record with the actual sizes of the trace's bytes."""
    return {**record, "bytes": payload.raw_size, "stored_bytes": payload.size}


def read_context(given: Any) -> TraceContext:
    return TraceContext(**fields_of(given, CONTEXT_FIELDS))


# --------------------------------------------------------------------------------------------------------------- records


def read_model(reader: Reader, path: str) -> SessionModel:
    """Read the session in a file. Its facts tell which parts of the file could not be read."""
    model, unknown, damaged_steps = SessionModel(new_facts()), Counter[str](), 0
    for record in reader:
        # Damage in other records is reported when they are read.
        if record.type in (tftrace_format.STEPS, tftrace_format.HISTORY):
            damaged_steps += not record.payload.is_whole()
        unknown[record.type] += record.type not in tftrace_format.RECORD_TYPES
        apply(model, record)
    facts = model.facts
    facts["active"] = facts["live"] = facts["trace_all"] = False
    facts["file"], facts["cut"] = path, reader.cut
    facts["damage"] = " ".join(filter(None, [reader.damage, *_left_out(damaged_steps, +unknown)]))
    return model


def _left_out(damaged_steps: int, unknown: Counter[str]) -> Iterator[str]:
    if damaged_steps:
        yield f"Step times are missing: {counted(damaged_steps, 'record')} of them are damaged."
    if unknown:
        names = ", ".join(sorted(text(name, 31) for name in unknown)[:10])
        yield (
            f"Skipped: {counted(sum(unknown.values()), 'record')} of types that this version does not know ({names}). "
            "Upgrade: pip install -U tftracer."
        )


def apply(model: SessionModel, record: Record) -> None:
    """Apply a record to the model. Records of an unknown type, or about an unknown trace, are ignored."""
    applier = _APPLIERS.get(record.type)
    if applier:
        applier(model, record)


def _apply_run(model: SessionModel, record: Record) -> None:
    given = record.meta
    run_id = count(given.get("id"))
    if not run_id or run_id in model.runs or len(model.runs) >= MAX_RUNS:
        return
    fetches, feeds = texts(given.get("fetches")), texts(given.get("feeds"))
    run = RunState(run_id, text(given.get("title"), 1000), fetches, feeds, text(given.get("options")))
    run.definition = text(given.get("definition"), 1000)
    run.statistics, run.origin = read_statistics(given.get("stats")), text(given.get("origin"), 300)
    model.add_run(run)


def _run_of(model: SessionModel, record: Record) -> RunState | None:
    """Return the run that a record is about. If the run's own record is missing, add a run without facts."""
    run_id = count(record.meta.get("run_id"))
    if run_id and run_id not in model.runs and len(model.runs) < MAX_RUNS:
        model.add_run(RunState(run_id, f"run {run_id} (its record is missing)", [], [], ""))
    return model.runs.get(run_id)


def _apply_steps(model: SessionModel, record: Record) -> None:
    run = _run_of(model, record)
    if run:
        run.statistics = read_statistics(record.meta.get("stats"))
        if record.type == tftrace_format.HISTORY:
            run.history.clear()
        run.history.append(record)


def _apply_trace(model: SessionModel, record: Record) -> None:
    run, trace_record = _run_of(model, record), with_sizes(read_trace_record(record.meta), record.payload)
    if run is None or not trace_record["id"] or trace_record["id"] in model.traces or len(model.traces) >= MAX_TRACES:
        return
    model.add_trace(TraceState(trace_record, read_context(record.meta.get("context")), record.payload, record.size))


def _apply_trace_facts(model: SessionModel, record: Record) -> None:
    trace, given = model.traces.get(count(record.meta.get("id"))), record.meta
    if trace is None:
        return
    changes: dict[str, Any] = {name: text(given[name]) for name in ("note", "headline") if name in given}
    if "bookmarks" in given:
        changes["bookmarks"] = untrusted.bookmarks(given["bookmarks"])
    contents = fields_of(given, CONTENTS_FIELDS) if "nodes" in given else {}
    trace.record = cast(TraceRecord, {**trace.record, **contents, **changes})


def _run_applier(apply_slow: Callable[[SlowLog, Record, int], None]) -> Applier:
    def apply_to_run(model: SessionModel, record: Record) -> None:
        run = _run_of(model, record)
        if run:
            apply_slow(model.slow, record, run.id)

    return apply_to_run


def _facts_applier(name: str, read: Callable[[Mapping[str, Any]], object]) -> Applier:
    return lambda model, record: setattr(model, name, read(record.meta))


_APPLIERS: dict[str, Applier] = {
    tftrace_format.SESSION: _facts_applier("facts", read_facts),
    tftrace_format.RUN: _apply_run,
    tftrace_format.STEPS: _apply_steps,
    tftrace_format.HISTORY: _apply_steps,
    tftrace_format.TRACE: _apply_trace,
    tftrace_format.TRACE_FACTS: _apply_trace_facts,
    tftrace_format.TRACE_REMOVED: lambda model, record: model.remove_trace(count(record.meta.get("id"))),
    tftrace_format.STALL: _run_applier(slow_reading.apply_stall),
    tftrace_format.PERIOD: _run_applier(slow_reading.apply_period),
    tftrace_format.KINDS: _run_applier(slow_reading.apply_kinds),
    tftrace_format.GAPS: _run_applier(slow_reading.apply_gaps),
    tftrace_format.MARKS: lambda model, record: slow_reading.apply_marks(model.slow, record),
    tftrace_format.LEDGER: _facts_applier("ledger", ledger_facts.read),
    tftrace_format.INPUT_PIPELINES: _facts_applier("input_pipelines", pipeline_facts.read),
    tftrace_format.MEMORY: _facts_applier("memory", memory_facts.read),
}
