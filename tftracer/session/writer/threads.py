"""The tracer's three background threads: one counts and writes steps, one stores traces, one has them analyzed.

All are daemons, sleep while nothing happens, and survive errors in one of their rounds. None of them imports a module: a process
that the script forks during an import would wait for that module forever.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import numpy.ma  # noqa: F401  np.unique would import it in a thread

from tftracer.capture.steps.queue import StepQueue
from tftracer.contract.session import TraceRecord
from tftracer.engine.engine import HelperEngine
from tftracer.input_pipelines import saved_pipelines as pipeline_facts
from tftracer.ledger import saved_ledger as ledger_facts
from tftracer.memory_growth import saved_memory_growth as memory_facts
from tftracer.memory_growth.watch import MemoryWatch
from tftracer.session.problems import Guard
from tftracer.session.store import SessionStore
from tftracer.session.traces.steps_without_trace import MissingTraces
from tftracer.session.writer.keep_ledger import LOST_S, LOST_SHARE, LedgerWriter
from tftracer.session.writer.newest_record import NewestRecord
from tftracer.session.writer.store_slow_steps import SlowWriter
from tftracer.session.writer.store_traces import TraceWriter
from tftracer.session.writer.summaries import TraceSummaries
from tftracer.session.writer.writer_thread import Flush, StepWriter
from tftracer.storage.spool_folder import delete_old_spools
from tftracer.storage.trace_payload import TraceKey

CLOSE_S = 60.0  # the end of the process waits at most this long for traces to be written
HELPER_S = 3.0  # the end of the process, or a save, waits at most this long for traces to be analyzed


class Writer:
    """Starts and ends the threads. ``communication_ops``: the user's pattern of ops that communicate, for traces' contexts."""

    def __init__(self, steps: StepQueue, store: SessionStore, engine: HelperEngine, communication_ops: str) -> None:
        missing = MissingTraces()
        self._store = store
        self._summaries = TraceSummaries(store, engine, Guard(store.problems, steps.failed))
        self._traces = TraceWriter(steps, store, self._summaries, missing, communication_ops)
        ledger = LedgerWriter(steps, store)
        slow_writer = SlowWriter(steps.slow, store, ledger, self._summaries)
        self._memory = MemoryWatch(
            lambda: sum(run.statistics.steps for run in list(store.live_runs.values())), functions=steps.live_functions
        )
        newest: list[NewestRecord[Any]] = [
            NewestRecord(store, "ledger", ledger.facts, ledger_facts.record, lost=(LOST_S, LOST_SHARE)),
            NewestRecord(store, "input_pipelines", steps.pipelines.facts, pipeline_facts.record, steps.pipelines.stop),
            NewestRecord(store, "memory", self._memory_facts, memory_facts.record, self._memory.stop),
        ]
        self._steps = StepWriter(steps, slow_writer, ledger, newest, store, self._traces, self._summaries, missing)
        self._threads = [self._steps.thread, self._traces.thread]
        if store.spool.path:
            self._traces.put(partial(delete_old_spools, store.spool.path.parent))

    def start(self) -> None:
        for thread in [*self._threads, self._summaries.thread]:
            thread.start()
        self._memory.start()

    def stop(self) -> None:
        """Write everything and end the threads. If analyzing traces takes too long, it is done when the file is opened."""
        self._steps.stop()
        _join(self._threads, CLOSE_S)
        self._summaries.put(None)
        if not _join([self._summaries.thread], HELPER_S):
            self._summaries.give_up()
            _join([self._summaries.thread], CLOSE_S)

    def _memory_facts(self) -> memory_facts.MemoryFacts:
        if self._store.session()["ended_at"] is not None:  # a server that outlives its script is not part of the script's memory
            self._memory.stop()
        return self._memory.facts()

    def flush(self, timeout_s: float) -> Flush | None:
        """Wait until everything recorded before the call is written. Return the flush.

        Return None if that takes longer than ``timeout_s``, or if the threads do not run.
        """
        flush = Flush(threading.Event(), threading.Event())
        self._steps.flush(flush)
        is_alive = all(thread.is_alive() for thread in self._threads)
        return flush if is_alive and flush.written.wait(timeout_s) else None

    def analyze_later(self, record: TraceRecord) -> None:
        """Analyze a trace that was loaded from a file."""
        self._summaries.announce(TraceKey.of(self._store.session()["id"], record))


def _join(threads: list[threading.Thread], timeout_s: float) -> bool:
    """Wait for the threads, and return whether all have ended within this time."""
    until = time.monotonic() + timeout_s
    for thread in threads:
        if thread.is_alive():  # joining a thread that was never started would raise an error
            thread.join(max(until - time.monotonic(), 0))
    return not any(thread.is_alive() for thread in threads)
