"""Assembles a live session: this process's queue, the slow-step watch, the session, the process that decodes traces."""

from __future__ import annotations

import contextlib
import os

from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.traces.trace_expected_slow_steps import ExpectedTraces
from tftracer.engine.engine import HelperEngine
from tftracer.session.live import LiveSession
from tftracer.slow.watch.watch import SlowWatch

#: A save waits at most this many seconds until the slow steps so far are reported.
SAVE_WAIT_S = 10.0
SLOW_STEPS_MISSING = "slow_steps_missing"


class Recorder(LiveSession):
    """A live session with all its parts. Nothing is started or written before ``start``. Other options: see LiveSession.

    ``slow_factor``: a step is slow if it takes more than this many times the median, and more than 20 ms
    longer than it; None: slow steps are not watched for.
    """

    def __init__(
        self,
        keep_traces: int = 5,
        spool_dir: str | os.PathLike[str] | None = None,
        communication_ops: str = "",
        slow_factor: float | None = None,
    ) -> None:
        self.queue = StepQueue()
        self._watch: SlowWatch | None = None
        if slow_factor is not None:
            traces = ExpectedTraces(self.queue.requests, self.queue.count_steps)
            self._watch = SlowWatch(self.queue, slow_factor, traces)
        super().__init__(self.queue, HelperEngine, keep_traces, spool_dir, communication_ops)

    @property
    def engine(self) -> HelperEngine:
        """Answers questions about the session's traces."""
        assert isinstance(self._analyzer, HelperEngine)
        return self._analyzer

    def start(self) -> Recorder:
        super().start()
        self.store.set_facts(slow_watch="on" if self._watch else "off")
        if self._watch and not self.closed:
            try:
                self._watch.start()
            except Exception as error:  # for example no thread could be started
                self.add_problem("slow_steps", f"Slow steps are not looked for: {type(error).__name__}: {error}.")
        return self

    def save(self, path: str) -> None:
        if self._watch and not self.closed and not self._watch.report_pending(SAVE_WAIT_S):
            self.add_problem(
                SLOW_STEPS_MISSING,
                "Slow steps of the last seconds before the session was saved may be missing in the file: their stacks were not "
                "read in time.",
            )
        try:
            super().save(path)
        finally:
            self.solved(SLOW_STEPS_MISSING)

    def close(self) -> None:
        if self._watch:
            with contextlib.suppress(Exception):  # the session must end anyway
                self._watch.stop()  # before the rest, so that its slow steps are written
        super().close()

    def after_fork(self) -> None:
        if self._watch:
            with contextlib.suppress(Exception):
                self._watch.after_fork()
        super().after_fork()
