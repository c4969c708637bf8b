"""Records and traces the steps of one cell, with the server of ``hook_inject`` if there is one, or else with a separate recorder.

The separate recorder has no page and ends with the cell; then TensorFlow's methods are restored. Every step of the first seconds
is traced. Later, steps are traced from time to time, because it is not known in advance which step is the last.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tftracer.capture.after_import import after_import
from tftracer.contract.session import Run, TraceRecord

if TYPE_CHECKING:
    from tftracer.scripting.session import Session
    from tftracer.scripting.trace import SessionTrace
    from tftracer.session.live import Recorder

#: Seconds in which every step is traced.
ALL_S = 10.0
#: After that, the time until the next traced step is this share of the cell's time so far, but at least this many seconds.
LATER_SHARE, LATER_S = 0.1, 0.05
FLUSH_S = 60.0


@dataclass(frozen=True)
class CellRun:
    """A run's part in the cell. ``steps``: number of its steps there. ``traces``: traces of these steps, oldest first."""

    run: Run
    steps: int
    traces: list[TraceRecord]

    @property
    def seconds(self) -> float:
        """The approximate total time of its steps."""
        lengths = sorted(trace["duration_s"] or 0.0 for trace in self.traces)
        usual = self.run["mean_s"] or (lengths[len(lengths) // 2] if lengths else 0.0)
        return self.steps * usual


@dataclass(frozen=True)
class Recorded:
    """The result of a recording. ``runs``: runs with steps in the cell, most time first. ``problems``: why traces are missing."""

    session: Session | None
    runs: list[CellRun]
    problems: list[str]

    def selected_trace(self, slowest: bool) -> SessionTrace | None:
        """Return the trace to show: the slowest or the last one of the run with traces that took the most time; None if there is
        none."""
        traced = next((run.traces for run in self.runs if run.traces), [])
        if not traced or self.session is None:
            return None
        shown = max(traced, key=lambda trace: trace["duration_s"] or 0.0) if slowest else traced[-1]
        return self.session.trace(shown["id"])


class CellRecording:
    """A recording. It begins when the object is created or, if TensorFlow is not imported yet, with its import. Never raises."""

    def __init__(self, all_s: float = ALL_S) -> None:
        self._all_s = all_s
        self._problems: list[str] = []
        self.recorder: Recorder | None = None
        self._undo = contextlib.ExitStack()
        self._finished = threading.Event()
        self._steps_before: dict[int, int] = {}
        self._traces_before: set[int] = set()
        self._stop_waiting = after_import("tensorflow", self._begin)

    def finish(self) -> Recorded:
        """End the recording and return the result."""
        self._stop_waiting()
        self._finished.set()
        try:
            return self._recorded()
        except Exception as error:
            return Recorded(None, [], [*self._problems, f"What was traced cannot be read: {error}"])
        finally:
            with contextlib.suppress(Exception):
                self._undo.close()

    def _begin(self) -> None:
        try:
            self.recorder = recorder = self._server_recorder() or self._own_recorder()
            runs = recorder.runs()
            self._steps_before = {run["id"]: run["steps"] for run in runs}
            self._traces_before = {trace["id"] for run in runs for trace in run["traces"]}
            self._undo.callback(recorder.set_trace_all, recorder.session()["trace_all"])
            recorder.set_trace_all(True)
            threading.Thread(target=self._trace_now_and_then, args=[recorder], name="tftracer-cell", daemon=True).start()
        except Exception as error:  # the cell must run anyway
            self._problems.append(f"Nothing was traced: {error}")

    def _server_recorder(self) -> Recorder | None:
        from tftracer.record_all_sessions import injected_server

        server = injected_server()
        if server is None or server.recorder.closed:
            return None
        server.recorder.flush(FLUSH_S)
        return server.recorder

    def _own_recorder(self) -> Recorder:
        from tftracer.capture import session_wrappers
        from tftracer.capture.function_runs import FunctionRuns
        from tftracer.capture.hook import HookMethods
        from tftracer.session.live import Recorder

        folder = self._undo.enter_context(tempfile.TemporaryDirectory(prefix="tftracer-", ignore_cleanup_errors=True))
        recorder = Recorder(spool_dir=folder)
        self._undo.callback(recorder.close)
        recorder.start()
        functions = FunctionRuns(recorder.queue)
        self._undo.callback(functions.stop)
        functions.watch()
        self._undo.callback(session_wrappers.install(HookMethods(recorder)).undo)
        recorder.queue.sees_all_sessions = True
        return recorder

    def _trace_now_and_then(self, recorder: Recorder) -> None:
        began, pause = monotonic(), self._all_s
        while not self._finished.wait(pause):
            recorder.set_trace_all(False)
            recorder.request_traces(None, 1)
            pause = max((monotonic() - began) * LATER_SHARE, LATER_S)

    def _recorded(self) -> Recorded:
        recorder = self.recorder
        if recorder is None:
            return Recorded(None, [], self._problems)
        recorder.request_traces(None, 0)
        recorder.set_trace_all(False)
        if not recorder.flush(FLUSH_S):
            self._problems.append(f"Writing the traces takes longer than {FLUSH_S:.0f} s: the last traces are missing.")
        self._problems += [problem["message"] for problem in recorder.session()["problems"]]
        session = self._opened(recorder)
        runs = [self._cell_run(run) for run in session.run_messages()]
        used = sorted((run for run in runs if run.steps), key=lambda run: -run.seconds)
        return Recorded(session, used, self._problems)

    def _opened(self, recorder: Recorder) -> Session:
        """Open the session in its current state. It stays open although its file is deleted with the folder."""
        from tftracer.scripting.session import open as open_session

        with tempfile.TemporaryDirectory(prefix="tftracer-") as folder:
            path = Path(folder) / "cell.tftrace"
            recorder.save(str(path))
            return open_session(path)

    def _cell_run(self, run: Run) -> CellRun:
        traces = [trace for trace in run["traces"] if trace["id"] not in self._traces_before]
        return CellRun(run, run["steps"] - self._steps_before.get(run["id"], 0), traces)
