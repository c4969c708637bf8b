"""``tftracer run --trace N --from STEP``: requests traces without a user at the page, for example for a gate in CI."""

from __future__ import annotations

import contextlib

from tftracer.contract.live import LiveMessage
from tftracer.contract.session import Run
from tftracer.errors import UnsupportedError
from tftracer.ledger.parts_of_wall_time import function_key
from tftracer.session.live import Recorder
from tftracer.session.steps.statistics import total_s

#: At most this many functions or sessions' runs are traced: the main one, and each one that becomes the main one later.
MAX_REQUESTS = 5


class UnattendedTraces:
    """Requests traces of the main run when it reaches ``first_step``.

    The main run is the one that took the most time of those with more than one step, so that initialization does not count. The
    runs of a compiled function, one for each signature, count as one run: a function that TensorFlow traces anew at each call
    has no run of two steps. Steps are checked five times a second on the session's thread, so the traced steps come at
    ``first_step`` or soon after. If another run takes more time later, its next ``steps`` are traced, too.
    """

    def __init__(self, recorder: Recorder, steps: int, first_step: int) -> None:
        self._recorder = recorder
        self._steps = steps
        self._first_step = first_step
        self._requested: set[object] = set()
        self._unsubscribe = recorder.subscribe(self._listen)

    def _listen(self, message: LiveMessage) -> None:
        if message["type"] != "run":
            return
        function, runs = max(_functions(self._recorder).items(), key=lambda each: (_steps(each[1]) > 1, _total_s(each[1])))
        if _steps(runs) >= self._first_step - 1 and function not in self._requested:
            self._requested.add(function)  # before the request, which changes the run and calls this again
            if len(self._requested) == MAX_REQUESTS:
                self._unsubscribe()
            most_called = max(runs, key=lambda run: (run["steps"], run["id"]))
            with contextlib.suppress(UnsupportedError):  # TensorFlow cannot trace its steps
                self._recorder.request_traces(most_called["id"], self._steps)

    def problem(self) -> str:
        """Return a sentence about missing traces at the end of the script; ``""`` if none are missing."""
        functions = [runs for function, runs in _functions(self._recorder).items() if function in self._requested]
        if not functions:
            return f"no step was traced: no run came to step {self._first_step:,} while it was the one that took the most time"
        main = max(functions, key=_total_s)
        traced = sum(trace["asked_by"] == "user" for run in main for trace in run["traces"])
        title = max(main, key=lambda run: run["steps"])["title"]
        return "" if traced >= self._steps else f"{traced} of {self._steps:,} steps were traced: {title!r} had no more"


def _functions(recorder: Recorder) -> dict[object, list[Run]]:
    """Return groups of runs: those of each compiled function, and one group for each other run."""
    functions: dict[object, list[Run]] = {}
    for run in recorder.runs():
        functions.setdefault(function_key(run), []).append(run)
    return functions


def _steps(runs: list[Run]) -> int:
    return sum(run["steps"] for run in runs)


def _total_s(runs: list[Run]) -> float:
    return sum(map(total_s, runs))
