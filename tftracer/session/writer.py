"""The two threads behind the training threads: one counts and writes steps, one stores traces.

Both are daemons, sleep while nothing happens, and survive whatever goes wrong in one round of theirs.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from tftracer.contract.session import TraceRecord
from tftracer.session.missing_traces import MissingTraces
from tftracer.session.publisher import Publish
from tftracer.session.recorded_steps import StepSource
from tftracer.session.slow.writer import SlowWriter
from tftracer.session.step_writer import StepWriter
from tftracer.session.store import SessionStore
from tftracer.session.trace_analyzer import TraceAnalyzer
from tftracer.session.trace_writer import TraceWriter
from tftracer.slow.recorded import SlowRecords
from tftracer.storage.spool_folder import tidy

CLOSE_S = 60.0  # that the end of the process may wait for traces to be written
HELPER_S = 3.0  # that the end of the process, or a save, may wait for traces to be analyzed


class Writer:
    """``communication_ops``: the user's pattern of ops that communicate, part of each trace's context."""

    def __init__(
        self,
        steps: StepSource,
        slow: SlowRecords,
        store: SessionStore,
        publish: Publish,
        analyzer: TraceAnalyzer,
        communication_ops: str,
    ) -> None:
        missing = MissingTraces()
        self._traces = TraceWriter(steps, store, analyzer, missing, communication_ops)
        self._steps = StepWriter(steps, SlowWriter(slow, store), store, publish, self._traces, missing)
        self._threads = [self._steps.thread, self._traces.thread]
        if store.spool.path:
            self._traces.put(partial(tidy, store.spool.path.parent))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Write everything and end both threads. What is not analyzed soon is analyzed by whoever opens the file."""
        self._steps.stop()
        if not self._join(HELPER_S):
            self._traces.put_off_analysis()
            self._join(CLOSE_S)

    def _join(self, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.is_alive():  # else it could not be started
                thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that came before the call is written and analyzed; False if that takes longer."""
        done = threading.Event()
        self._steps.flush(done)
        return all(thread.is_alive() for thread in self._threads) and done.wait(timeout_s)

    def flush_without_analysis(self, timeout_s: float) -> bool:
        """As ``flush``, and traces that are not analyzed soon are analyzed later."""
        if self.flush(min(HELPER_S, timeout_s)):
            return True
        self._traces.put_off_analysis()
        try:
            return self.flush(timeout_s)
        finally:
            self._traces.resume_analysis()

    def analyze_later(self, record: TraceRecord) -> None:
        """For a trace that was loaded from a file."""
        self._traces.analyze_later(record)
