"""The ledger of a session while it is recorded."""

from __future__ import annotations

import time
from pathlib import Path

from recording import recording, steps

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
