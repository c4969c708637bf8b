"""Linux's counters of threads, laid to spans of time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tftracer.slow.watch.thread_counters import Queues
from tftracer.slow.watch.thread_times_in_span import Reading, Wait, added, within

MS = 1_000_000


def found(readings: list[tuple[int, int, int, str]], start: int, end: int) -> dict[str, float | None]:
    """``readings``: when, CPU time and time without a CPU in milliseconds, and the state."""
    given = [Reading(at * MS, cpu * MS, queue * MS, state, cpu * MS, 0) for at, cpu, queue, state in readings]
    return within(given, start * MS, end * MS)


def test_a_wait_for_a_cpu_that_is_counted_at_its_end_is_laid_to_where_it_was() -> None:
    wait = Wait(400 * MS, 450 * MS, 300 * MS)
    assert wait.within(100 * MS, 400 * MS) == 250 * MS
    assert wait.within(150 * MS, 450 * MS) == 300 * MS
    assert Wait(400 * MS, 500 * MS, 50 * MS).within(400 * MS, 450 * MS) == 25 * MS
    starved = [(0, 0, 0, "R"), (100, 10, 0, "R"), (200, 10, 0, "R"), (300, 10, 0, "R"), (400, 30, 280, "R")]
    seconds = found(starved, 100, 380)
    assert seconds["queue_s"] == pytest.approx(0.26) and seconds["cpu_s"] == pytest.approx(0.016)
    assert seconds["process_min_s"] == 0


def test_a_span_between_readings_far_apart_is_known_where_the_thread_did_little_then() -> None:
    apart = [(0, 0, 0, "S"), (200, 1, 1, "S"), (700, 2, 1, "S"), (900, 4, 3, "S")]
    assert found(apart, 100, 600)["cpu_s"] is not None


def test_of_a_span_between_readings_far_apart_only_its_sleep_is_known() -> None:
    sleep = [(0, 0, 0, "R"), (400, 250, 0, "S"), (900, 250, 0, "S"), (1300, 500, 0, "R")]  # of a loop that works
    seconds = found(sleep, 200, 1100)
    assert seconds["cpu_s"] is None and seconds["queue_s"] is None and seconds["asleep_s"] == pytest.approx(0.5)


def test_a_thread_surely_sleeps_between_two_readings_of_a_sleep_with_the_same_cpu_time() -> None:
    readings = [(0, 0, 0, "R"), (50, 40, 0, "S"), (100, 40, 0, "S"), (150, 40, 0, "D"), (200, 41, 0, "S"), (250, 60, 0, "R")]
    assert found(readings, 10, 240)["asleep_s"] == pytest.approx(0.1)
    assert found(readings, 10, 80)["asleep_s"] == pytest.approx(0.03)


def test_the_kernel_s_part_of_the_cpu_time_and_page_faults() -> None:
    given = [Reading(at * MS, at * MS, 0, "R", 0, 0, None, at * MS // 2, 10 * at) for at in (0, 100, 200, 300)]
    seconds = within(given, 50 * MS, 250 * MS)
    assert seconds["kernel_s"] == pytest.approx(0.1) and seconds["faults"] == pytest.approx(2000)


def test_the_counters_of_several_spans_are_added_up_if_they_are_known_exactly() -> None:
    readings = [Reading(at * MS, min(at, 300) * MS, 0, "R", 0, 0) for at in range(0, 1000, 50)]  # it runs for 300 ms, then sleeps
    sums = added(readings, [(100 * MS, 250 * MS), (700 * MS, 900 * MS)])
    assert sums is not None and (sums["length_s"], sums["cpu_s"]) == pytest.approx((0.35, 0.15))
    assert added(readings, []) is None and added(readings, [(800 * MS, 2000 * MS)]) is None


class Counted(list[Reading]):
    """A list that counts what is read of it."""

    read = 0

    def __getitem__(self, index: Any) -> Any:
        self.read += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Reading]:
        raise AssertionError("all readings are looked at")


def test_of_minutes_of_readings_only_those_of_the_span_are_looked_at() -> None:
    readings = Counted(Reading(at * MS, at * MS, 0, "R", at * MS, 0) for at in range(0, 240_000, 100))
    assert within(readings, 200_000 * MS, 201_000 * MS)["cpu_s"] == pytest.approx(1.0)
    assert readings.read < 50


def test_a_process_is_stopped_only_between_two_readings_that_say_so() -> None:
    once = [(0, 0, 0, "S"), (50, 0, 0, "S"), (100, 0, 0, "T"), (150, 0, 0, "S")]
    assert found(once, 10, 90)["stopped_s"] == 0
    assert found(once, 10, 140)["stopped_s"] == 0
    twice = [(0, 0, 0, "S"), (50, 0, 0, "T"), (100, 0, 0, "T"), (150, 0, 0, "S")]
    assert found(twice, 10, 140)["stopped_s"] == 0.05


def test_threads_of_the_tracer_do_not_count_among_those_without_a_cpu(tmp_path: Path) -> None:
    def waited(milliseconds: int) -> None:
        for native in ("11", "12", "13"):
            (tmp_path / native).mkdir(exist_ok=True)
            (tmp_path / native / "schedstat").write_text(f"5 {milliseconds * MS} 1\n")

    queues = Queues(tmp_path)
    queues.ours = frozenset(["12"])
    waited(0)
    queues.read(1000 * MS, at_once=False)
    waited(150)
    queues.read(1300 * MS, at_once=False)
    assert queues.within(1000 * MS, 1300 * MS)[0] == pytest.approx(0.3)
    assert queues.within(900 * MS, 1300 * MS)[0] is None and queues.within(1000 * MS, 1400 * MS)[0] is None


def test_the_cpu_time_of_the_script_s_other_python_threads_is_added_up(tmp_path: Path) -> None:
    queues = Queues(tmp_path)
    queues.python = frozenset(["11"])
    for native in ("11", "12"):
        (tmp_path / native).mkdir()
    for at, ran in ((1000, 50), (1300, 120), (1600, 270)):
        for native in ("11", "12"):
            (tmp_path / native / "schedstat").write_text(f"{ran * MS} 0 1\n")
        queues.read(at * MS, at_once=False)
    assert queues.python_ns == 220 * MS
    readings = [Reading(at * MS, 0, 0, "R", 0, 0, python_ns=at * MS // 2) for at in (0, 100, 200, 300)]
    assert within(readings, 50 * MS, 250 * MS)["python_s"] == pytest.approx(0.1)


def test_waits_of_all_threads_that_may_be_sleeps_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "11").mkdir()
    counters = tmp_path / "11" / "schedstat"
    for counts_sleep, expected in ((True, (0.0, 0.5)), (False, (0.5, 0.0))):
        monkeypatch.setattr("tftracer.slow.watch.thread_counters.COUNTS_SLEEP", counts_sleep)
        queues = Queues(tmp_path)
        for at, queued in ((1000, 0), (1300, 0), (1600, 500)):
            counters.write_text(f"5 {queued * MS} 1\n")
            queues.read(at * MS, at_once=False)
        assert queues.within(1000 * MS, 1600 * MS) == pytest.approx(expected)


def test_a_thread_waits_for_pythons_lock_as_long_as_its_readings_say_so() -> None:
    wants = [False, True, True, False]
    readings = [Reading(at * 100 * MS, 0, 0, "S", 0, 0, wants_lock) for at, wants_lock in enumerate(wants)]
    assert within(readings, 50 * MS, 290 * MS)["lock_wait_s"] == pytest.approx(0.2)
    assert within(readings, 90 * MS, 120 * MS)["lock_wait_s"] == pytest.approx(0.03)
    unknown = [readings[0], readings[1]._replace(wants_lock=None), *readings[2:]]
    assert within(unknown, 50 * MS, 290 * MS)["lock_wait_s"] is None


def test_a_sleep_that_linux_counts_as_a_wait_for_a_cpu_is_none() -> None:
    """From 6.12 on it does, for a sleeping thread that it moves to another CPU."""
    slept = [(0, 0, 0, "S"), (100, 0, 0, "S"), (200, 0, 0, "S"), (300, 2, 290, "R"), (400, 90, 295, "R")]
    assert found(slept, 10, 310)["queue_s"] == pytest.approx(0.0005)
    ready = [(at, cpu, queue, "R") for at, cpu, queue, _ in slept]
    assert found(ready, 10, 310)["queue_s"] == pytest.approx(0.29, abs=0.01)
