"""When the process began, and when it stood still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns

import pytest

from tftracer.ledger import standstills
from tftracer.ledger.standstills import Reading, Standstills, process_start_ns, since_boot_ns

S = 10**9


@pytest.mark.skipif(since_boot_ns() is None, reason="only Linux tells when a process began")
def test_a_process_began_before_its_code_ran() -> None:
    before = perf_counter_ns()
    code = "from tftracer.ledger.standstills import process_start_ns; print(process_start_ns())"
    began = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert before - 2 * 10**7 <= began <= perf_counter_ns()  # one clock for all processes; ticks of 10 ms


@pytest.mark.parametrize("stat", ["", "no file", "1 (python) S 1 2", "1 (python) S" + " 0" * 18 + " 99999999999999"])
def test_a_start_that_is_not_told_is_not_known(stat: str, tmp_path: Path) -> None:
    path = tmp_path / "stat"
    if stat != "no file":
        path.write_text(stat)
    assert process_start_ns(str(path), 100 * S) is None


def test_a_name_with_spaces_and_brackets_hides_no_start(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    ticks = 40 * os.sysconf("SC_CLK_TCK")
    path.write_text("1 (a) b) S" + " 0" * 18 + f" {ticks} 0 0")
    began = process_start_ns(str(path), 100 * S)
    assert began is not None and 59 * S < perf_counter_ns() - began < 61 * S + 60 * S


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's counters")
def readings(*given: Reading) -> Standstills:
    left: Iterator[Reading] = iter(given)
    return Standstills(lambda: next(left))


@pytest.mark.parametrize(
    ("after", "stopped"),
    [
        (Reading(5 * S, 5 * S, 0, 3), (S // 5, 5 * S)),
        (Reading(S // 2, S // 2, 0, 3), None),  # so long a thread may be late
        (Reading(5 * S, 5 * S, 4 * S, 3), None),  # it computed with Python's lock held
        (Reading(5 * S, 5 * S, 0, 1000), None),  # its threads woke to ask for the lock
        (Reading(5 * S, 5 * S, 0, 3, 2 * S), None),  # it had no CPU
        (Reading(5 * S, 5 * S, 0, None), None),  # not known
    ],
)
def test_a_process_that_did_nothing_was_stopped(after: Reading, stopped: tuple[int, int] | None) -> None:
    assert readings(Reading(0, 0, 0, 0), after).update() == stopped


@pytest.mark.parametrize(("wakes", "own", "stopped"), [(100, 4, True), (1500, 4, False), (100, 90, False)])
def test_a_training_whose_threads_wake_often_was_stopped_all_the_same(wakes: int, own: int, stopped: bool) -> None:
    """It woke 500 times a second before, and does so until it is stopped and after that."""
    before = Reading(S // 10, S // 10, 0, 50)
    looked = readings(Reading(0, 0, 0, 0), before, Reading(3 * S + S // 10, 3 * S + S // 10, 0, 50 + wakes, 0, own))
    assert looked.update() is None
    assert (looked.update() is not None) == stopped


def test_a_machine_that_was_asleep_is_told_by_its_clocks() -> None:
    looked = readings(Reading(0, 0, 0, 0), Reading(S // 10, S // 10 + 3600 * S, 0, 1), Reading(S // 5, S // 5 + 3600 * S, 0, 2))
    assert looked.update() is None and looked.update() is None
    assert looked.asleep_ns == 3600 * S


LOOKING = """
import threading, sys
from tftracer.ledger.standstills import Standstills
looked, tick = Standstills(), threading.Event()
print("ready", flush=True)
while True:
    tick.wait(0.05)
    stopped = looked.update()
    if stopped:
        print(stopped[1] - stopped[0], flush=True)
        break
"""


@pytest.mark.skipif(sys.platform != "linux", reason="waits for Linux's process states")
def test_a_stopped_process_finds_out() -> None:
    with subprocess.Popen([sys.executable, "-c", LOOKING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        began = perf_counter_ns()
        while perf_counter_ns() - began < S:  # stopped for a second or more, whatever the machine does meanwhile
            pass
        process.send_signal(signal.SIGCONT)
        stopped = int(process.stdout.readline())
    assert 0.7 * S < stopped < perf_counter_ns() - began  # not the time before it


def test_a_thread_that_lost_its_cpu_between_both_clocks_takes_nothing_for_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    delays = iter([0.0] * 3 + [0.2] * 3)

    def boot_clock() -> int:
        time.sleep(next(delays, 0.0))
        return time.perf_counter_ns()

    monkeypatch.setattr(standstills, "since_boot_ns", boot_clock)
    found = Standstills()
    for _ in range(4):
        found.update()
    assert found.asleep_ns == 0
