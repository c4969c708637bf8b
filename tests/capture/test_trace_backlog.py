"""What a step does that is to be traced while the disk is behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from tftracer.capture.recorded_steps import Capture, SessionFacts
from tftracer.capture.traces import backlog as trace_backlog
from tftracer.capture.traces.backlog import TraceBacklog

T = TypeVar("T")


class ImpatientCondition(threading.Condition):
    """Counts who waits, and lets none wait for long."""

    waits = 0

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        self.waits += 1
        assert timeout == trace_backlog.WAIT_S
        return super().wait_for(predicate, 0.01)


def capture() -> Capture:
    return Capture(b"raw", "user", "SOFTWARE_TRACE", True, SessionFacts())


@pytest.fixture(autouse=True)
def large_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes as much as the small ones may take together."""
    monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 0)


@pytest.fixture
def condition(monkeypatch: pytest.MonkeyPatch) -> ImpatientCondition:
    condition = ImpatientCondition()
    monkeypatch.setattr(trace_backlog, "Condition", lambda: condition)
    return condition


def test_a_disk_that_hangs_is_waited_for_once(condition: ImpatientCondition) -> None:
    backlog = TraceBacklog()
    waiting = [backlog.add(capture()) for _ in range(trace_backlog.FEW_TRACES)]
    assert [backlog.wait_for_room() for _ in range(20)] == [False] * 20
    assert condition.waits == 1
    backlog.remove(waiting.pop())
    assert backlog.wait_for_room() and condition.waits == 1
    waiting.append(backlog.add(capture()))
    assert not backlog.wait_for_room() and condition.waits == 2


def test_small_traces_of_steps_in_a_row_wait_for_nobody(condition: ImpatientCondition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 10_000)
    backlog = TraceBacklog()
    for _ in range(100):
        assert backlog.wait_for_room()
        backlog.add(capture())
    assert condition.waits == 0
    monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 300)
    assert not backlog.wait_for_room() and condition.waits == 1
    monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 10_000)
    monkeypatch.setattr(trace_backlog, "MAX_WAITING", 100)
    assert backlog.is_full()


def test_it_is_bounded_in_bytes_too(condition: ImpatientCondition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_FEW", 3)
    backlog = TraceBacklog()
    assert backlog.wait_for_room()
    backlog.add(capture())
    assert not backlog.wait_for_room()


def test_who_waits_goes_on_as_soon_as_there_is_room() -> None:
    backlog = TraceBacklog()
    waiting = [backlog.add(capture()) for _ in range(trace_backlog.FEW_TRACES)]
    backlog.wait_s = 600.0
    threading.Timer(0.1, backlog.remove, [waiting[0]]).start()
    assert backlog.wait_for_room()
