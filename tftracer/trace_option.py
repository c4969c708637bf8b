"""``tftracer run --trace N --from STEP``: requests traces without a user at the page, for example for a gate in CI."""

from __future__ import annotations

import contextlib

from tftracer.contract.live import LiveMessage
from tftracer.errors import UnsupportedError
from tftracer.recorder import Recorder
from tftracer.session.steps.statistics import total_s

#: At most this many runs are traced: the main run, and each one that becomes the main run later.
MAX_RUNS = 5


class UnattendedTraces:
    """Requests traces of the main run when it reaches ``first_step``.

    The main run is the run with more than one step that took the most time so far; an initialization has only one step. The
    number of steps is checked five times a second on the session's thread, so tracing begins at ``first_step`` or soon after. If
    another run becomes the main run later, its next ``steps`` are traced, too.
    """

    def __init__(self, recorder: Recorder, steps: int, first_step: int) -> None:
        self._recorder = recorder
        self._steps = steps
        self._first_step = first_step
        self._requested: set[int] = set()  # run ids
        self._unsubscribe = recorder.subscribe(self._listen)

    def _listen(self, message: LiveMessage) -> None:
        if message["type"] != "run":
            return
        run = max(self._recorder.runs(), key=lambda run: (run["steps"] > 1, total_s(run)))
        if run["steps"] >= self._first_step - 1 and run["id"] not in self._requested:
            self._requested.add(run["id"])  # before the request, which changes the run and calls this again
            if len(self._requested) == MAX_RUNS:
                self._unsubscribe()
            with contextlib.suppress(UnsupportedError):  # TensorFlow cannot trace its steps
                self._recorder.request_traces(run["id"], self._steps)

    def problem(self) -> str:
        """Return a sentence about missing traces at the end of the script; ``""`` if none are missing."""
        runs = [run for run in self._recorder.runs() if run["id"] in self._requested]
        if not runs:
            return f"no step was traced: no run came to step {self._first_step:,} while it was the one that took the most time"
        main = max(runs, key=total_s)
        traces = sum(trace["asked_by"] == "user" for trace in main["traces"])
        return "" if traces >= self._steps else f"{traces} of {self._steps:,} steps were traced: {main['title']!r} had no more"
