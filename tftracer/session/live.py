"""A live session: stores what a training records, and answers requests about it.

    recorder = Recorder(keep_traces=5)      # starts nothing and writes nothing
    recorder.start()                          # spool file and threads
    ...
    recorder.close()                          # also at exit: writes what is left, ends the session

It has this process's queue of steps, the watch for slow steps, and the engine that decodes traces.

Threads: the training threads touch only the queue. ``tftracer-writer`` (writer/writer_thread.py) counts steps and writes them;
``tftracer-traces`` (writer/store_traces.py) compresses and stores traces, ``tftracer-summaries`` (writer/summaries.py) has them
analyzed. Everything else may be called from any thread. Listeners are called from these threads, or from the thread that caused
the change; messages about runs and steps come at most 5 times a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from tftracer.call_in_child import call_in_child
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.traces.trace_expected_slow_steps import ExpectedTraces
from tftracer.contract.session import Loaded, Run, TraceRecord
from tftracer.contract.stalls import Stall, StallDetail
from tftracer.engine.engine import HelperEngine
from tftracer.errors import UnsupportedError
from tftracer.session.answers import SessionSource
from tftracer.session.ctrl_c_at_end import call_at_exit
from tftracer.session.files import records
from tftracer.session.files.saved import SavedSession, open_session
from tftracer.session.model import is_analyzed
from tftracer.session.process.facts import process_facts
from tftracer.session.steps.statistics import LiveRun
from tftracer.session.store import SessionStore
from tftracer.session.writer.threads import HELPER_S, Writer
from tftracer.session.writer.writer_thread import Flush
from tftracer.slow.answer.sources import with_sources
from tftracer.slow.record.kept_slow_steps import SlowLog
from tftracer.slow.record.make_records import copied_stall_record
from tftracer.slow.watch.watch import SlowWatch
from tftracer.storage.whole_file import write_whole
from tftracer.trace.units import counted

log = logging.getLogger("tftracer")

WRITING = "writing the session"  # the name of this activity in the ledger
SAVE_S = 60.0  # a save waits at most this long for earlier records to be written
SLOW_STEPS_S = 10.0  # and before that, at most this long until the slow steps so far are reported
SLOW_STEPS_MISSING = "slow_steps_missing"


def load(store: SessionStore, other: SavedSession, origin: str, analyze_later: Callable[[TraceRecord], None] | None) -> Loaded:
    """Add a saved session's runs and traces under new numbers. ``origin``: the file's name."""
    other.check_payloads()
    for run in other.runs():
        _load_run(store, other, run, origin, analyze_later)
    return other.as_loaded()


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
    store.put_kinds(run_id=new_id, kinds=[{**kind, "run_id": new_id} for kind in log.kinds_of(run_id).of_run(run_id)])
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


class Recorder(SessionSource):
    """A live session.

    keep_traces: how many traces from global tracing or from the script are kept for each run (traces_to_drop.py chooses them).
    Traces that users requested are kept up to MAX_REQUESTED_BYTES in total. spool_dir: the folder to which the session is written
    while it runs (default: $TFTRACER_SPOOL_DIR or the user's cache). communication_ops: a pattern of ops that communicate.
    slow_factor: a step is slow if it takes more than this many times the median, and more than 20 ms longer than it; None: slow
    steps are not watched for.
    """

    def __init__(
        self,
        keep_traces: int = 5,
        spool_dir: str | os.PathLike[str] | None = None,
        communication_ops: str = "",
        slow_factor: float | None = None,
    ) -> None:
        self.communication_ops = communication_ops
        self.queue = queue = StepQueue()
        self._watch: SlowWatch | None = None
        if slow_factor is not None:
            self._watch = SlowWatch(queue, slow_factor, ExpectedTraces(queue.requests, queue.count_steps))
        self.store = store = SessionStore(process_facts(), max(1, int(keep_traces)))
        super().__init__(store.model, store.lock, store.publisher)
        self.engine = HelperEngine(lambda trace: self.store.trace_payload(trace.id))
        self._spool_dir = spool_dir
        self._writer: Writer | None = None
        self._cancel_close_at_exit: Callable[[], None] = lambda: None
        self._pid = os.getpid()
        self._closed = False
        self._starting = threading.Lock()

    # ----------------------------------------------------------------------------------------------- starting, ending

    def start(self) -> Recorder:
        """Open the spool and start the threads; a second call does nothing. Return the session."""
        with self._starting:
            if self._writer is None and not self._closed:
                self.store.open_spool(self._spool_dir)
                self._cancel_close_at_exit = call_at_exit(self.close)
                call_in_child(self.after_fork)
                self._writer = Writer(self.queue, self.store, self.engine, self.communication_ops)
                self._writer.start()
        self.store.set_facts(slow_watch="on" if self._watch else "off")
        if self._watch and not self._closed:
            try:
                self._watch.start()
            except Exception as error:  # for example no thread could be started
                self.add_problem("slow_steps", f"Slow steps are not looked for: {type(error).__name__}: {error}.")
        return self

    def close(self) -> None:
        """Write what is left, end the session, and release the file. Its traces can still be read."""
        if self._watch:
            with contextlib.suppress(Exception):  # the session must end anyway
                self._watch.stop()  # before the rest, so that its slow steps are written
        with self._starting:
            if self._closed or os.getpid() != self._pid:
                return
            self._closed = True
        self._cancel_close_at_exit()
        self._log_waiting_requests()
        if self._writer:
            with self.queue.activities.tracing(WRITING):
                self._writer.stop()
        self.queue.close()  # if the training continues, it is no longer recorded
        self.engine.close()
        self.store.close()

    def _log_waiting_requests(self) -> None:
        waiting = self.queue.requests.waiting()
        if waiting:
            traces, were = counted(waiting, "requested trace"), "was" if waiting == 1 else "were"
            log.warning("tftracer: %s %s not taken: the script ended before these steps.", traces, were)

    @property
    def closed(self) -> bool:
        return self._closed

    def after_fork(self) -> None:
        """Stop recording in a forked child: it has no writer threads, and the spool belongs to the parent."""
        if self._watch:
            with contextlib.suppress(Exception):
                self._watch.after_fork()
        self.queue.switch_off()
        self.store.spool.leave_to_parent()

    def flush(self, timeout_s: float = 600.0) -> bool:
        """Wait until everything recorded before the call is counted, written and analyzed.

        Return False if that takes longer than ``timeout_s``, or if the session was not started.
        """
        until = time.monotonic() + timeout_s
        flush = self._flush(timeout_s)
        return flush is not None and flush.analyzed.wait(max(until - time.monotonic(), 0))

    def flush_to_file(self, timeout_s: float) -> bool:
        """Wait until everything recorded before the call is counted and written. Return False like ``flush``."""
        with self.queue.activities.tracing(WRITING):
            return self._flush(timeout_s) is not None

    def _flush(self, timeout_s: float) -> Flush | None:
        return self._writer.flush(timeout_s) if self._writer else None

    def set_tensorflow(self, version: str, hook_cost_s: float | None) -> None:
        self.store.set_facts(tensorflow=version, hook_cost_s=hook_cost_s)

    def add_problem(self, code: str, message: str) -> None:
        """Report a problem in the log and on the page, once for each code."""
        self.store.problems.add(code, message)

    def solved(self, code: str) -> None:
        """Report that a problem is over."""
        self.store.problems.solve(code)

    # ------------------------------------------------------------------------------------------------------- reading

    def stall(self, stall_id: int) -> StallDetail:
        detail = super().stall(stall_id)
        with self.lock:
            origin = self.model.run(detail["stall"]["run_id"]).origin
        return detail if origin else {**detail, "stacks": with_sources(detail["stacks"], self.session()["started_at"])}

    def is_sampled(self, run_id: int) -> bool:
        slow = self.queue.slow
        requested = slow.run_to_profile if slow.profile_requested.is_set() else None
        return run_id in {run.run_id for run in (requested, slow.run_profiled) if run}

    # ------------------------------------------------------------------------------------------------------ changing

    def set_trace_facts(self, trace_id: int, **facts: Any) -> TraceRecord:
        return self.store.set_trace_facts(trace_id, **facts)

    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False, more: bool = False) -> None:
        """``more``: add the steps to those that are requested already, instead of replacing the request."""
        self.engine.start_in_background()
        if run_id is None:
            self.queue.requests.request(None, steps, more)
            return
        live = self._live_run(run_id, "traced")
        if live.handle.refusal and steps:
            raise UnsupportedError(live.handle.refusal)
        if with_graph:
            self.queue.request_graph(live.handle)
        elif not steps:
            live.handle.graph_requested = False
        self.queue.requests.request(live.handle, steps, more)
        self.store.publish_run(run_id)

    def sample_gaps(self, run_id: int) -> None:
        live = self._live_run(run_id, "sampled")
        if self.session()["slow_watch"] == "off":
            raise UnsupportedError("Nothing is sampled, because slow steps are not watched for (trace_slow=False).")
        self.queue.slow.run_to_profile = live.handle
        self.queue.slow.profile_requested.set()

    def set_trace_all(self, on: bool) -> None:
        self.engine.start_in_background()
        self.queue.requests.set_trace_all(on)
        self.store.set_facts(trace_all=on)

    def _live_run(self, run_id: int, what: str) -> LiveRun:
        self.store.run(run_id)  # UnknownError if there is no such run
        live = self.store.live_runs.get(run_id)
        if live is None:
            raise UnsupportedError(f"Run {run_id} was loaded from a file: there is no training in it to be {what}.")
        return live

    def finished_steps(self) -> dict[str, int]:
        """Return run title -> number of finished steps; the next one may be under way."""
        return self.queue.finished_steps()

    def request_trace_at(self, run_title: str, step: int) -> bool:
        """Trace the run's step with this number (as ``finished_steps`` counts); all ranks of a job trace the same number.

        Return False if the step has begun already, or if there is no such run. Replaces a request for another step of the run.
        """
        return self.queue.request_step(run_title, step)

    def cancel_step_requests(self) -> None:
        self.queue.cancel_steps()

    # -------------------------------------------------------------------------------------------------- saving, loading

    def save(self, path: str) -> None:
        if self._watch and not self._closed and not self._watch.report_pending(SLOW_STEPS_S):
            self.add_problem(
                SLOW_STEPS_MISSING,
                "Slow steps of the last seconds before the session was saved may be missing in the file: their stacks were not "
                "read in time.",
            )
        try:
            flush = self._flush(SAVE_S)
            if flush is not None:
                flush.analyzed.wait(HELPER_S)
            write_whole(path, self.saved_bytes())
        finally:
            self.solved(SLOW_STEPS_MISSING)

    def saved_bytes(self) -> Iterator[bytes]:
        chunks = self.store.saved_bytes()
        return chain([next(chunks)], chunks)  # takes the first chunk now, which fixes what is saved

    def load(self, path: str, name: str = "") -> Loaded:
        later = self._writer.analyze_later if self._writer else None
        return load(self.store, open_session(path), name or Path(path).name, later)
