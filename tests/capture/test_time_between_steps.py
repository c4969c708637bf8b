"""What passed outside session.run before a step, as its trace's context has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from recording import LOSS, RAW, TRAIN, captured, recording

from tftracer.capture.recorded_steps import Missed
from tftracer.capture.steps.queue import INPUT_WAIT
from tftracer.session.live import Recorder
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder

MS = 1_000_000


def add(recorder: Recorder, start_ms: int, end_ms: int, fetches: tuple[object, ...] = (LOSS,), thread: int = 1) -> None:
    recorder.queue.add((fetches, None, None, start_ms * MS, end_ms * MS, thread, None))


def add_traced(recorder: Recorder, start_ms: int, end_ms: int, before_ms: int = 0, after_ms: int = 0) -> None:
    capture = captured(recorder, RAW)
    capture.before_ns, capture.after_ns = before_ms * MS, after_ms * MS
    recorder.queue.add(((LOSS,), None, None, start_ms * MS, end_ms * MS, 1, capture))


def before_steps(recorder: Recorder) -> list[float | None]:
    """Of each trace, in seconds."""
    assert recorder.flush()
    return [recorder.trace_context(trace["id"]).before_step_s for run in recorder.runs() for trace in run["traces"]]


def test_each_trace_has_what_passed_before_its_own_step(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        add_traced(recorder, 0, 10)
        for start in (11, 22, 33):
            add(recorder, start, start + 10)
        add_traced(recorder, 543, 553)
        assert before_steps(recorder) == [None, pytest.approx(0.5)]
        assert recorder.runs()[0]["between_steps_s"] == pytest.approx(0.001)


def test_other_runs_of_the_same_thread_are_not_outside(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        add(recorder, 0, 10)
        add(recorder, 12, 100, (TRAIN,))
        add_traced(recorder, 103, 110)
        assert before_steps(recorder) == [pytest.approx(0.005)]


def test_other_threads_take_nothing_from_it(tmp_path: Path) -> None:
    """A queue runner's thread waits in session.run all the time."""
    with recording(tmp_path) as recorder:
        add(recorder, 0, 10)
        add(recorder, 0, 60, (TRAIN,), thread=2)
        add(recorder, 60, 90, (TRAIN,), thread=2)
        add_traced(recorder, 50, 55)
        assert before_steps(recorder) == [pytest.approx(0.040)]


def test_it_is_not_known_where_another_thread_ran_the_step_before(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        add(recorder, 0, 10, thread=2)
        add_traced(recorder, 50, 55)
        assert before_steps(recorder) == [None]


def test_the_tracers_own_time_is_not_the_scripts(tmp_path: Path) -> None:
    """Waiting for the disk before a step, and taking its trace after it."""
    with recording(tmp_path) as recorder:
        add(recorder, 0, 10)
        add_traced(recorder, 111, 120, before_ms=100, after_ms=50)
        add_traced(recorder, 173, 180)
        assert before_steps(recorder) == [pytest.approx(0.001), pytest.approx(0.003)]


def test_what_it_waited_for_a_trace_that_it_missed_is_not_the_scripts_either(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        slow = recorder.queue.slow_step_watch = SlowTurnFinder(3.0)
        for number in range(40):
            add(recorder, number * 11, number * 11 + 10)
        missed = Missed("the disk is slow", before_ns=5000 * MS, after_ns=3000 * MS)
        recorder.queue.add(((LOSS,), None, None, 5441 * MS, 5450 * MS, 1, missed))
        add_traced(recorder, 8453, 8460)
        assert before_steps(recorder) == [pytest.approx(0.003)]
        assert recorder.runs()[0]["between_steps_s"] == pytest.approx(0.001)
        assert not slow.slow_turns


def test_of_it_the_wait_for_the_next_element_of_a_dataset_is_known(tmp_path: Path) -> None:
    """Not that of other threads, and not what an eager loop gets within its step."""
    with recording(tmp_path) as recorder:
        add(recorder, 0, 10)
        for start, end, thread in ((11, 18, 1), (11, 19, 2), (19, 20, 1)):
            recorder.queue.add((INPUT_WAIT, None, start * MS, end * MS, thread, None))
        add(recorder, 21, 30)
        recorder.queue.add((INPUT_WAIT, None, 22 * MS, 25 * MS, 1, None))
        recorder.queue.add((INPUT_WAIT, None, 31 * MS, 36 * MS, 1, None))
        add_traced(recorder, 37, 40)
        assert recorder.flush()
        (run,) = recorder.runs()
        context = recorder.trace_context(run["traces"][0]["id"])
        assert run["steps"] == 3
        assert [context.before_step_s, context.before_input_s] == pytest.approx([0.007, 0.005])
        assert [context.between_steps_s, context.between_input_s] == pytest.approx([0.009, 0.0065])
