"""The threads that count, write and store: what is there when one waits for them, and when they end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from recording import RAW, recording, step, steps

from tftracer.session.files.saved import open_session
from tftracer.session.live import SLOW_STEPS_MISSING, Recorder
from tftracer.session.writer import store_traces as trace_writer
from tftracer.slow.watch.watch import SlowWatch
from tftracer.storage.spool import Spool


def test_who_waits_for_the_file_finds_all_in_it_though_another_thread_writes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spool, "busy", lambda spool: True)  # whenever it is looked at
    with recording(tmp_path) as recorder:
        steps(recorder, 3)
        assert open_session(recorder.session()["file"]).runs()[0]["steps"] == 3
        step(recorder, 4)
    ended = open_session(recorder.session()["file"])
    assert ended.runs()[0]["steps"] == 4 and ended.session()["ended_at"] is not None


def test_a_trace_that_was_asked_for_is_announced_before_it_is_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_writer, "REQUESTED_DELAY_S", 60.0)  # until something else is to be done
    heard: list[Any] = []
    with recording(tmp_path) as recorder:
        recorder.subscribe(heard.append)
        steps(recorder, 3, {2: RAW, 3: RAW})
    published = [message["payload"] for message in heard if message["type"] == "trace"]
    assert [(trace["id"], trace["state"] == "ready") for trace in published] == [(1, False), (2, False), (1, True), (2, True)]


def test_a_trace_that_made_way_is_not_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_writer, "REQUESTED_DELAY_S", 60.0)  # until something else is to be done
    heard: list[Any] = []
    with recording(tmp_path, keep_traces=1) as recorder:
        recorder.subscribe(heard.append)
        steps(recorder, 3, {2: RAW, 3: RAW})
        assert recorder.session()["problems"] == []
    published = [message["payload"] for message in heard if message["type"] == "trace"]
    assert [(trace["id"], trace["state"] == "ready") for trace in published] == [(1, False), (2, False), (2, True)]


def test_a_closed_session_records_no_more(tmp_path: Path) -> None:
    recorder = Recorder(spool_dir=tmp_path).start()
    steps(recorder, 3)
    recorder.close()
    assert recorder.queue.off and not recorder.queue.events and not recorder.flush()


def test_a_process_that_may_start_no_thread_can_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    recorder = Recorder(spool_dir=tmp_path)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError):
            recorder.start()
    assert not recorder.flush()
    recorder.close()
    assert recorder.queue.off


@pytest.mark.parametrize("pending", [False, True])
def test_a_file_says_that_slow_steps_before_its_save_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pending: bool
) -> None:
    monkeypatch.setattr(SlowWatch, "report_pending", lambda watch, timeout_s: not pending)
    with recording(tmp_path / "spool", slow_factor=3.0) as recorder:
        recorder.save(str(tmp_path / "saved.tftrace"))
        assert not any(problem["code"] == SLOW_STEPS_MISSING for problem in recorder.session()["problems"])
    problems = open_session(tmp_path / "saved.tftrace").session()["problems"]
    assert any(problem["code"] == SLOW_STEPS_MISSING for problem in problems) == pending
