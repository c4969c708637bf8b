"""A session file's runs and traces added to a live session, one trace in memory at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tftracer.contract.session import Loaded, Run, TraceRecord
from tftracer.contract.stalls import Stall
from tftracer.session.files import records
from tftracer.session.files.saved import SavedSession
from tftracer.session.model import is_analyzed
from tftracer.session.store import SessionStore
from tftracer.slow.record.log import SlowLog
from tftracer.slow.record.records import copied_stall_record


def load(store: SessionStore, other: SavedSession, origin: str, analyze_later: Callable[[TraceRecord], None] | None) -> Loaded:
    """Under numbers of their own; ``origin``: how the file is called."""
    other.check_payloads()
    runs = other.runs()
    for run in runs:
        _load_run(store, other, run, origin, analyze_later)
    facts = other.session()
    traces = sum(len(run["traces"]) for run in runs)
    return {"ok": True, "runs": len(runs), "traces": traces, "cut": facts["cut"], "damage": facts["damage"]}


def _load_run(
    store: SessionStore, other: SavedSession, run: Run, origin: str, analyze_later: Callable[[TraceRecord], None] | None
) -> None:
    state = replace(other.model.run(run["id"]), origin=origin, traces={}, history=[])
    run_id = store.add_loaded_run(state, other.history(run["id"]))
    _load_slow(store, other.model.slow, run["id"], run_id)
    for trace in run["traces"]:
        record = _load_trace(store, other, trace["id"], run_id)
        if analyze_later and not is_analyzed(record):
            analyze_later(record)


def _load_slow(store: SessionStore, log: SlowLog, run_id: int, new_id: int) -> None:
    for state in log.of_run(run_id):
        message: Stall = {**state.message, "id": store.next_stall_id(), "run_id": new_id}
        store.add_stall(message, state.number, state.is_traced, copied_stall_record(replace(state, message=message)))
    store.put_kinds(run_id=new_id, kinds=[{**kind, "run_id": new_id} for kind in log.kinds.of_run(run_id)])
    for period in log.periods_of(run_id):
        store.put_period({**period, "run_id": new_id})
    if run_id in log.gaps:
        store.put_gaps({**log.gaps[run_id], "run_id": new_id})


def _load_trace(store: SessionStore, other: SavedSession, trace_id: int, run_id: int) -> TraceRecord:
    state = other.trace_state(trace_id)
    record: TraceRecord = {**state.record, "id": store.next_trace_id(), "run_id": run_id}
    new = records.copied_trace_record(replace(state, record=record))
    store.add_trace(record, state.context, new)
    return record
