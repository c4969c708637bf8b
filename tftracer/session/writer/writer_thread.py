"""The thread ``tftracer-writer``: takes steps and slow steps from the training's queues, counts, publishes and writes them."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from tftracer.capture.recorded_steps import Capture, CountedStep, Missed, Traced
from tftracer.capture.steps.queue import StepQueue
from tftracer.run_handle import RunHandle
from tftracer.session.files import records
from tftracer.session.problems import Guard
from tftracer.session.process.launcher import detect_launcher
from tftracer.session.steps.history import History
from tftracer.session.steps.statistics import Between, LiveRun
from tftracer.session.store import SessionStore
from tftracer.session.traces.steps_without_trace import MissingTraces
from tftracer.session.traces.traces_of_usual_steps import measures_tracing
from tftracer.session.writer.keep_ledger import LedgerWriter
from tftracer.session.writer.newest_record import NewestRecord
from tftracer.session.writer.no_steps import no_steps
from tftracer.session.writer.store_slow_steps import SlowWriter
from tftracer.session.writer.store_traces import CountedTrace, TraceWriter
from tftracer.session.writer.summaries import TraceSummaries
from tftracer.trace.arrays.types import Float64

ROUND_S = 0.2  # between two reads of the queue, and two updates of the page
FLUSH_S = 2.0  # between two writes of step times: a killed process loses at most the steps of this time
HISTORY_STEPS = 100_000  # steps that are written one by one before the history is written as a whole
#: The spool is rewritten if more than SUPERFLUOUS_BYTES and more than half of the spool are superfluous, or more than
#: SUPERFLUOUS_RECORDS records.
SUPERFLUOUS_BYTES = 16 << 20
SUPERFLUOUS_RECORDS = 20_000


class Flush(NamedTuple):
    """Events for a caller who waits until the file has everything recorded before the call, and until its traces are analyzed."""

    written: threading.Event
    analyzed: threading.Event


class StepWriter:
    def __init__(
        self,
        steps: StepQueue,
        slow: SlowWriter,
        ledger: LedgerWriter,
        newest_records: Sequence[NewestRecord[Any]],
        store: SessionStore,
        traces: TraceWriter,
        summaries: TraceSummaries,
        missing: MissingTraces,
    ) -> None:
        self._steps = steps
        self._store = store
        self._traces = traces
        self._summaries = summaries
        self._missing = missing
        self._slow = slow
        self._ledger = ledger
        self._newest_records = newest_records
        self._guard = Guard(store.problems, steps.failed)
        self._unpublished: dict[int, None] = {}  # ids of the runs with steps since the last update, in order
        self._next_publish = self._next_flush = 0.0
        self._reported: set[str] = set()  # codes of the steps' problems
        self._stopping = False
        self._is_end_published = False
        self._flushes: deque[Flush] = deque()
        self.thread = threading.Thread(target=self._guard.run_thread, args=[self._run], name="tftracer-writer", daemon=True)

    def stop(self) -> None:
        """End the thread after a last round, and then the traces' thread."""
        self._stopping = True
        self._steps.arrived.set()

    def flush(self, flush: Flush) -> None:
        """Set the events when everything recorded before the call is written, and when it is analyzed."""
        self._flushes.append(flush)
        self._steps.arrived.set()

    def _run(self) -> None:
        while not self._stopping:
            self._steps.arrived.wait(ROUND_S)
            self._steps.arrived.clear()
            self._guard.run(self._round)
        self._guard.run(self._last_round)
        self._traces.put(None)

    def _round(self) -> None:
        flushes = _take_all(self._flushes)
        try:
            self._work(bool(flushes))
        finally:  # an error must not leave callers waiting forever
            if flushes:
                self._traces.put(partial(self._flushed, flushes))

    def _work(self, at_once: bool) -> None:
        self._steps.restore_failed_claims()
        self._count()
        self._ledger.add_stops()
        for each in self._newest_records:
            each.update_if_due()
        self._take_slow()
        self._poll_changes()
        now = perf_counter()
        if now >= self._next_publish or at_once:
            self._next_publish = now + ROUND_S
            self._publish_steps()
        if now >= self._next_flush or at_once:
            self._next_flush = now + FLUSH_S
            if at_once or not self._store.spool.busy():  # a spool that is being rewritten gets the steps the next time
                self._write(at_once)

    def _last_round(self) -> None:
        self._store.script_ended()
        self._count()
        self._ledger.add_stops()
        for each in self._newest_records:
            each.end()
        self._take_slow()
        self._report_missing()
        self._publish_steps()
        self._write(at_once=True)
        self._traces.put(partial(self._flushed, _take_all(self._flushes)))

    def _flushed(self, flushes: list[Flush]) -> None:
        """Set the events. Runs on the thread that stores traces, after all earlier traces are stored."""
        for flush in flushes:
            flush.written.set()
            self._summaries.put(flush.analyzed.set)

    # ------------------------------------------------------------------------------------------------------ counting

    def _count(self) -> None:
        """Count the steps of the queue. The time of day is read again each time, because users may set the clock."""
        self._steps.count_steps()
        counted, offset = self._steps.counted, time.time() - perf_counter()
        taken = [counted.popleft() for _ in range(len(counted))]
        if not taken:
            return
        starts = np.array([step[1] for step in taken]) * 1e-9 + offset
        durations = np.maximum(np.array([step[2] - step[1] for step in taken]), 0) * 1e-9
        outside, inputs = (np.array([np.nan if step[i] is None else step[i] for step in taken], float) * 1e-9 for i in (3, 4))
        for handle, positions in _by_run(taken).items():
            between = Between(outside[positions], inputs[positions])
            traces = [taken[position][-1] for position in positions]
            self._count_run(handle, starts[positions], durations[positions], between, traces)

    def _count_run(self, handle: RunHandle, starts: Float64, durations: Float64, between: Between, traces: list[Traced]) -> None:
        run = self._store.live_run(handle)
        captures = {position: trace for position, trace in enumerate(traces) if isinstance(trace, Capture)}
        measuring = [position for position, capture in captures.items() if measures_tracing(capture.asked_by)]
        with self._store.lock:
            first = run.statistics.add(starts, durations, between, list(captures), measuring)
        run.unwritten.add(starts, durations, list(captures))
        for position, trace in enumerate(traces):
            if isinstance(trace, Missed) and trace.is_lost:
                self._missing.add(handle.title, first + position, trace.reason)
        self._unpublished[handle.run_id] = None
        for position, capture in captures.items():
            times = float(starts[position]), float(durations[position]), run.statistics.median_s, run.statistics.between_steps
            self._traces.put(CountedTrace(run, capture, first + position, *times, between.before(position)))

    def _poll_changes(self) -> None:
        """Take over changes that come without an event: open sessions, lost steps, a tracer that switched itself off."""
        steps, facts = self._steps, self._store.session()
        active, lost = steps.active(), steps.lost
        if active != facts["active"] or lost != facts["steps_lost"]:
            launcher = detect_launcher() if active else facts["place"]
            gpus = steps.facts.gpus if active else facts["gpus"]
            self._store.set_facts(active=active, steps_lost=lost, place=launcher, rank=launcher["rank"], gpus=gpus)
        if not facts["tensorflow"] and (version := getattr(sys.modules.get("tensorflow"), "__version__", "")):
            self._store.set_facts(tensorflow=str(version))
        why = "" if self._store.live_runs else no_steps(sys.modules, facts["place"]["role"], steps.sees_all_sessions)
        if why != facts["no_steps"]:
            self._store.set_facts(no_steps=why)
        self._report_missing()
        problems = steps.problems()
        for code, message in problems.items():
            self._store.problems.update(code, message)
        for code in self._reported - problems.keys():
            self._store.problems.solve(code)
        self._reported = set(problems)
        for failure in list(steps.failures):
            self._store.problems.add("switched_off", f"The tracer failed and is switched off ({failure}). Training goes on.")

    def _report_missing(self) -> None:
        if self._missing.changed:
            self._store.problems.replace("missing_traces", self._missing.message())

    # -------------------------------------------------------------------------------------------- publishing, writing

    def _take_slow(self) -> None:
        """Store new slow steps, and have their runs published: a run's last slow steps are found after its last step.

        After the script's end the page does not ask for the ledger at intervals, so tell it when the last figures are there.
        """
        run_ids = self._slow.take()
        self._unpublished.update(dict.fromkeys(run_ids))
        if self._store.session()["ended_at"] is None or (self._is_end_published and not run_ids):
            return
        self._is_end_published = True
        for each in self._newest_records:
            each.update()
        self._store.set_facts()

    def _publish_steps(self) -> None:
        unpublished, self._unpublished = self._unpublished, {}
        for run_id in unpublished:
            self._store.publish_run(run_id)

    def _write(self, at_once: bool) -> None:
        """Write what is due; everything if ``at_once``, because a caller waits."""
        self._store.write_facts()
        for run in list(self._store.live_runs.values()):
            if run.unwritten.changed:
                self._write_run(run)
        self._slow.write()
        for each in self._newest_records:
            each.write(at_once)
        spool = self._store.spool
        if spool.superfluous_bytes > max(SUPERFLUOUS_BYTES, spool.size // 2) or spool.superfluous_records > SUPERFLUOUS_RECORDS:
            self._traces.put(self._store.rewrite)

    def _write_run(self, run: LiveRun) -> None:
        unwritten, store = run.unwritten, self._store
        steps = unwritten.take(run.statistics.steps, HISTORY_STEPS)
        with store.lock:
            state = store.model.runs[run.handle.run_id]
            state.statistics = run.statistics.message()
            history = History() if steps else run.statistics.history.copy()
        store.write_definition(run)
        size = store.write(records.steps_record(state, *steps) if steps else records.history_record(state, history))
        if not size:
            unwritten.add_failure()
            return
        if not steps:
            store.spool.release(unwritten.written_bytes, records=unwritten.written_records)
        unwritten.add_written(size, len(steps.starts) if steps else 0)


def _by_run(taken: list[CountedStep]) -> dict[RunHandle, list[int]]:
    """Return the positions of each run's steps."""
    positions: dict[RunHandle, list[int]] = {}
    for position, step in enumerate(taken):
        positions.setdefault(step[0], []).append(position)
    return positions


def _take_all(flushes: deque[Flush]) -> list[Flush]:
    return [flushes.popleft() for _ in range(len(flushes))]
