"""Whatever breaks in the tracer, training ends as without it (tests/tf/faults.py tries all functions in all ways)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import faults
import pytest

from tftracer.capture.hook import make_hook
from tftracer.capture.step_queue import StepQueue
from tftracer.recorder import Recorder

pytestmark = [
    pytest.mark.tf,
    # A thread of the tracer whose own end was broken on purpose ends with a traceback.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@pytest.fixture(scope="module")
def reached() -> list[tuple[Any, str]]:
    functions = sorted(faults.reached(), key=lambda pair: (pair[0].__name__, pair[1]))
    assert len(functions) > 100 and (StepQueue, "claim") in functions
    return functions


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mode", "every"), [("raise", 2), ("garbage", 3), ("hang", 12)])
def test_no_fault_reaches_the_loop(mode: str, every: int, reached: list[tuple[Any, str]]) -> None:
    expected = faults.train([])
    for owner, name in reached[::every]:
        losses, _ = faults.losses_with(owner, name, mode)
        assert losses == expected, f"{mode} in {owner.__name__}.{name}"


def test_it_says_once_what_broke(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(spool_dir=tmp_path).start()
    hook = make_hook(recorder)
    recorder.set_trace_all(True)
    with faults.broken(StepQueue, "claim", "raise") as called, caplog.at_level(logging.WARNING, "tftracer"):
        assert faults.train([hook]) == faults.train([])
    assert called.is_set() and recorder.queue.off and recorder.flush()
    (problem,) = recorder.session()["problems"]
    assert problem["code"] == "switched_off" and "StepQueue.claim" in problem["message"]
    assert [record.levelname for record in caplog.records].count("ERROR") == 1
    recorder.close()
