"""What a thread waits for, by the system call that it is in: read in real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from job_page import wait_for

from tftracer.slow.watch.system_calls import most_common, waits_for
from tftracer.slow.watch.thread_counters import Counters

WAITS = {
    "time.sleep(60)": "sleep",
    "select.select([], [], [], 60)": "sleep",
    "threading.Event().wait(60)": "thread",
    "queue.Queue().get()": "thread",
    "subprocess.run(['sleep', '60'])": "process",
    "os.read(os.pipe()[0], 1)": "pipe",
    "one, other = socket.socketpair(); one.recv(1)": "socket",
    "select.select([os.pipe()[0]], [], [], 60)": "input",
    "subprocess.run(['sleep', '60'], capture_output=True)": "input",
    "file = open(sys.argv[1], 'w'); flock(file, LOCK_EX); flock(open(sys.argv[1]), LOCK_EX)": "file_lock",
}


@pytest.mark.parametrize(("statement", "expected"), WAITS.items())
def test_what_a_thread_waits_for_is_known_by_its_system_call(statement: str, expected: str, tmp_path: Path) -> None:
    modules = "os, queue, select, socket, subprocess, sys, threading, time"
    code = f"import {modules}\nfrom fcntl import flock, LOCK_EX\nprint(flush=True)\n{statement}"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "file")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        counters = Counters(process.pid)
        counters.watch([process.pid], [], [])
        at = iter(range(100_000))

        def seen() -> str:
            first = next(at)
            counters.read(first)
            last = next(at)
            counters.read(last)
            return counters.waits_for(process.pid, first, last)

        wait_for(lambda: seen() == expected)
        process.kill()


def test_what_is_not_known_is_not_told() -> None:
    assert waits_for([b"running"], 1) == "" == waits_for([b"-1", b"0x7ffd", b"0x7f"], 1)
    assert waits_for([b"12345", b"0x1", b"0x1", b"0x1"], 1) == ""
    assert most_common(["sleep"]) == "" == most_common([]), "one reading may be of something short"
    assert most_common(["sleep", "sleep", "thread"]) == "" == most_common(["", "", "sleep"])
    assert most_common(["sleep"] * 3 + ["thread"]) == "sleep"
