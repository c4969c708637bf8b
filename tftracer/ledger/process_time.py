"""When this process began, and when it or its machine stood still."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from tftracer.slow.watch.host_signals import after_name

#: A standstill: the writer's thread, which looks ten times a second, did not for so long,
LEAST_NS = 600_000_000
#: and meanwhile the process used hardly any CPU, did not wait for one, and its threads hardly ever woke. A thread that waits for
#: Python's lock wakes 200 times a second, so that a call which holds the lock is told from a process that was stopped.
CPU_SHARE, QUEUED_SHARE, WAKES, WAKES_PER_S = 0.05, 0.2, 20, 5
#: A sleep of the machine that is shorter is not one: the two clocks are not read at the same moment.
LEAST_SLEEP_NS = 100_000_000


def since_boot_ns() -> int | None:
    """Linux's clock that goes on while the machine sleeps, unlike perf_counter; None elsewhere."""
    with contextlib.suppress(AttributeError, OSError):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return None


def process_start_ns(stat: str = "/proc/self/stat", booted_ns: int | None = None) -> int | None:
    """When the process began, as perf_counter nanoseconds; None where the system does not tell. Right to 10 ms.

    ``booted_ns``: the time since the machine started, now.
    """
    booted_ns = since_boot_ns() if booted_ns is None else booted_ns
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        started_ns = int(after_name(Path(stat).read_bytes())[19]) * 10**9 // os.sysconf("SC_CLK_TCK")
        if booted_ns is not None and started_ns <= booted_ns:
            return perf_counter_ns() - (booted_ns - started_ns)
    return None


class Reading(NamedTuple):
    at_ns: int  # perf_counter
    booted_ns: int | None
    cpu_ns: int  # of all threads
    wakes: int | None  # times that a thread gave up its CPU to wait; None: not known
    queued_ns: int = 0  # that this thread and the main one could have run and had no CPU


def read() -> Reading:
    queued_ns = sum(map(_queued_ns, {os.getpid(), threading.get_native_id()}))
    return Reading(perf_counter_ns(), since_boot_ns(), time.process_time_ns(), _wakes(), queued_ns)


def _queued_ns(native: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/self/task/{native}/schedstat").read_bytes().split()[1])
    return 0


def _wakes() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


class Standstills:
    """Looked at ten times a second, by one thread."""

    def __init__(self, read: Callable[[], Reading] = read) -> None:
        self.asleep_ns = 0  # of the machine: perf_counter does not count it
        self._read = read
        self._last = read()

    def look(self) -> tuple[int, int] | None:
        """The span in which the process was stopped since the last look."""
        before, now = self._last, self._read()
        self._last = now
        passed = now.at_ns - before.at_ns
        if now.booted_ns is not None and before.booted_ns is not None:
            slept = now.booted_ns - before.booted_ns - passed
            self.asleep_ns += slept if slept >= LEAST_SLEEP_NS else 0
        if passed < LEAST_NS or now.wakes is None or before.wakes is None:
            return None
        woke = now.wakes - before.wakes > WAKES + WAKES_PER_S * passed / 1e9
        had_no_cpu = now.queued_ns - before.queued_ns > QUEUED_SHARE * passed
        return None if woke or had_no_cpu or now.cpu_ns - before.cpu_ns > CPU_SHARE * passed else (before.at_ns, now.at_ns)
