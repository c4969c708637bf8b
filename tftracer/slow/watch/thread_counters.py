"""Reads Linux's counters of a training's threads from outside, at least ten times a second, and keeps them for minutes.

For any span, they show for how long a thread ran on a CPU, waited for a CPU, a disk or Python's lock, or was stopped, and the CPU
time of the whole process. None: the system does not provide the value.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from statistics import mean, median

from tftracer.slow.watch.host_counters import after_name
from tftracer.slow.watch.system_calls import most_common, waits_for
from tftracer.slow.watch.thread_times_in_span import Reading, Times, Wait, added, within

#: Maximum number of readings of a thread that are kept: at least those of the last two minutes.
MAX_READINGS = 2400
MAX_THREADS = 8
READ_BYTES = 1024
#: For the waits of all threads: time between two readings, time between two listings of the threads, maximum number of threads,
#: and maximum number of waits that are kept.
QUEUES_NS, LIST_NS, MAX_LISTED, MAX_WAITS = 200_000_000, 5_000_000_000, 200, 600
#: Whether Linux counts sleeps of moved threads as waits for a CPU (``thread_times_in_span._waited``). Then waits that are longer
#: than the time between two readings are left out for threads whose state is not read.
COUNTS_SLEEP = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (6, 12)
#: Counters of a reading, in nanoseconds, whose usual rate is computed.
RATES = ("cpu", "process", "process_queue", "python")
SECOND_NS, MINUTE_NS = 10**9, 60 * 10**9
NS = 1e-9
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")  # the unit of the times in /proc/.../stat
#: A thread that waits for Python's lock sleeps on an address at most this number of bytes after the address that stores the
#: lock's holder (64 or 68 bytes in Python 3.9 to 3.13).
LOCK_BYTES = 256
#: While a thread waits for the lock, it wakes 200 times a second to request the lock again. That takes less than this share of a
#: CPU.
REQUESTING = 0.1


class ThreadCounters:
    def __init__(self, pid: int, native: int) -> None:
        self.readings: deque[Reading] = deque(maxlen=MAX_READINGS)
        self._pid = pid
        self._files = [os.open(f"/proc/{pid}/task/{native}/{name}", os.O_RDONLY) for name in ("schedstat", "stat")]
        with contextlib.suppress(OSError):  # some kernels do not have this file
            self._files.append(os.open(f"/proc/{pid}/task/{native}/syscall", os.O_RDONLY))

    def read(self, now_ns: int, process_ns: int, queues: Queues, lock: int) -> None:
        """Take a reading. ``lock``: the address where the process stores the holder of Python's lock; 0: not known."""
        cpu, queue = map(int, os.pread(self._files[0], READ_BYTES, 0).split()[:2])
        stat = after_name(os.pread(self._files[1], READ_BYTES, 0))
        call = self._call()
        wants_lock = self._wants_lock(call, lock, now_ns, cpu) if lock and call is not None else None
        waits = "" if call is None or wants_lock else waits_for(call, self._pid)
        state, faults, kernel_ns = stat[0].decode(), int(stat[7]) + int(stat[9]), int(stat[12]) * TICK_NS
        times = now_ns, cpu, queue, state, process_ns, queues.sum_ns
        self.readings.append(Reading(*times, wants_lock, kernel_ns, faults, queues.python_ns, waits))

    def _call(self) -> list[bytes] | None:
        """Return the number and arguments of the thread's system call, or "running"; None if not known."""
        try:
            return os.pread(self._files[2], READ_BYTES, 0).split()
        except (OSError, IndexError):
            return None

    def _wants_lock(self, call: list[bytes], lock: int, now_ns: int, cpu_ns: int) -> bool:
        if len(call) > 1 and lock <= int(call[1], 16) < lock + LOCK_BYTES:
            return True
        if call != [b"running"] or not self.readings or not self.readings[-1].wants_lock:
            return False
        before = self.readings[-1]  # if it has hardly run since then, it is about to request the lock again
        return cpu_ns - before.cpu_ns < REQUESTING * (now_ns - before.at_ns)

    def close(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):
                os.close(file)


class ThreadState:
    """Reads the current state of one thread at a time; 0 or "" if Linux does not provide it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._native = 0
        self._files: dict[str, int] = {}

    def queued_ns(self, native: int) -> int:
        """Return the time for which the thread has waited for a CPU since its start, without a wait that has not ended yet."""
        try:
            return int(self._read(native, "schedstat").split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def letter(self, native: int) -> str:
        """Return Linux's letter for the state. "R": the thread runs or waits for a CPU; "S": it waits for something else."""
        try:
            return self._read(native, "stat").rpartition(b")")[2].split(None, 1)[0].decode()
        except (OSError, ValueError, IndexError):
            return ""

    def _read(self, native: int, name: str) -> bytes:
        if native != self._native:
            for file in self._files.values():
                os.close(file)
            self._native, self._files = native, {}
        if name not in self._files:
            self._files[name] = os.open(f"/proc/{self._pid}/task/{native}/{name}", os.O_RDONLY)
        return os.pread(self._files[name], READ_BYTES, 0)


class Queues:
    """The time for which the threads of a process have waited for a CPU, read five times a second.

    ``folder``: /proc/PID/task. ``ours``: native ids of the tracer's threads, which are left out. ``python``: those of other
    Python threads of the script.
    """

    def __init__(self, folder: Path) -> None:
        self.sum_ns = 0  # waits of all threads so far
        self.python_ns = 0  # CPU time of ``python`` so far
        self.ours: frozenset[str] = frozenset()
        self.python: frozenset[str] = frozenset()
        self._folder = folder
        self._files: dict[str, int] = {}
        self._last: dict[str, tuple[int, int]] = {}  # native id -> CPU time and total wait at the last reading, in nanoseconds
        self._short: deque[tuple[int, int, int]] = deque(maxlen=MAX_WAITS)  # (from, until, waits of all threads, in nanoseconds)
        self._long: deque[Wait] = deque(maxlen=MAX_WAITS)  # waits that are longer than the time between two readings
        self._doubtful: deque[Wait] = deque(maxlen=MAX_WAITS)  # long waits that may be sleeps instead
        self._first_ns = self._read_ns = self._next_ns = self._next_list_ns = 0

    def read(self, now_ns: int, at_once: bool) -> None:
        if now_ns < self._next_ns and not at_once:
            return
        self._next_ns = now_ns + QUEUES_NS
        if now_ns >= self._next_list_ns:
            self._next_list_ns = now_ns + LIST_NS
            self._list()
        short_ns = 0
        for native, file in list(self._files.items()):
            try:
                ran, queued = map(int, os.pread(file, READ_BYTES, 0).split()[:2])
            except (OSError, ValueError):
                self._close(native)
                continue
            last_ran, last_queued = self._last.get(native, (ran, queued))
            waited = queued - last_queued
            self._last[native] = ran, queued
            if native in self.python:
                self.python_ns += ran - last_ran
            if not waited or native in self.ours:
                continue
            is_long = waited > now_ns - self._read_ns
            if is_long:
                (self._doubtful if COUNTS_SLEEP else self._long).append(Wait(self._read_ns, now_ns, waited))
            else:
                short_ns += waited
            self.sum_ns += 0 if is_long and COUNTS_SLEEP else waited
        self._short.append((self._read_ns, now_ns, short_ns))
        self._first_ns = self._first_ns or now_ns
        self._read_ns = now_ns

    def within(self, start_ns: int, end_ns: int) -> tuple[float | None, float | None]:
        """Return for how many seconds all threads together waited within a span, and the seconds that may be sleeps instead; None
        if the waits were not read before and after the span."""
        first_ns = self._short[0][0] if len(self._short) == MAX_WAITS else self._first_ns
        if not first_ns or start_ns < first_ns or end_ns > self._read_ns:
            return None, None
        waited = 0.0
        for since, until, short_ns in reversed(self._short):
            if until <= start_ns:
                break
            waited += short_ns * max(0, min(until, end_ns) - max(since, start_ns)) / max(1, until - since)
        waited += _sum(self._long, start_ns, end_ns)
        return waited * NS, _sum(self._doubtful, start_ns, end_ns) * NS

    def _list(self) -> None:
        """Open the files of new threads."""
        with contextlib.suppress(OSError):
            for folder in self._folder.iterdir():
                if folder.name not in self._files and len(self._files) < MAX_LISTED:
                    with contextlib.suppress(OSError):
                        self._files[folder.name] = os.open(folder / "schedstat", os.O_RDONLY)

    def _close(self, native: str) -> None:
        os.close(self._files.pop(native))
        self._last.pop(native, None)


def _sum(waits: deque[Wait], start_ns: int, end_ns: int) -> float:
    newest_first = takewhile(lambda wait: wait.at_ns > start_ns, reversed(waits))
    return sum(wait.within(start_ns, end_ns) for wait in newest_first)


class Counters:
    """The counters of a process. ``watch`` sets the threads; ``read`` is called at least ten times a second."""

    def __init__(self, pid: int) -> None:
        self.lock = 0  # the address where the process stores the holder of Python's lock; 0: not known
        self._pid = pid
        self._process_clock = (~pid << 3) | 2  # the clock of that process's CPU time, computed like clock_getcpuclockid(3)
        self._threads: dict[int, ThreadCounters] = {}
        self._queues = Queues(Path(f"/proc/{pid}/task"))
        self._usual: dict[int, tuple[int, dict[str, float | None]]] = {}  # thread -> time of computation, and the result

    def watch(self, natives: list[int], ours: list[int], others: list[int]) -> None:
        """Set the threads to read, by native id. ``ours``: threads of the tracer. ``others``: other Python threads."""
        self._queues.ours, self._queues.python = (frozenset(map(str, ids)) for ids in (ours, others))
        for native in set(self._threads) - set(natives):
            self._threads.pop(native).close()
        for native in natives[:MAX_THREADS]:
            if native not in self._threads:
                with contextlib.suppress(OSError):
                    self._threads[native] = ThreadCounters(self._pid, native)

    def read(self, now_ns: int, at_once: bool = False) -> None:
        """Read the counters. ``at_once``: read the waits of all threads, too, because an answer needs their current values."""
        try:
            process_ns = time.clock_gettime_ns(self._process_clock)
        except OSError:
            process_ns = 0
        if self._threads:
            self._queues.read(now_ns, at_once)
        for native, thread in list(self._threads.items()):
            try:
                thread.read(now_ns, process_ns, self._queues, self.lock)
            except (OSError, ValueError, IndexError):  # the thread has ended, or this kernel has no such counters
                self._threads.pop(native).close()

    def within(self, native: int, start_ns: int, end_ns: int) -> dict[str, float | None]:
        """Return a thread's values within a span (``thread_times_in_span.within``), and the waits of all threads for a CPU."""
        readings = self._threads[native].readings if native in self._threads else ()
        queued_s, doubtful_s = self._queues.within(start_ns, end_ns)
        return {**within(readings, start_ns, end_ns), "process_queue_s": queued_s, "process_doubtful_queue_s": doubtful_s}

    def added(self, native: int, spans: Sequence[tuple[int, int]]) -> dict[str, float] | None:
        """Return the total length of spans, and the sums of a thread's counters in them; None: no spans, or not known."""
        return added(self._threads[native].readings if native in self._threads else (), spans)

    def wants_lock(self, native: int, start_ns: int, end_ns: int) -> list[tuple[int, bool]] | None:
        """Return (time, whether the thread waited for Python's lock) of each reading within a span; None if not known."""
        readings = self._threads[native].readings if native in self._threads else ()
        inner = _inner(readings, start_ns, end_ns)
        known = [(reading.at_ns, reading.wants_lock) for reading in inner if reading.wants_lock is not None]
        return known if len(known) == len(inner) else None

    def waits_for(self, native: int, start_ns: int, end_ns: int) -> str:
        """Return what a thread mostly waited for within a span: a key of ``system_calls.WAITS``; "" if not known."""
        readings = self._threads[native].readings if native in self._threads else ()
        inner = [reading for reading in _inner(readings, start_ns, end_ns) if reading.state != "R" and not reading.wants_lock]
        return most_common(reading.waits_for for reading in inner)

    def usual(self, native: int, now_ns: int) -> dict[str, float | None]:
        """Return the usual seconds per second, in the last minute: CPU time of a thread, of the process and of its other Python
        threads, the wait of the process's threads for a CPU, and the wait of the thread for Python's lock.

        The first four are medians over spans of a second, the last is a mean over readings a second apart.
        """
        computed_ns, usual = self._usual.get(native, (0, {}))
        if not usual or now_ns - computed_ns >= SECOND_NS:
            usual = _usual(self._threads[native].readings if native in self._threads else (), now_ns - MINUTE_NS)
            self._usual = {**{each: self._usual[each] for each in self._usual.keys() & self._threads}, native: (now_ns, usual)}
        return usual


def _inner(readings: Sequence[Reading], start_ns: int, end_ns: int) -> list[Reading]:
    at = Times(readings)
    return [readings[index] for index in range(bisect_left(at, start_ns), bisect_right(at, end_ns))]


def _usual(readings: Sequence[Reading], since_ns: int) -> dict[str, float | None]:
    second_apart: list[Reading] = []
    for reading in reversed(readings):
        if reading.at_ns < since_ns:
            break
        if not second_apart or second_apart[-1].at_ns - reading.at_ns >= SECOND_NS:
            second_apart.append(reading)
    second_apart.reverse()
    if len(second_apart) < 2:
        return dict.fromkeys((*RATES, "lock_wait"))
    pairs = list(zip(second_apart, second_apart[1:]))
    wanted = [reading.wants_lock for reading in second_apart]
    return {
        name: median((getattr(b, f"{name}_ns") - getattr(a, f"{name}_ns")) / (b.at_ns - a.at_ns) for a, b in pairs)
        for name in RATES
    } | {"lock_wait": None if None in wanted else mean(map(bool, wanted))}
