"""The thread that reads what the process holds."""

from __future__ import annotations

import threading
from pathlib import Path

from job_page import wait_for
from recording import recording


def is_read() -> bool:
    return any(thread.name == "tftracer-memory" for thread in threading.enumerate())


def test_the_memory_of_a_server_that_stays_after_its_script_is_not_read(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        assert is_read()
        recorder.store.script_ended()
        wait_for(lambda: not is_read())
