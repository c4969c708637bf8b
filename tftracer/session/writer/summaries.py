"""The thread ``tftracer-summaries``: finds out what stored traces hold, for their records.

Only this thread waits for the process that decodes traces. That may take minutes on a busy machine, and a helper process that is
stopped never answers. Neither delays the thread that stores traces (store_traces.py), nor the training.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tftracer.engine.engine import HelperEngine
from tftracer.errors import UnknownError
from tftracer.session.problems import Guard
from tftracer.session.store import SessionStore
from tftracer.storage.trace_payload import TraceKey
from tftracer.trace.record_fields import unfinished

#: A requested trace is analyzed only after this delay: the page of the user who requested it asks for its timeline first.
REQUESTED_DELAY_S = 0.25

Job = Callable[[], object]


@dataclass
class Announced:
    """A stored trace whose contents are not known yet."""

    trace: TraceKey
    due: float  # time.monotonic()


class TraceSummaries:
    """Analyzes traces and runs jobs in order. ``put`` and ``announce`` may be called from any thread and do not wait."""

    def __init__(self, store: SessionStore, engine: HelperEngine, guard: Guard) -> None:
        self._store = store
        self._engine = engine
        self._guard = guard
        self._work: deque[Announced | Job | None] = deque()
        self._jobs = 0  # number of jobs in the queue; while there are any, traces are not delayed
        self._changed = threading.Condition()
        self._given_up = False
        self.thread = threading.Thread(target=guard.run_thread, args=[self._run], name="tftracer-summaries", daemon=True)

    def announce(self, trace: TraceKey, after_s: float = 0.0) -> None:
        """Analyze a trace that was stored, after ``after_s``."""
        self.put(Announced(trace, time.monotonic() + after_s))

    def put(self, work: Announced | Job | None) -> None:
        """Run a job after the traces announced so far are analyzed. None ends the thread."""
        with self._changed:
            self._work.append(work)
            self._jobs += not isinstance(work, Announced)
            self._changed.notify()

    def give_up(self) -> None:
        """Analyze no more traces, and interrupt the analysis under way: the rest is analyzed when the file is opened."""
        self._given_up = True
        self._engine.interrupt()

    # ---------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        while (work := self._next()) is not None:
            if not isinstance(work, Announced):
                self._guard.run(work)
            elif not self._given_up:
                self._guard.run(partial(self._analyze, work.trace))

    def _next(self) -> Announced | Job | None:
        with self._changed:
            while not self._work:
                self._changed.wait()
            first = self._work[0]
            if isinstance(first, Announced):
                self._changed.wait_for(lambda: self._jobs, max(first.due - time.monotonic(), 0))
            else:
                self._jobs -= 1
            return self._work.popleft()

    def _analyze(self, trace: TraceKey) -> None:
        with contextlib.suppress(UnknownError):  # a newer trace replaced it meanwhile
            self._store.trace_record(trace.id)
            contents = self._contents(trace)
            if contents is not None:
                self._store.set_trace_facts(trace.id, **contents)

    def _contents(self, trace: TraceKey) -> dict[str, Any] | None:
        """Return the trace's contents; None if the analysis was given up."""
        try:
            return self._engine.contents(trace, self._store.trace_context(trace.id).watched)
        except UnknownError:
            raise
        except Exception as error:  # memory or time ran out; the trace itself is not damaged
            return None if self._given_up else unfinished(error)
