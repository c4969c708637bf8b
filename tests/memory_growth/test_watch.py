"""The thread that reads what the process holds."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from recording import recording


def is_read() -> bool:
    return any(thread.name == "tftracer-memory" for thread in threading.enumerate())


def test_the_memory_of_a_server_that_stays_after_its_script_is_not_read(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        assert is_read()
        recorder.store.script_ended()
        until = time.monotonic() + 60
        while is_read() and time.monotonic() < until:
            time.sleep(0.05)
        assert not is_read()
