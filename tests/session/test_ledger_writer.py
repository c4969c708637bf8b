"""The ledger of a session while it is recorded."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from made_stalls import a_stall, run_of
from recording import LOSS, RAW, TRAIN, X, captured, recording, steps

from tftracer.contract.live import LiveMessage
from tftracer.session.writer.newest_record import UPDATE_S


def test_a_server_that_stays_after_its_script_adds_nothing_to_the_ledger(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 50)
        recorder.store.script_ended()
        ended_at = recorder.session()["ended_at"]
        assert ended_at is not None
        until = time.monotonic() + 4 * UPDATE_S
        while time.monotonic() < until and (recorder.ledger()["until"] or 0.0) < ended_at:
            time.sleep(0.05)
        whole = recorder.ledger()["duration_s"]
        while time.monotonic() < until:  # the writer's thread goes on meanwhile: nothing tells that it adds nothing
            time.sleep(0.05)
        assert recorder.ledger()["duration_s"] == whole > 0


def test_the_wait_for_the_writing_of_the_session_is_the_tracers(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 50)
        recorder.flush_to_file(60.0)
        recorder.close()
        (part,) = (part for part in recorder.ledger()["parts"] if part["kind"] == "tracer")
    assert [each["name"] for each in part["items"]] == ["writing the session"]


def test_the_last_figures_of_a_script_that_ended_are_announced_and_slow_steps_found_later_are_in_them(tmp_path: Path) -> None:
    """The page asks again with each of these messages."""
    at_end: list[Any] = []
    with_slow: list[Any] = []
    announced, late = threading.Event(), threading.Event()

    def hear(message: LiveMessage) -> None:
        if message["type"] == "session" and message["payload"]["ended_at"]:
            at_end.append(recorder.ledger()["until"])
            if len(at_end) > 1:  # the first says that the script has ended
                announced.set()
        elif message["type"] == "run" and message["payload"]["slow_steps"]["count"]:
            with_slow.append(recorder.ledger()["until"])
            late.set()

    with recording(tmp_path) as recorder:
        run = run_of(recorder)
        recorder.subscribe(hear)
        recorder.store.script_ended()
        assert announced.wait(60.0)
        recorder.queue.slow.add(a_stall(run, 50))
        assert late.wait(60.0)
    until, ended_at = recorder.ledger()["until"], recorder.session()["ended_at"]
    assert at_end[1] == with_slow[0] == until and until is not None and ended_at is not None and abs(until - ended_at) < 0.1


def test_each_recorded_trace_counts_once(tmp_path: Path) -> None:
    """A judge read "recording traces: 14 times" of a session with 7 traces: each counted before and after its step."""
    with recording(tmp_path) as recorder:
        for _ in range(3):
            trace = captured(recorder, RAW)
            trace.before_ns, trace.after_ns = 1000, 2000
            start = time.perf_counter_ns()
            recorder.queue.add(((TRAIN, LOSS), (X,), None, start, start + 10_000, threading.get_ident(), trace))
        recorder.flush_to_file(60.0)
        recorder.close()
        (part,) = (part for part in recorder.ledger()["parts"] if part["kind"] == "tracer")
    times = {each["name"]: each["times"] for each in part["items"]}
    assert times["recording traces: before their steps"] == times["recording traces: after their steps"] == 3
