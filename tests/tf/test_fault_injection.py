"""Whatever breaks in the tracer, training ends as without it (tests/tf/faults.py tries all functions in all ways)."""

from __future__ import annotations

import logging
import zlib
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tf import faults

from tftracer.capture.hook import make_hook
from tftracer.capture.steps.queue import StepQueue
from tftracer.session.live import Recorder

pytestmark = [
    pytest.mark.tf,
    # A thread of the tracer whose own end was broken on purpose ends with a traceback.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


#: Whether this is the older of the two versions that all tests run on.
IS_OLDER = tuple(int(part) for part in tf.__version__.split(".")[:2]) <= (2, 15)


@pytest.fixture(scope="module")
def reached() -> list[tuple[Any, str]]:
    functions = sorted(faults.reached(), key=lambda pair: (pair[0].__name__, pair[1]))
    assert len(functions) > 100 and (StepQueue, "claim") in functions
    return functions


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mode", "every"), [("raise", 2), ("garbage", 3), ("hang", 12)])
def test_no_fault_reaches_the_loop(mode: str, every: int, reached: list[tuple[Any, str]]) -> None:
    """One of so many functions fails: half of those on TensorFlow 2.15, the others on 2.21, for the tracer's code is the same."""
    expected = faults.train([])
    chosen = [(owner, name) for owner, name in reached if number_of(owner, name) % (2 * every) == every * IS_OLDER]
    assert len(chosen) > 5
    for owner, name in chosen:
        losses, _ = faults.losses_with(owner, name, mode)
        assert losses == expected, f"{mode} in {owner.__name__}.{name}"


def number_of(owner: Any, name: str) -> int:
    """The same wherever it runs, and whichever other functions were reached."""
    return zlib.crc32(f"{owner.__name__}.{name}".encode())


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
