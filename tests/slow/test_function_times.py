"""For how much longer than usual Python functions, called by TensorFlow, ran in a span of time."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

import pytest

from tftracer.slow.watch import function_times
from tftracer.slow.watch.function_times import MAX_ENTRIES, MAX_THREADS, FunctionTimes

MS = 1_000_000
LOAD, AUGMENT = (lambda: None).__code__, (lambda: 1).__code__


class Clock:
    """Calls of functions at given times, in milliseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.cpu_ms, self.has_waited = 0.0, True  # of the next call
        monkeypatch.setattr(function_times, "perf_counter_ns", lambda: self.now_ns)
        monkeypatch.setattr(function_times, "used_since", lambda before: (int(self.cpu_ms * MS), self.has_waited))
        self.times = FunctionTimes()
        self.times.start()

    def call(self, start_ms: float, end_ms: float, thread: int = 1, code: CodeType = LOAD) -> None:
        self.now_ns = int(start_ms * MS)
        self.times.begin(thread, code)
        self.now_ns = int(end_ms * MS)
        self.times.end(thread)

    def more_s(self, start_ms: float, end_ms: float) -> float:
        found = self.times.within(int(start_ms * MS), int(end_ms * MS))
        assert found is not None
        return found.more_s


@pytest.fixture()
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    yield Clock(monkeypatch)


def test_a_call_that_takes_longer_than_usual(clock: Clock) -> None:
    for start in range(100, 2000, 20):
        clock.call(start, start + 5)
    clock.call(2000, 2500)
    found = clock.times.within(1999 * MS, 2510 * MS)
    assert found is not None and found.is_called and found.code is LOAD
    assert found.more_s == pytest.approx(0.495)


def test_calls_of_usual_length_ahead_of_the_steps_are_not_more_than_usual(clock: Clock) -> None:
    """An input pipeline that always calls a function made no step slow."""
    for start in range(100, 4000, 20):
        clock.call(start, start + 18)
    assert clock.more_s(3000, 3500) == pytest.approx(0.0, abs=0.02)


def test_more_calls_than_usual_in_a_step(clock: Clock) -> None:
    for start in range(100, 2000, 20):
        clock.call(start, start + 1)
    for start in range(2000, 2500):
        clock.call(start, start + 1)
    assert clock.more_s(2000, 2500) == pytest.approx(0.5 - 0.025, abs=0.01)


def test_the_thread_with_the_most_time_counts(clock: Clock) -> None:
    clock.call(100, 200, thread=1)
    clock.call(100, 400, thread=2, code=AUGMENT)
    found = clock.times.within(50 * MS, 500 * MS)
    assert found is not None and found.more_s == pytest.approx(0.3) and found.code is AUGMENT


def test_a_call_that_ends_after_the_step_delayed_nothing_in_it(clock: Clock) -> None:
    """A generator that waits for data of a later step."""
    clock.call(100, 900)
    found = clock.times.within(100 * MS, 600 * MS)
    assert found is not None and found.more_s == 0 and not found.is_called


def test_before_the_measurement_and_after_too_many_calls_nothing_is_known(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FunctionTimes().within(0, 100) is None
    for start in range(100, 100 + 30 * (MAX_ENTRIES + 10), 30):  # more than NEXT_NS apart
        clock.call(start, start + 1)
    assert clock.times.within(100 * MS, 200 * MS) is None
    assert clock.times.within((start - 100) * MS, (start + 10) * MS) is not None
    for thread in range(2, MAX_THREADS + 2):
        clock.call(start + thread, start + thread + 1, thread)
    assert clock.times.within((start - 100) * MS, (start + 10) * MS) is None


def test_a_call_that_only_had_no_cpu_took_its_cpu_time(clock: Clock) -> None:
    """A judge read "A Python function that TensorFlow calls: graph_function()", which just returned, on a busy machine."""
    clock.cpu_ms, clock.has_waited = 1.0, False
    clock.call(100, 340)
    found = clock.times.within(50 * MS, 400 * MS)
    assert found is not None and found.more_s == pytest.approx(0.001) and found.cpu_s == pytest.approx(0.001)


def test_short_calls_share_an_entry(clock: Clock) -> None:
    for start in range(100, 100 + 10 * MAX_ENTRIES):
        clock.call(start, start + 0.5)
    assert clock.more_s(100, 200) == pytest.approx(0.05, abs=0.002)
