"""The thread that reads what the process holds."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from job_page import wait_for
from recording import recording

from tftracer.memory_growth import watch
from tftracer.memory_growth.cause_of_growth import Finding
from tftracer.memory_growth.growing_types import Thing
from tftracer.memory_growth.watch import MemoryWatch


def is_read() -> bool:
    return any(thread.name == "tftracer-memory" for thread in threading.enumerate())


def test_the_memory_of_a_server_that_stays_after_its_script_is_not_read(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        assert is_read()
        recorder.store.script_ended()
        wait_for(lambda: not is_read())


def test_what_grows_is_searched_for_again_if_it_was_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a load of 14, what grew stayed unknown for ten minutes, since it was searched for only once."""
    kept: list[bytearray] = []
    thing = Thing("containers", "kept, a list", 9, 1.0, 1.0, "train.py:3")
    findings = [Finding("unknown", (), 3, 0.0, True), Finding("containers", (thing,), 0, 0.0, True)]

    def find_cause(*arguments: Any, **more: Any) -> Finding:
        return findings.pop(0) if len(findings) > 1 else findings[0]

    monkeypatch.setenv("TFTRACER_MEMORY_PROOF_S", "1")
    monkeypatch.setattr(watch, "find_cause", find_cause)
    memory = MemoryWatch(lambda: 100, list)
    memory.start()

    def is_found() -> bool:
        kept.append(bytearray(b"x" * (1 << 20)))
        time.sleep(0.01)  # the memory has to grow evenly, for a second at least
        assert len(kept) < 2000, memory.facts()
        return any(growth.things == (thing,) for growth in memory.facts().growths)

    try:
        wait_for(is_found)
    finally:
        memory.stop()
