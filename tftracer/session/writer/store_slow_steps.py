"""Turns the records of the slow-step watch into messages, and stores them. On the thread ``tftracer-writer``."""

from __future__ import annotations

import time
from collections import deque
from time import perf_counter

from tftracer.session.store import SessionStore
from tftracer.session.writer.keep_ledger import LedgerWriter
from tftracer.session.writer.summaries import TraceSummaries
from tftracer.slow.answer import messages
from tftracer.slow.answer.messages import SlowMark
from tftracer.slow.record import make_records
from tftracer.slow.record.kept_slow_steps import key_of
from tftracer.slow.record.sums_by_kind import UNSPECIFIC_CAUSES
from tftracer.slow.watch_results import GapProfile, GcPause, HostSample, Period, SlowRecord, SlowRecords, Stall
from tftracer.storage.trace_payload import TraceKey

#: Maximum number of records that wait because no step of their run was counted yet.
MAX_WAITING = 200


class SlowWriter:
    def __init__(self, slow: SlowRecords, store: SessionStore, ledger: LedgerWriter, summaries: TraceSummaries) -> None:
        self._ledger = ledger
        self._summaries = summaries
        self._slow = slow
        self._store = store
        self._waiting: deque[SlowRecord] = deque(maxlen=MAX_WAITING)
        self._marks: list[SlowMark] = []  # marks that are not in the file yet
        self._runs_to_write: set[int] = set()  # ids of runs whose sums by kind changed since they were written

    def take(self) -> list[int]:
        """Store what the watch recorded, and return the ids of the runs concerned. Called after the steps were counted."""
        taken = [*self._waiting, *self._slow.take()]
        self._waiting.clear()
        offset = time.time() - perf_counter()
        run_ids: dict[int, None] = {}
        for record in taken:
            if isinstance(record, (Stall, Period, GapProfile)) and record.run.run_id not in self._store.live_runs:
                self._waiting.append(record)
            else:
                self._add(record, offset)
                if isinstance(record, (Stall, Period, GapProfile)):
                    run_ids[record.run.run_id] = None
        return list(run_ids)

    def _add(self, record: SlowRecord, offset: float) -> None:
        if isinstance(record, Stall):
            self._add_stall(record, offset)
        elif isinstance(record, Period):
            self._add_period(record)
        elif isinstance(record, GapProfile):
            self._store.put_gaps(messages.gap_message(record, offset))
        elif isinstance(record, GcPause):
            self._mark(messages.gc_mark(record, offset))
        elif isinstance(record, HostSample):
            self._mark(messages.host_mark(record, offset))

    def _add_stall(self, stall: Stall, offset: float) -> None:
        store = self._store
        with store.lock:
            number = store.model.slow.count(stall.run.run_id) + 1
            message = messages.stall_message(store.model.slow.next_id(), stall, offset)
        store.write_definition(store.live_runs[stall.run.run_id])
        new = make_records.stall_record(message, number, stall.is_traced, messages.stall_stacks(stall))
        store.add_stall(message, number, stall.is_traced, new)
        self._mark(messages.checkpoint_mark(message))
        self._runs_to_write.add(stall.run.run_id)
        self._ledger.add_slow(stall)
        self._analyze_again(stall)

    def _analyze_again(self, stall: Stall) -> None:
        """Request a new analysis of the step's traces, because their first sentence may name the cause now."""
        with self._store.lock:
            records = [trace.record for trace in self._store.model.traces_of(stall.run.run_id)]
        for record in records:
            if record["step"] == stall.step:  # even if it is being analyzed now
                self._summaries.announce(TraceKey.of(self._store.session()["id"], record))

    def _add_period(self, period: Period) -> None:
        message, store = messages.period_message(period), self._store
        with store.lock:
            earlier = store.model.slow.periods.get(key_of(message))
        if period.occurrences <= 0:  # 0: it has ended; MERGED: it is a part of another period
            message["next_step"] = None
            message["times"] = earlier["times"] if earlier and not period.occurrences else 0
        store.put_period(message)
        if not message["times"]:
            return
        if message["cause"] not in UNSPECIFIC_CAUSES and (earlier is None or earlier["cause"] in UNSPECIFIC_CAUSES):
            with store.lock:
                store.model.slow.count_into(message)
            self._runs_to_write.add(message["run_id"])

    def _mark(self, mark: SlowMark | None) -> None:
        if mark is None:
            return
        with self._store.lock:
            self._store.model.slow.add_mark(mark)
        self._marks.append(mark)

    def write(self) -> None:
        """Write the marks since the last call, and the sums over all slow steps, which are kept longer than the steps."""
        marks, self._marks = self._marks, []
        if marks:
            self._store.write(make_records.marks_record(marks))
        run_ids, self._runs_to_write = self._runs_to_write, set()
        for run_id in run_ids:
            with self._store.lock:
                kinds = self._store.model.slow.kinds_of(run_id).of_run(run_id)
            self._store.put_kinds(run_id, kinds)
