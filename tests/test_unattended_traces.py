"""Traces that are requested without anyone asking: of which run, from which step, and what is said of those that lack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from recording import LOSS, TRAIN, recording, step

from tftracer.session.live import Recorder
from tftracer.unattended_traces import UnattendedTraces


def run_steps(recorder: Recorder, numbers: range, fetches: object = (TRAIN, LOSS), seconds: float = 0.001) -> None:
    for number in numbers:
        start = number * 10**10
        recorder.queue.add((fetches, (), None, start, start + int(seconds * 1e9), 1, None))
    assert recorder.flush()


def pending(recorder: Recorder) -> dict[str, int]:
    return {run["title"]: run["pending_traces"] for run in recorder.runs() if run["pending_traces"]}


def test_the_run_that_takes_the_most_time_is_traced_once_it_comes_to_the_step(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        traces = UnattendedTraces(recorder, 3, 100)
        run_steps(recorder, range(2), TRAIN, seconds=30.0)  # an evaluation, say
        run_steps(recorder, range(2, 200), LOSS)
        assert pending(recorder) == {} and "no run came to step 100 while it was" in traces.problem()
        run_steps(recorder, range(200, 270), seconds=1.0)
        assert pending(recorder) == {}
        run_steps(recorder, range(270, 299), seconds=1.0)
        assert pending(recorder) == {"train, loss": 3}, "its next step is the hundredth"
        assert traces.problem().startswith("0 of 3 steps were traced: 'train, loss'")


def test_what_runs_once_is_not_the_main_run_however_long_it_takes(tmp_path: Path) -> None:
    """A table of 20,000 words was set for longer than 80 steps took: none of them was traced."""
    with recording(tmp_path) as recorder:
        UnattendedTraces(recorder, 3, 20)
        run_steps(recorder, range(1), TRAIN, seconds=60.0)
        run_steps(recorder, range(1, 20), LOSS)
        assert pending(recorder) == {"loss": 3}


def test_a_run_that_takes_more_time_later_is_traced_too_and_none_twice(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        UnattendedTraces(recorder, 2, 5)
        run_steps(recorder, range(10), TRAIN)
        assert pending(recorder) == {"train": 2}
        run_steps(recorder, range(10, 20), LOSS, seconds=1.0)
        assert pending(recorder) == {"train": 2, "loss": 2}
        recorder.request_traces(1, 0)
        run_steps(recorder, range(20, 40), TRAIN, seconds=2.0)
        assert pending(recorder) == {"loss": 2}


def test_nothing_is_missing_when_all_came(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        traces = UnattendedTraces(recorder, 1, 5)
        for number in range(1, 8):
            step(recorder, number)
        assert recorder.flush()
        step(recorder, 8, raw=b"\x0a\x00", asked_by="user")
        assert recorder.flush() and traces.problem() == ""


class RecorderOfFunction:
    """A recorder of a function with one run for each call."""

    def __init__(self) -> None:
        self.called: list[Any] = []
        self.requested: list[int] = []
        self.listen: Callable[[Any], None] = lambda message: None

    def subscribe(self, listen: Callable[[Any], None]) -> Callable[[], None]:
        self.listen = listen
        return lambda: None

    def runs(self) -> list[Any]:
        return self.called

    def request_traces(self, run: int, steps: int) -> None:
        self.requested.append(run)

    def call(self, number: int) -> None:
        shared = {"fetches": ["train"], "definition": "train.py:3", "steps": 1, "mean_s": 0.1, "traces": []}
        self.called.append({**shared, "id": number, "title": f"train ({number})"})
        self.listen({"type": "run"})


def test_a_function_that_is_traced_anew_at_each_call_is_one_run_here() -> None:
    recorder = RecorderOfFunction()
    traces = UnattendedTraces(recorder, 2, 5)  # type: ignore[arg-type]
    for number in range(1, 8):
        recorder.call(number)
    assert recorder.requested == [4], "its next call is the fifth"
    assert traces.problem() == "0 of 2 steps were traced: 'train (1)' had no more"
