"""What the training threads touch, fed by hand with what a hook records."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from recording import LOSS, TRAIN, Tensor, X, captured, recording, step, steps

from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.recorded_steps import Missed, SessionFacts
from tftracer.capture.steps import queue as step_queue
from tftracer.capture.steps import run_identity, run_registry
from tftracer.capture.traces import backlog as trace_backlog
from tftracer.ledger.activity import CHECKPOINTS
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder


def test_steps_that_find_the_queue_full_are_counted_as_lost(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        recorder.queue.lost = 7
        steps(recorder, 1)
        assert recorder.session()["steps_lost"] == 7


def test_ids_that_are_used_again_are_told_apart(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        for number, name in enumerate(("a:0", "b:0", "a:0")):
            tensor = Tensor(name)
            step(recorder, number, fetches=[tensor], feeds=None)
            recorder.flush()
            del tensor
            gc.collect()
        assert {run["title"]: run["steps"] for run in recorder.runs()} == {"a": 2, "b": 1}


def test_a_step_told_by_two_hooks_counts_once(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        for number in range(1, 4):
            step(recorder, number)
            step(recorder, number)
            step(recorder, number, fetches=[LOSS])  # another run, in another thread at the same nanosecond
        recorder.flush()
        assert {run["title"]: run["steps"] for run in recorder.runs()} == {"train, loss (feeding x)": 3, "loss (feeding x)": 3}


def test_sessions_and_functions_of_one_thread_are_counted_in_their_order() -> None:
    queue, now, ms = step_queue.StepQueue(), 1_000_000_000, 1_000_000
    slow = queue.slow_step_watch = SlowTurnFinder(3.0)
    functions = FunctionRuns(queue)
    evaluate = functions.named_step("evaluate")
    for number in range(100):
        queue.add(((TRAIN,), None, None, now, now + 300 * ms, 7, None))
        functions.calls.record(evaluate, None, now + 302 * ms, now + 307 * ms, 7, None)
        now += 309 * ms
        if number % 5 == 4:  # several rounds wait for the writer
            queue.count_steps()
    starts = [start for _, start, *_ in queue.counted]
    assert len(starts) == 200 and starts == sorted(starts)
    assert {outside for *_, outside, _, _ in list(queue.counted)[2:]} == {4 * ms}  # since the run's step before
    assert not slow.slow_turns


def test_waits_for_input_and_checkpoints_reach_the_watch_with_their_turn() -> None:
    queue, now, ms = step_queue.StepQueue(), 1_000_000_000, 1_000_000
    slow = queue.slow_step_watch = SlowTurnFinder(3.0)
    for number in range(60):
        if number == 40:
            queue.add((step_queue.PHASE, (CHECKPOINTS, "Saver.save"), now + ms, now + 90 * ms, 7, None))
            queue.add((step_queue.PHASE, (CHECKPOINTS, "FileWriter.flush"), now + 90 * ms, now + 95 * ms, 7, None))
            queue.add((step_queue.INPUT_WAIT, False, now + 100 * ms, now + 140 * ms, 7, None))
            now += 150 * ms
        queue.add(((TRAIN,), None, None, now, now + 5 * ms, 7, None))
        now += 6 * ms
    queue.count_steps()
    (turn,) = slow.slow_turns
    assert (turn.input_ns, [save.name for save in turn.saves]) == (40 * ms, ["Saver.save"])


def test_runs_without_end_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_registry, "MAX_RUNS", 10)
    with recording(tmp_path) as recorder:
        for number in range(50):
            step(recorder, number, fetches=[f"fetch{number}"])
        recorder.flush()
        assert len(recorder.runs()) == 11
        assert recorder.runs()[-1]["steps"] == 40


def test_runs_that_differ_in_what_a_title_leaves_out_have_titles_of_their_own(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        for number, fetches in enumerate([["loss:0"], ["loss"], ["loss"], ["loss:0"], ["loss"]]):
            step(recorder, number, fetches=fetches, feeds=None)
        recorder.flush()
        assert {run["title"]: (run["fetches"], run["steps"]) for run in recorder.runs()} == {
            "loss": (["loss:0"], 2),
            "loss (2)": (["loss"], 3),
        }
        assert recorder.finished_steps() == {"loss": 2, "loss (2)": 3}


def test_options_without_end_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Options(int):
        def ByteSize(self) -> int:
            return 4

    monkeypatch.setattr(run_registry, "MAX_RUNS", 10)
    monkeypatch.setattr(run_identity, "options_text", lambda options: f"timeout_in_ms: {options}")
    with recording(tmp_path) as recorder:
        family = recorder.queue.runs.family([LOSS], None)
        for number in range(50):
            recorder.queue.events.append(([LOSS], None, Options(number), number, number + 1, 1, None))
        recorder.flush()
        assert len(family.handles()) == 10 and len(recorder.runs()) == 10
        assert recorder.runs()[-1]["steps"] == 41


def test_a_step_that_passed_untraced_is_wanted_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 3)
        assert recorder.request_trace_at("train, loss (feeding x)", 5)
        monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 0)
        waiting = [captured(recorder, b"x") for _ in range(trace_backlog.FEW_TRACES)]  # the disk is behind
        for number, expected in ((4, type(None)), (5, Missed)):
            assert isinstance(recorder.queue.claim((TRAIN, LOSS), (X,), None), expected)
            step(recorder, number)
        for capture in waiting:
            recorder.queue.backlog.remove(capture)
        assert recorder.queue.requests.slow_path
        assert recorder.queue.claim((TRAIN, LOSS), (X,), None) is None
        assert not recorder.queue.requests.slow_path  # the steps after it cost what they cost before


def test_a_session_that_is_opened_while_others_are_looked_at_is_active() -> None:
    class Session:
        def __init__(self, closing: Callable[[], None]) -> None:
            self.closing = closing

        @property
        def _closed(self) -> bool:
            self.closing()
            return True

    class Open: ...

    queue, opened = step_queue.StepQueue(), Open()
    session = Session(lambda: queue.session_opened(opened, SessionFacts()))
    queue.session_opened(session, SessionFacts())
    queue.active()
    assert queue.active()
