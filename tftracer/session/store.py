"""A live session's state and its spool. Traces and slow steps are written to the file before they are added to the state.

Any thread may call. Locks are taken in this order: ``spool.lock``, ``lock``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, cast

from tftracer.contract.session import Session, TraceRecord
from tftracer.contract.stalls import GapProfile, Period, SlowKind, Stall
from tftracer.errors import StorageError, TracerError
from tftracer.run_handle import RunHandle
from tftracer.session.answers import SessionAnswers
from tftracer.session.files import records
from tftracer.session.model import RunState, SessionModel, TraceState
from tftracer.session.problems import Problems
from tftracer.session.steps.history import History
from tftracer.session.steps.statistics import LiveRun
from tftracer.session.traces import traces_to_drop
from tftracer.slow.record import make_records as slow_records
from tftracer.slow.record.kept_slow_steps import StallState, key_of
from tftracer.storage import spool_folder
from tftracer.storage.spool import NOWHERE, NewRecord, Spool, closed_file
from tftracer.storage.tftrace_format import HISTORY, STALL, TRACE, TRACE_FACTS, TRACE_REMOVED, Record
from tftracer.storage.trace_payload import Payload
from tftracer.trace.model import TraceContext


class SessionStore(SessionAnswers):
    """The state and the spool of a live session.

    ``keep_traces``: the maximum number of automatic traces of each run; traces/traces_to_drop.py selects the traces to remove.
    """

    def __init__(self, facts: Session, keep_traces: int) -> None:
        super().__init__(SessionModel(facts))
        self.live_runs: dict[int, LiveRun] = {}
        self.spool = Spool(None)
        self.problems = Problems(lambda problems: self.set_facts(problems=problems))
        self.keep_traces = keep_traces
        self._retention = traces_to_drop.Retention()
        self._unwritten_facts = True
        self._latest: dict[Hashable, int] = {}  # key -> size of its newest record, which the next one makes superfluous

    def open_spool(self, folder: str | os.PathLike[str] | None) -> None:
        self.spool, trouble = spool_folder.open_spool(folder, self.session()["id"])
        self.set_facts(file=str(self.spool.path or ""))
        if trouble:
            self.problems.add("spool", trouble)

    # --------------------------------------------------------------------------------------------------------- facts

    def set_facts(self, **changes: Any) -> None:
        """Change facts and publish them. ``changes``: fields of Session."""
        with self.lock:
            self.model.facts = cast(Session, {**self.model.facts, **changes})
            self._unwritten_facts = True
        self.publisher.publish({"type": "session", "payload": self.session()})

    def script_ended(self) -> None:
        """Set the end of the script. Later calls change nothing: a server may outlive its script."""
        self.set_facts(ended_at=self.session()["ended_at"] or time.time(), active=False)

    def write_facts(self) -> None:
        """Write the facts if they have changed since they were written."""
        if self._unwritten_facts:
            self._unwritten_facts = False
            self._unwritten_facts = not self.write(records.session_record(self.session()))

    # ---------------------------------------------------------------------------------------------------------- runs

    def live_run(self, handle: RunHandle) -> LiveRun:
        """Return the live run of a handle. If it is new, add it, with a new id."""
        with self.lock:
            run = self.live_runs.get(handle.run_id)
            if run is None:
                handle.run_id = self.model.next_run_id()
                run = self.live_runs[handle.run_id] = LiveRun(handle)
                fetches, feeds = list(handle.fetches), list(handle.feeds)
                definition, options = handle.definition, handle.options
                self.model.add_run(
                    RunState(handle.run_id, handle.title, fetches, feeds, options, definition=definition, live=run)
                )
            return run

    def publish_run(self, run_id: int) -> None:
        with self.lock:
            payload = self.model.run_without_traces(self.model.run(run_id))
        self.publisher.publish({"type": "run", "payload": payload})

    def add_loaded_run(self, run: RunState, history: History) -> int:
        """Add a run from a file, and return its id here."""
        with self.spool.lock:
            with self.lock:
                run.id = self.model.next_run_id()
            self._write_or_defer(records.run_record(run))
            run.history = [self._append(records.history_record(run, history))]
            with self.lock:
                self.model.add_run(run)
        self.publish_run(run.id)
        return run.id

    # -------------------------------------------------------------------------------------------------------- traces

    def trace_payload(self, trace_id: int) -> Payload:
        """Return a trace's bytes as they are in the file, compressed."""
        with self.lock:
            context, payload = self.trace_context(trace_id), self.model.trace(trace_id).payload
        return Payload(payload.frame_checked() if payload.size else b"", payload.raw_size, context)

    def next_trace_id(self) -> int:
        with self.lock:
            return self.model.next_trace_id()

    def add_trace(self, record: TraceRecord, context: TraceContext, new: NewRecord) -> None:
        """Write and add a trace. ``new``: its record in the file, with its bytes. Raises ``StorageError`` if writing fails."""
        with self.spool.lock:  # so that a rewrite sees both the record and the trace, or neither
            written = self._append(new)
            with self.lock:
                self.model.add_trace(TraceState(record, context, written.payload, written.size))
        self.publisher.publish({"type": "trace", "payload": record})

    def add_new_trace(self, record: TraceRecord, context: TraceContext, new: NewRecord) -> None:
        """Add a trace of this process, and remove older ones if there are too many."""
        run_id = record["run_id"]
        try:
            self.add_trace(record, context, new)
        except StorageError:
            dropped = self._superfluous(run_id, self.keep_traces - 1)
            if not self.spool.would_fit(new, [trace.payload for trace in dropped]):
                raise
            self._remove(dropped)
            self.add_trace(record, context, new)
        with self.lock:
            self._retention.add(self.model.trace(record["id"]))
        self.make_room(run_id, self.keep_traces)
        self._remove(self._over_the_cap())

    def make_room(self, run_id: int, keep: int) -> None:
        """Remove the run's automatic traces that need not be kept. ``keep``: how many of each group stay (traces_to_drop.py)."""
        self._remove(self._superfluous(run_id, keep))

    def _superfluous(self, run_id: int, keep: int) -> list[TraceState]:
        with self.lock:
            return self._retention.superfluous(run_id, keep)

    def _over_the_cap(self) -> list[TraceState]:
        with self.lock:
            dropped = self._retention.over_the_cap(traces_to_drop.MAX_REQUESTED_BYTES)
        if dropped:
            self.problems.add(
                "asked_traces",
                f"The requested traces take more than {traces_to_drop.MAX_REQUESTED_BYTES >> 30} GiB: the oldest are removed. "
                "Save the session to keep those that it has now.",
            )
        return dropped

    def set_trace_facts(self, trace_id: int, **facts: Any) -> TraceRecord:
        with self.spool.lock:
            self.trace_record(trace_id)
            self._write_or_defer(NewRecord(TRACE_FACTS, {"id": trace_id, **facts}))
            with self.lock:
                trace = self.model.trace(trace_id)
                trace.record = cast(TraceRecord, {**trace.record, **facts})
        record = self.trace_record(trace_id)
        self.publisher.publish({"type": "trace", "payload": record})
        return record

    def _remove(self, traces: list[TraceState]) -> None:
        for trace in traces:
            with self.spool.lock:
                self._write_or_defer(NewRecord(TRACE_REMOVED, {"id": trace.record["id"]}))
                with self.lock:
                    self.model.remove_trace(trace.record["id"])
                    self._retention.remove(trace)
            self.spool.release(trace.record_bytes, trace.payload)
            self.publisher.publish({"type": "trace_removed", "payload": trace.record})

    # ---------------------------------------------------------------------------------------------------- slow steps

    def next_stall_id(self) -> int:
        with self.lock:
            return self.model.slow.next_id()

    def add_stall(self, message: Stall, number: int, is_traced: bool, new: NewRecord) -> None:
        """Add a slow step. ``number``: its number among the run's slow steps, from 1. ``is_traced``: whether it has a trace.

        If it cannot be written now, its stacks are missing as long as the session is live.
        """
        with self.spool.lock:  # so that a rewrite sees both the record and the slow step, or neither
            try:
                written = self._append(new)
                state = StallState(message, number, is_traced, written.payload, written.size)
            except StorageError:
                self.spool.write_later(new)
                state = StallState(message, number, is_traced, NOWHERE)
            with self.lock:
                dropped = self.model.slow.add(state)
        for old in dropped:
            self.spool.release(old.record_bytes, old.stacks)

    def put_period(self, period: Period) -> None:
        """Add a period, or replace its earlier state."""
        with self.lock:
            self.model.slow.put_period(period)
        self.write_latest(key_of(period), slow_records.period_record(period))

    def put_kinds(self, run_id: int, kinds: Sequence[SlowKind]) -> None:
        """Replace the sums over all slow steps of a run."""
        with self.lock:
            self.model.slow.kinds.replace(run_id, kinds)
        self.write_latest(("kinds", run_id), slow_records.kinds_record(run_id, kinds))

    def put_gaps(self, profile: GapProfile) -> None:
        with self.lock:
            self.model.slow.gaps[profile["run_id"]] = profile
        self.write_latest(("gaps", profile["run_id"]), slow_records.gaps_record(profile))

    # ------------------------------------------------------------------------------------------------------- writing

    def write(self, new: NewRecord) -> int:
        """Write a record of a fact that is in the model; return its size, 0 if it could not be written."""
        with contextlib.suppress(StorageError):
            return self._append(new).size
        return 0

    def write_latest(self, key: Hashable, new: NewRecord) -> None:
        """Write a record that replaces the earlier one of the same key."""
        older, self._latest[key] = self._latest.get(key, 0), self.write(new)
        if older:
            self.spool.release(older)

    def _write_or_defer(self, new: NewRecord) -> None:
        """Write a record. If that fails, it is written before the next record."""
        if not self.write(new):
            self.spool.write_later(new)

    def write_definition(self, run: LiveRun) -> None:
        """Write the run's definition, which comes before its other records in the file, if it is not there yet."""
        if not run.unwritten.defined:
            self._write_or_defer(records.run_record(self.model.runs[run.handle.run_id]))
            run.unwritten.defined = True

    def _append(self, new: NewRecord) -> Record:
        try:
            record = self.spool.append(new)
        except StorageError as error:
            self.problems.add("storage", f"{error} Training goes on; what was written before can be read.")
            raise
        if self.spool.has_space():
            self.problems.solve("storage")
        return record

    def rewrite(self) -> None:
        """Write a new file of the session, without superfluous records. It replaces the old one."""

        def new_records() -> Iterator[NewRecord]:  # called under the spool's lock, so that no record comes in between
            yield from self.snapshot().records()

        try:
            written = self.spool.rewrite(new_records())
        except TracerError as error:
            self.spool.superfluous_bytes = self.spool.superfluous_records = 0  # retry when as much is superfluous again
            self.problems.add("storage", f"{error} Training goes on.")
            return
        with self.lock:
            for record in written:
                self._moved(record)

    def _moved(self, record: Record) -> None:
        """Update the place of a record that was moved."""
        if record.type == TRACE and (trace := self.model.traces.get(record.meta["id"])):
            trace.payload = record.payload
        elif record.type == STALL:
            self.model.slow.moved(record.meta["id"], record.payload)
        elif record.type == HISTORY and record.meta["run_id"] not in self.live_runs:
            self.model.runs[record.meta["run_id"]].history = [record]

    def saved_bytes(self) -> Iterator[bytes]:
        """Yield the session as it is when the first chunk is taken, including traces that are removed meanwhile."""
        with self.spool.payloads_kept():
            yield from closed_file(self.snapshot().records())

    def close(self) -> None:
        self.spool.close(remove=not self.model.runs)
