"""The counters of threads of this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tftracer.ledger import thread_cpu

S = 10**9


def test_a_thread_that_shares_its_cpu_waits_for_it() -> None:
    """Two processes on one CPU, each of which computes for half a second."""
    code = (
        "import os, time, sys\nfrom tftracer.ledger.thread_cpu import without_cpu_ns\n"
        "os.sched_setaffinity(0, {int(sys.argv[1])})\nend = time.process_time() + 0.5\n"
        "print(flush=True)\nsys.stdin.readline()\n"
        "while time.process_time() < end:\n    pass\nprint(without_cpu_ns(os.getpid()))"
    )
    command = [sys.executable, "-c", code, str(min(os.sched_getaffinity(0)))]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for each in both:
        assert each.stdout is not None and each.stdout.readline() == "\n"
    for each in both:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    waited = [int(each.communicate()[0]) for each in both]
    assert max(waited) > 0.3 * S and thread_cpu.without_cpu_ns(0) is None


def test_more_than_what_passed_is_no_wait_for_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = iter([5 * S, 5 * S + 1000, 65 * S])
    monkeypatch.setattr(thread_cpu, "without_cpu_ns", lambda native: next(counted))
    without = thread_cpu.WithoutCpu()
    without.of_thread(7)
    without.update()
    without.update()  # it slept for a minute, and was moved to another CPU
    assert without.sum_ns == 5 * S + 1000


def test_the_cpu_time_of_threads_that_ended_still_counts() -> None:
    own, used = thread_cpu.OwnCpu(), time.process_time()
    while time.process_time() - used < 0.02:
        pass
    known = own.sum_s([os.getpid()])
    assert known is not None and known >= 0.02 and own.sum_s([]) == known


def test_processes_that_a_thread_started_count_with_it() -> None:
    own = thread_cpu.OwnCpu()
    code = "import time\nwhile time.process_time() < 0.1:\n    pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        known = own.sum_s([os.getpid()])
        child.kill()
    alone = thread_cpu.OwnCpu().sum_s([os.getpid()])  # the child has ended, and does not count in it
    assert known is not None and alone is not None and known >= alone + 0.05
    assert (own.sum_s([]) or 0.0) == known
