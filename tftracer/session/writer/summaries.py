"""The thread ``tftracer-summaries``: finds out what stored traces hold, for their records.

It alone waits for whoever decodes traces. That may take minutes on a busy machine, and a helper process that is stopped never
answers: neither holds up the storing of traces (traces.py), and so neither holds up the training.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tftracer.errors import UnknownError
from tftracer.session.problems import Guard
from tftracer.session.store import SessionStore
from tftracer.storage.trace_payload import TraceKey
from tftracer.trace.contents import unfinished
from tftracer.trace.model import Watched

#: A trace that somebody requested is analyzed so long after it was announced: those who look on ask for its timeline first.
AFTER_S = 0.25

Job = Callable[[], object]


class TraceAnalyzer(Protocol):
    """What finds out for a live session what its traces hold (engine/engine.py)."""

    def start_in_background(self) -> None:
        """A trace will come soon. Does not wait."""

    def contents(self, trace: TraceKey, watched: Watched) -> dict[str, Any]:
        """``nodes``, ``devices``, ``findings``, ``headline`` and ``state`` of its record."""

    def interrupt(self) -> None:
        """Give up what is being done."""

    def close(self) -> None: ...


@dataclass
class Announced:
    """A stored trace whose contents are not known yet."""

    trace: TraceKey
    due: float  # time.monotonic()


class TraceSummaries:
    """``put`` and ``announce`` may be called from any thread and wait for nothing."""

    def __init__(self, store: SessionStore, analyzer: TraceAnalyzer, guard: Guard) -> None:
        self._store = store
        self._analyzer = analyzer
        self._guard = guard
        self._work: deque[Announced | Job | None] = deque()
        self._waiting = 0  # jobs in the queue: traces before them are analyzed at once
        self._changed = threading.Condition()
        self._given_up = False
        self.thread = threading.Thread(target=guard.run_thread, args=[self._run], name="tftracer-summaries", daemon=True)

    def announce(self, trace: TraceKey, after_s: float = 0.0) -> None:
        """A trace was stored."""
        self._put(Announced(trace, time.monotonic() + after_s))

    def put(self, job: Job) -> None:
        """Something to be done when all traces that came before are analyzed."""
        self._put(job)

    def end(self) -> None:
        """When all that came before is done."""
        self._put(None)

    def give_up(self) -> None:
        """Analyze no more, and end: whoever opens the file analyzes the rest."""
        self._given_up = True
        self._analyzer.interrupt()

    def _put(self, work: Announced | Job | None) -> None:
        with self._changed:
            self._work.append(work)
            self._waiting += not isinstance(work, Announced)
            self._changed.notify()

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
                self._changed.wait_for(lambda: self._waiting, max(first.due - time.monotonic(), 0))
            else:
                self._waiting -= 1
            return self._work.popleft()

    def _analyze(self, trace: TraceKey) -> None:
        with contextlib.suppress(UnknownError):  # it has made way meanwhile
            self._store.trace_record(trace.id)
            contents = self._contents(trace)
            if contents is not None:
                self._store.set_trace_facts(trace.id, **contents)

    def _contents(self, trace: TraceKey) -> dict[str, Any] | None:
        """None: it was given up."""
        try:
            return self._analyzer.contents(trace, self._store.trace_context(trace.id).watched)
        except UnknownError:
            raise
        except Exception as error:  # memory or time ran out; the trace is whole
            return None if self._given_up else unfinished(error)
