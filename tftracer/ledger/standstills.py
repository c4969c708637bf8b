"""Finds the start of this process, and the times in which it was stopped or its machine was asleep."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from tftracer.ledger.thread_cpu import without_cpu_ns
from tftracer.slow.watch.host_counters import after_name

#: A standstill is a time of at least this length in which the writer's thread took no reading. Usually it takes five a second.
MIN_NS = 600_000_000
APART_NS = 200_000_000  # time between two readings
#: In a standstill the process used hardly any CPU and did not wait for a CPU. Its threads hardly woke: at most WAKES times (when
#: it stopped and went on), plus WAKES_PER_S times a second, plus as often as usual within RUNNING_S seconds. The writer's
#: own thread woke at most OWN_WAKES times, plus WAKES_PER_S times a second: while another thread sleeps and holds Python's lock,
#: which is no standstill, it wakes 200 times a second.
CPU_SHARE, QUEUED_SHARE, WAKES, OWN_WAKES, WAKES_PER_S, RUNNING_S = 0.05, 0.2, 200, 20, 5, 0.25
#: A shorter sleep of the machine does not count: the two clocks are not read at the same moment.
MIN_SLEEP_NS = 100_000_000
#: The two clocks are read up to TRIES times, until at most EXACT_NS pass between the two readings.
EXACT_NS, TRIES = 1_000_000, 3


def since_boot_ns() -> int | None:
    """Read Linux's clock that also counts while the machine sleeps, unlike perf_counter; None elsewhere."""
    with contextlib.suppress(AttributeError, OSError):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return None


def process_start_ns(stat: str = "/proc/self/stat", booted_ns: int | None = None) -> int | None:
    """Return the start of the process in perf_counter nanoseconds, exact to 10 ms; None if the system does not provide it.

    ``booted_ns``: the current time since the machine started.
    """
    booted_ns = since_boot_ns() if booted_ns is None else booted_ns
    with contextlib.suppress(OSError, ValueError, IndexError):
        started_ns = int(after_name(Path(stat).read_bytes())[19]) * 10**9 // os.sysconf("SC_CLK_TCK")
        if booted_ns is not None and started_ns <= booted_ns:
            return perf_counter_ns() - (booted_ns - started_ns)
    return None


class Reading(NamedTuple):
    at_ns: int  # perf_counter
    booted_ns: int | None  # time since the machine started; None: not known
    cpu_ns: int  # CPU time of all threads
    wakes: int | None  # times that a thread gave up its CPU to wait; None: not known
    queued_ns: int = 0  # time for which this thread and the main one could have run and had no CPU
    own_wakes: int = 0  # wakes of this thread


def read() -> Reading:
    queued_ns = sum(without_cpu_ns(native) or 0 for native in {os.getpid(), threading.get_native_id()})
    at_ns, booted_ns = _both_clocks()
    return Reading(at_ns, booted_ns, time.process_time_ns(), _wakes("SELF"), queued_ns, _wakes("THREAD") or 0)


def _both_clocks() -> tuple[int, int | None]:
    """Read perf_counter and the time since boot. The time since boot is None if this thread lost its CPU in each try."""
    for _ in range(TRIES):
        at_ns, booted_ns = perf_counter_ns(), since_boot_ns()
        if perf_counter_ns() - at_ns <= EXACT_NS:
            return at_ns, booted_ns
    return at_ns, None


def _wakes(scope: str) -> int | None:
    """Return how often all threads (``scope``: SELF) or this thread (THREAD) gave up the CPU to wait; None if not known."""
    who = getattr(resource, f"RUSAGE_{scope}", None)  # macOS has no RUSAGE_THREAD
    return None if who is None else resource.getrusage(who).ru_nvcsw


class Standstills:
    """Finds standstills. One thread calls ``update`` five times a second."""

    def __init__(self, read: Callable[[], Reading] = read) -> None:
        self.asleep_ns = 0  # sleep of the machine, which perf_counter does not count
        self._read = read
        self._last = read()
        self._rate = 0.0  # how often per second the threads woke, by the last two readings without a pause

    def update(self) -> tuple[int, int] | None:
        """Take a reading. Return the span in which the process was surely stopped since the last one; None if it was not.

        The span begins when this reading was due: the process had stopped by then, but after the last reading.
        """
        before, now = self._last, self._read()
        self._last = now
        passed = now.at_ns - before.at_ns
        if now.booted_ns is not None and before.booted_ns is not None:
            slept = now.booted_ns - before.booted_ns - passed
            self.asleep_ns += slept if slept >= MIN_SLEEP_NS else 0
        if now.wakes is None or before.wakes is None:
            return None
        wakes, in_pause = now.wakes - before.wakes, WAKES_PER_S * passed / 1e9
        if passed < MIN_NS:
            self._rate = wakes * 1e9 / passed if passed else 0.0
            return None
        woke = wakes > WAKES + in_pause + RUNNING_S * self._rate or now.own_wakes - before.own_wakes > OWN_WAKES + in_pause
        had_no_cpu = now.queued_ns - before.queued_ns > QUEUED_SHARE * passed
        if woke or had_no_cpu or now.cpu_ns - before.cpu_ns > CPU_SHARE * passed:
            return None
        return before.at_ns + APART_NS, now.at_ns
