"""The ledger of a session while it is recorded."""

from __future__ import annotations

import time
from pathlib import Path
from threading import get_ident

import pytest
from made_stalls import a_stall, put
from recording import TRAIN, recording, steps

from tftracer.session.writer.newest_record import UPDATE_S

MS = 1_000_000


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


def test_a_slow_step_that_is_explained_after_the_end_is_in_the_ledger(tmp_path: Path) -> None:
    """Two of 15 pauses of a callback were in the list of slow steps and not in the ledger."""
    with recording(tmp_path) as recorder:
        now = time.perf_counter_ns()
        for start, end in ((now - 200 * MS, now - 190 * MS), (now - 20 * MS, now - 10 * MS)):
            recorder.queue.add(((TRAIN,), (), None, start, end, get_ident(), None))
        assert recorder.flush()
        (live,) = recorder.store.live_runs.values()
        recorder.store.script_ended()
        ended_at, until = recorder.session()["ended_at"] or 0.0, time.monotonic() + 60.0
        while time.monotonic() < until and (recorder.ledger()["until"] or 0.0) < ended_at:
            time.sleep(0.05)
        put(recorder, a_stall(live.handle, 2, start_ns=now - 190 * MS, end_ns=now - 20 * MS))
        (slow,) = (part for part in recorder.ledger()["parts"] if part["kind"] == "slow")
    assert slow["duration_s"] == pytest.approx(0.168) and slow["items"][0]["times"] == 1


def test_the_wait_for_the_writing_of_the_session_is_the_tracers(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 50)
        recorder.flush_to_file(60.0)
        recorder.close()
        (part,) = (part for part in recorder.ledger()["parts"] if part["kind"] == "tracer")
    assert [each["name"] for each in part["items"]] == ["writing the session"]
