"""The CPU counters that training threads read themselves: real threads that compute and sleep."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import pytest

from tftracer.slow.cause.observed import Span
from tftracer.slow.watch import thread_clocks
from tftracer.slow.watch.slow_turn import Save, SlowTurn
from tftracer.slow.watch.thread_clocks import EVERY_NS, MAX_THREADS, MIN_NS, NEVER_NS, CpuTimes, ThreadClocks, with_own_times

MS = 1_000_000
ME = 7  # the ident under which a thread of a test is read


@pytest.fixture
def clocks() -> Iterator[ThreadClocks]:
    made = ThreadClocks()
    made.start()
    yield made
    made.stop()


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def read_around(clocks: ThreadClocks, action: Callable[[], object]) -> tuple[int, int]:
    """Read the clock before and after ``action``; return when."""
    start = perf_counter_ns()
    clocks.read(ME, start)
    action()
    end = perf_counter_ns()
    clocks.read(ME, end)
    return start, end


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def on_thread(action: Callable[[], object]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def test_computing_and_sleeping_are_told_apart(clocks: ThreadClocks) -> None:
    computed = read_around(clocks, lambda: compute(0.2))
    time.sleep(2e-9 * MIN_NS)
    slept = read_around(clocks, lambda: time.sleep(0.2))
    ran, idle = clocks.within(ME, *computed), clocks.within(ME, *slept)
    assert ran is not None and ran.ran_s == pytest.approx(0.2, abs=0.02)  # whatever else runs: it is CPU time
    assert idle is not None and idle.ran_s < 0.02
    both = clocks.sum_within(ME, [computed, slept])
    assert both is not None and both.ran_s == pytest.approx(ran.ran_s + idle.ran_s)


def test_the_time_beside_a_span_is_taken_to_be_like_the_time_before(
    clocks: ThreadClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = iter([(0, 0), (25, 20), (50, 40), (75, 152)])  # it runs half of the time, and has no CPU for two fifths
    process = iter([0, 50, 100, 230])  # another thread runs the other half of the time
    monkeypatch.setattr(os, "pread", lambda *_: b"%d %d 1" % tuple(ms * MS for ms in next(counters)))
    monkeypatch.setattr(thread_clocks, "process_time_ns", lambda: next(process) * MS)
    for at in (0, 50, 100, 430):
        clocks.read(ME, at * MS)
    times = clocks.within(ME, 130 * MS, 430 * MS)
    assert times == pytest.approx((0.01, 0.1, 0.1, 0.04))  # without 30 ms as before; surely: without three times as much
    assert clocks.within(ME, 300 * MS, 430 * MS) is None  # too much of the time between the readings lies outside


def test_what_was_not_read_is_not_known(clocks: ThreadClocks) -> None:
    start, end = read_around(clocks, lambda: time.sleep(0.05))
    assert clocks.within(ME, start - MS, end) is None and clocks.within(ME, start, end + MS) is None
    assert clocks.within(ME + 1, start, end) is None
    assert clocks.sum_within(ME, []) is None and clocks.sum_within(ME, [(start, end), (start, end + MS)]) is None


def test_readings_that_follow_at_once_are_left_out(clocks: ThreadClocks) -> None:
    start = perf_counter_ns()
    clocks.read(ME, start)
    assert clocks.next_ns[ME] == start + EVERY_NS
    clocks.read(ME, start + MIN_NS // 2)
    assert clocks.next_ns[ME] == start + EVERY_NS


def test_a_thread_with_the_ident_of_an_ended_one_begins_anew(clocks: ThreadClocks) -> None:
    starts: list[int] = []
    on_thread(lambda: starts.append(read_around(clocks, lambda: compute(0.05))[0]))
    time.sleep(2e-9 * MIN_NS)
    spans: list[tuple[int, int]] = []

    def later() -> None:
        read_around(clocks, lambda: None)  # the file of the ended thread cannot be read
        time.sleep(2e-9 * MIN_NS)
        spans.append(read_around(clocks, lambda: compute(0.05)))

    on_thread(later)
    own = clocks.within(ME, *spans[0])
    assert own is not None and own.ran_s == pytest.approx(0.05, abs=0.02)
    assert clocks.within(ME, starts[0], spans[0][1]) is None


def test_it_reads_only_between_start_and_stop_and_leaves_no_file_open() -> None:
    opened = open_files()
    clocks = ThreadClocks()
    clocks.read(ME, perf_counter_ns())
    assert clocks.next_ns[ME] == NEVER_NS  # a training thread does not call it again
    clocks.start()
    start, end = read_around(clocks, lambda: time.sleep(0.01))
    assert clocks.within(ME, start, end) is not None
    clocks.forget(ME)
    assert clocks.within(ME, start, end) is None
    for thread in range(2 * MAX_THREADS):
        clocks.read(thread, perf_counter_ns())
    assert open_files() <= opened + MAX_THREADS
    clocks.stop()
    assert open_files() == opened
    clocks.read(ME, perf_counter_ns())
    assert clocks.next_ns[ME] == NEVER_NS


@pytest.mark.parametrize("content", [b"", b"0", b"not a number 1"])
def test_a_kernel_without_these_counters(content: bytes, clocks: ThreadClocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pread", lambda *_: content)
    start, end = read_around(clocks, lambda: time.sleep(0.01))
    assert clocks.within(ME, start, end) is None


def test_a_system_without_these_files(clocks: ThreadClocks, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os, "open", refuse)
    clocks.read(ME, perf_counter_ns())
    assert clocks.next_ns[ME] == NEVER_NS


class Known(ThreadClocks):
    """Clocks whose thread ran for 10 ms of each span, and had no CPU in 200 ms of it."""

    def within(self, thread: int, start_ns: int, end_ns: int) -> CpuTimes:
        return CpuTimes(0.01, 0.2, 0.5, 0.4)


class Barely(ThreadClocks):
    def within(self, thread: int, start_ns: int, end_ns: int) -> CpuTimes:
        return CpuTimes(0.01, 0.08, 0.01, 0.01)


def a_turn(saves: tuple[Save, ...] = ()) -> SlowTurn:
    run: Any = object()
    return SlowTurn(run, 9, 9, ME, 0, 400 * MS, 700 * MS, 0, 50 * MS, 20 * MS, 150 * MS, (), "", False, saves=saves)


def test_the_thread_s_own_times_replace_those_read_from_outside() -> None:
    rough = Span(0.4, cpu_s=0.1, queue_s=0.0, kernel_s=0.08)
    between, inside = with_own_times(rough, Span(0.3), a_turn(), Known())
    assert (between.cpu_s, between.queue_s, between.kernel_s) == (0.01, 0.2, 0.01)
    assert (inside.cpu_s, inside.queue_s, inside.kernel_s) == (0.01, 0.2, None)
    assert (inside.process_s, inside.process_min_s) == (0.5, 0.4)
    assert with_own_times(rough, rough, a_turn(), ThreadClocks()) == (rough, rough)


def test_one_reading_of_a_wait_for_the_lock_is_not_longer_than_the_thread_can_have_waited() -> None:
    short = a_turn()._replace(step_ns=120 * MS)
    between, inside = with_own_times(Span(0.12, lock_wait_s=0.1), Span(0.58, lock_wait_s=0.5), short, Barely())
    assert between.lock_wait_s == pytest.approx(0.03) and inside.lock_wait_s == 0.5


def test_a_thread_that_ran_did_not_wait_for_the_lock_meanwhile() -> None:
    """A judge read "Python's lock was held for about 65 ms" of 607 ms in which the thread computed for 602 ms."""

    class Ran(ThreadClocks):
        def within(self, thread: int, start_ns: int, end_ns: int) -> CpuTimes:
            ran_s = (end_ns - start_ns) * 1e-9 - 0.005
            return CpuTimes(ran_s, 0.0, ran_s, ran_s)

    between, inside = with_own_times(Span(0.4, lock_wait_s=0.065), Span(0.3, lock_wait_s=0.065), a_turn(), Ran())
    assert between.lock_wait_s == pytest.approx(0.005) and inside.lock_wait_s == pytest.approx(0.005)


def test_a_sleep_that_linux_counted_as_a_wait_for_a_cpu_is_none() -> None:
    asleep = Span(0.4, asleep_s=0.35)
    between, _ = with_own_times(asleep, Span(0.3), a_turn(), Known())
    assert between.queue_s == pytest.approx(0.04)


def test_the_times_of_a_checkpoint_are_measured_in_the_same_way() -> None:
    turn = a_turn(saves=(Save("Saver.save", 100 * MS, 300 * MS),))
    rough = Span(0.4, cpu_s=0.1, queue_s=0.0, kernel_s=0.08, clocked=Span(0.2, cpu_s=0.0, queue_s=0.1))
    between, _ = with_own_times(rough, Span(0.3), turn, Known())
    assert between.clocked is not None and between.clocked.cpu_s == 0.01
    assert between.clocked.queue_s == pytest.approx(0.19)
    unknown, _ = with_own_times(Span(0.4, kernel_s=0.08), Span(0.3), turn, Known())
    assert unknown.clocked == Span(0.2, cpu_s=0.01, queue_s=0.2) and unknown.kernel_s is None
