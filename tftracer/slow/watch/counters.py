"""Reads Linux's counters of a training's threads from outside, at least ten times a second, and keeps them for minutes.

For any span they give the time for which a thread ran on a CPU, waited for one, waited for a disk or for Python's lock, or was
stopped, and the CPU time of the whole process. None: the system does not provide it.
"""

from __future__ import annotations

import contextlib
import os
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

#: Readings of one thread: at least two minutes.
MAX_READINGS = 2400
MAX_THREADS = 8
READ_BYTES = 1024
#: The distances of the first and last reading from a span may add up to this time, or to this share of its length; or what the
#: thread did in them may be this share of its length.
BESIDE_NS, BESIDE = 150_000_000, 0.3
#: For all threads: time between two readings and between two listings, number of threads, and number of waits that are kept.
QUEUES_NS, LIST_NS, MAX_LISTED, MAX_WAITS = 200_000_000, 5_000_000_000, 200, 600
SECOND_NS, MINUTE_NS = 10**9, 60 * 10**9
NS = 1e-9
#: A thread that waits for Python's lock sleeps on an address within this number of bytes behind the one that holds the lock's
#: holder (64 or 68 bytes in Python 3.9 to 3.13).
LOCK_BYTES = 256
#: While it waits it wakes 200 times a second to request the lock again. That takes less than this share of a CPU.
REQUESTING = 0.1


class Reading(NamedTuple):
    at_ns: int
    cpu_ns: int
    queue_ns: int
    state: str  # Linux's letter
    process_ns: int  # CPU time of the whole process
    process_queue_ns: int  # time for which all of its threads together have waited for a CPU
    wants_lock: bool | None = None  # the thread waits for Python's lock


class Wait(NamedTuple):
    """The time for which a thread waited for a CPU, by one reading."""

    since_ns: int  # the previous reading
    at_ns: int
    waited_ns: int

    def within(self, start_ns: int, end_ns: int) -> float:
        """Return the nanoseconds within a span. Linux counts a wait when it ends: one longer than the time between the two
        readings began before them."""
        since_ns = min(self.since_ns, self.at_ns - self.waited_ns)
        return max(0, min(self.at_ns, end_ns) - max(since_ns, start_ns)) * self.waited_ns / max(1, self.at_ns - since_ns)


class ThreadCounters:
    def __init__(self, pid: int, native: int) -> None:
        self.readings: deque[Reading] = deque(maxlen=MAX_READINGS)
        self._files = [os.open(f"/proc/{pid}/task/{native}/{name}", os.O_RDONLY) for name in ("schedstat", "stat")]
        with contextlib.suppress(OSError):  # some kernels have no such file
            self._files.append(os.open(f"/proc/{pid}/task/{native}/syscall", os.O_RDONLY))

    def read(self, now_ns: int, process_ns: int, process_queue_ns: int, lock: int) -> None:
        """Take a reading. ``lock``: the address where the process stores the holder of Python's lock; 0: not known."""
        cpu, queue = map(int, os.pread(self._files[0], READ_BYTES, 0).split()[:2])
        state = os.pread(self._files[1], READ_BYTES, 0).rpartition(b")")[2].split(None, 1)[0].decode()
        wants_lock = self._wants_lock(lock, now_ns, cpu) if lock else None
        self.readings.append(Reading(now_ns, cpu, queue, state, process_ns, process_queue_ns, wants_lock))

    def _wants_lock(self, lock: int, now_ns: int, cpu_ns: int) -> bool | None:
        try:
            call = os.pread(self._files[2], READ_BYTES, 0).split()  # its number and arguments; "running"
        except (OSError, IndexError):
            return None
        if len(call) > 1 and lock <= int(call[1], 16) < lock + LOCK_BYTES:
            return True
        if call != [b"running"] or not self.readings or not self.readings[-1].wants_lock:
            return False
        before = self.readings[-1]  # if it has hardly run since, it is about to request the lock again, perhaps without a CPU
        return cpu_ns - before.cpu_ns < REQUESTING * (now_ns - before.at_ns)

    def close(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):
                os.close(file)


class ThreadState:
    """Reads the current state of one thread at a time; 0 and "" where Linux does not provide it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._native = 0
        self._files: dict[str, int] = {}

    def queued_ns(self, native: int) -> int:
        """Return the time for which the thread has waited for a CPU since its start, without a wait that lasts."""
        try:
            return int(self._read(native, "schedstat").split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def letter(self, native: int) -> str:
        """Return Linux's letter. "R": it runs, or waits for a CPU; "S": it waits for something else."""
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

    ``folder``: /proc/PID/task. ``ours``: the tracer's threads, which are left out.
    """

    def __init__(self, folder: Path) -> None:
        self.sum_ns = 0
        self.ours: frozenset[str] = frozenset()
        self._folder = folder
        self._files: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._short: deque[tuple[int, int, int]] = deque(maxlen=MAX_WAITS)  # from, until, wait of all threads within
        self._long: deque[Wait] = deque(maxlen=MAX_WAITS)  # longer than the time between two readings
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
                queued = int(os.pread(file, READ_BYTES, 0).split()[1])
            except (OSError, ValueError, IndexError):
                self._close(native)
                continue
            waited = queued - self._last.get(native, queued)
            self._last[native] = queued
            if waited and native not in self.ours:
                self.sum_ns += waited
                if waited > now_ns - self._read_ns:
                    self._long.append(Wait(self._read_ns, now_ns, waited))
                else:
                    short_ns += waited
        self._short.append((self._read_ns, now_ns, short_ns))
        self._first_ns = self._first_ns or now_ns
        self._read_ns = now_ns

    def within(self, start_ns: int, end_ns: int) -> float | None:
        """Return the seconds of all threads within a span; None if they were not read before and after it."""
        first_ns = self._short[0][0] if len(self._short) == MAX_WAITS else self._first_ns
        if not first_ns or start_ns < first_ns or end_ns > self._read_ns:
            return None
        waited = 0.0
        for since, until, short_ns in reversed(self._short):
            if until <= start_ns:
                break
            waited += short_ns * max(0, min(until, end_ns) - max(since, start_ns)) / max(1, until - since)
        for wait in reversed(self._long):
            if wait.at_ns <= start_ns:
                break
            waited += wait.within(start_ns, end_ns)
        return waited * NS

    def _list(self) -> None:
        with contextlib.suppress(OSError):
            for folder in self._folder.iterdir():
                if folder.name not in self._files and len(self._files) < MAX_LISTED:
                    with contextlib.suppress(OSError):
                        self._files[folder.name] = os.open(folder / "schedstat", os.O_RDONLY)

    def _close(self, native: str) -> None:
        os.close(self._files.pop(native))
        self._last.pop(native, None)


class Counters:
    """The counters of a process. ``watch`` sets the threads; ``read`` is called at least ten times a second."""

    def __init__(self, pid: int) -> None:
        self.lock = 0  # the address where the process stores the holder of Python's lock; 0: not known
        self._pid = pid
        self._process_clock = (~pid << 3) | 2  # the clock of another process's CPU time, as clock_getcpuclockid(3) makes it
        self._threads: dict[int, ThreadCounters] = {}
        self._queues = Queues(Path(f"/proc/{pid}/task"))
        self._usual: dict[int, tuple[int, dict[str, float | None]]] = {}  # thread -> time of computation, and the result

    def watch(self, natives: list[int], ours: list[int]) -> None:
        """Set the threads to read. ``ours``: threads of the tracer."""
        self._queues.ours = frozenset(map(str, ours))
        for native in set(self._threads) - set(natives):
            self._threads.pop(native).close()
        for native in natives[:MAX_THREADS]:
            if native not in self._threads:
                with contextlib.suppress(OSError):
                    self._threads[native] = ThreadCounters(self._pid, native)

    def read(self, now_ns: int, at_once: bool = False) -> None:
        """Read the counters. ``at_once``: also those of all threads, because a question about the present is to be answered."""
        try:
            process_ns = time.clock_gettime_ns(self._process_clock)
        except OSError:
            process_ns = 0
        if self._threads:
            self._queues.read(now_ns, at_once)
        for native, thread in list(self._threads.items()):
            try:
                thread.read(now_ns, process_ns, self._queues.sum_ns, self.lock)
            except (OSError, ValueError, IndexError):  # the thread has ended, or this kernel has no such counters
                self._threads.pop(native).close()

    def within(self, native: int, start_ns: int, end_ns: int) -> dict[str, float | None]:
        """Return the seconds of a thread within a span, and of the whole process."""
        readings = self._threads[native].readings if native in self._threads else ()
        return {**within(readings, start_ns, end_ns), "process_queue_s": self._queues.within(start_ns, end_ns)}

    def wants_lock(self, native: int, start_ns: int, end_ns: int) -> list[tuple[int, bool]] | None:
        """Return (time, whether it waited for Python's lock) of each reading of a thread within a span; None if not known."""
        readings = self._threads[native].readings if native in self._threads else ()
        at = _Times(readings)
        inner = [readings[index] for index in range(bisect_left(at, start_ns), bisect_right(at, end_ns))]
        known = [(reading.at_ns, reading.wants_lock) for reading in inner if reading.wants_lock is not None]
        return known if len(known) == len(inner) else None

    def usual(self, native: int, now_ns: int) -> dict[str, float | None]:
        """Return the usual seconds per second, in the last minute: CPU time of a thread and of the process, the wait of the
        process's threads for a CPU, and the wait of the thread for Python's lock.

        The first three are medians over spans of a second, the last is a mean over readings a second apart.
        """
        computed_ns, usual = self._usual.get(native, (0, {}))
        if not usual or now_ns - computed_ns >= SECOND_NS:
            usual = _usual(self._threads[native].readings if native in self._threads else (), now_ns - MINUTE_NS)
            self._usual = {**{each: self._usual[each] for each in self._usual.keys() & self._threads}, native: (now_ns, usual)}
        return usual


def _usual(readings: Sequence[Reading], since_ns: int) -> dict[str, float | None]:
    second_apart: list[Reading] = []
    for reading in reversed(readings):
        if reading.at_ns < since_ns:
            break
        if not second_apart or second_apart[-1].at_ns - reading.at_ns >= SECOND_NS:
            second_apart.append(reading)
    second_apart.reverse()
    if len(second_apart) < 2:
        return dict.fromkeys(("cpu", "process", "process_queue", "lock_wait"))
    pairs = list(zip(second_apart, second_apart[1:]))
    wanted = [reading.wants_lock for reading in second_apart]
    return {
        name: median((getattr(b, f"{name}_ns") - getattr(a, f"{name}_ns")) / (b.at_ns - a.at_ns) for a, b in pairs)
        for name in ("cpu", "process", "process_queue")
    } | {"lock_wait": None if None in wanted else mean(map(bool, wanted))}


OF_READINGS = ("cpu_s", "queue_s", "uncertain_s", "process_s", "process_min_s", "disk_s", "stopped_s", "lock_wait_s")
#: What ``Counters.within`` returns.
NAMES = (*OF_READINGS, "process_queue_s")


class _Times:
    """The times of readings, for ``bisect``. A list of them would take as long as the rest of an answer."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def __len__(self) -> int:
        return len(self._readings)

    def __getitem__(self, index: int) -> int:
        return self._readings[index].at_ns


def within(readings: Sequence[Reading], start_ns: int, end_ns: int) -> dict[str, float | None]:
    """Return the seconds within a span. None where the readings cannot separate them from those before or after it.

    ``cpu_s`` and ``queue_s`` are lower bounds where the nearest readings are far from the span; their sum may be larger by
    ``uncertain_s``.
    """
    at = _Times(readings)
    first, last = bisect_right(at, start_ns) - 1, bisect_left(at, end_ns)
    if not 0 <= first < last < len(readings):
        return dict.fromkeys(OF_READINGS)
    inner = [readings[index] for index in range(first, last + 1)]
    cpu, process = (_grown(inner, name, start_ns, end_ns) for name in ("cpu_ns", "process_ns"))
    length_ns, beside_ns = end_ns - start_ns, start_ns - at[first] + at[last] - end_ns
    if beside_ns > max(BESIDE_NS, BESIDE * length_ns) and cpu.uncertain_s + _queue_beside(inner) > BESIDE * length_ns * NS:
        queue_min, queue_uncertain = _queued_at_least(inner, start_ns, end_ns)
        uncertain_s = min(cpu.uncertain_s + queue_uncertain, length_ns * NS - cpu.sure_s - queue_min)
        return {
            **dict.fromkeys(OF_READINGS),
            "cpu_s": cpu.sure_s,
            "queue_s": queue_min,
            "uncertain_s": max(0.0, uncertain_s),
            "stopped_s": _stopped(inner, start_ns, end_ns),
        }
    return {
        "uncertain_s": 0.0,
        "cpu_s": cpu.seconds,
        "queue_s": max(0.0, min(_queued(inner, start_ns, end_ns), length_ns * NS - cpu.seconds)),
        "process_s": process.seconds,
        "process_min_s": process.min_s,
        "disk_s": _in_state(inner, "D", start_ns, end_ns),
        "lock_wait_s": _lock_wait(inner, start_ns, end_ns),
        "stopped_s": _stopped(inner, start_ns, end_ns),
    }


class _Grown(NamedTuple):
    seconds: float
    min_s: float  # surely within the span, for any number of threads
    sure_s: float  # surely within the span, for one thread
    uncertain_s: float  # for one thread: may be within the span, or before or after it


def _grown(readings: list[Reading], name: str, start_ns: int, end_ns: int) -> _Grown:
    """Return the growth of a counter of CPU time within a span; between two readings it is even."""
    seconds = minimum = sure = uncertain = 0.0
    for before, after in zip(readings, readings[1:]):
        grown, length = getattr(after, name) - getattr(before, name), after.at_ns - before.at_ns
        inside = min(after.at_ns, end_ns) - max(before.at_ns, start_ns)
        if length > 0 and inside > 0:
            seconds += grown * inside / length
            surely = grown if inside == length else max(0, grown - (length - inside))
            minimum += grown if inside == length else 0
            sure += surely
            uncertain += max(0, min(grown, inside) - surely) if inside < length else 0
    return _Grown(seconds * NS, minimum * NS, sure * NS, uncertain * NS)


def _queued(readings: list[Reading], start_ns: int, end_ns: int) -> float:
    waits = (Wait(before.at_ns, after.at_ns, after.queue_ns - before.queue_ns) for before, after in zip(readings, readings[1:]))
    return sum(wait.within(start_ns, end_ns) for wait in waits) * NS


def _queued_at_least(readings: list[Reading], start_ns: int, end_ns: int) -> tuple[float, float]:
    """Return the seconds for which the thread surely waited for a CPU within a span, and the seconds that it may be more."""
    minimum = uncertain = 0
    for before, after in zip(readings, readings[1:]):
        waited, length = after.queue_ns - before.queue_ns, after.at_ns - before.at_ns
        if waited > length:  # one wait that began before this interval and ended in it
            early = max(0, min(before.at_ns, end_ns) - max(before.at_ns - waited, start_ns))
            late = max(0, min(after.at_ns, end_ns) - max(after.at_ns - waited, start_ns))
            lowest, highest = min(early, late), max(early, late)
        else:
            inside = min(after.at_ns, end_ns) - max(before.at_ns, start_ns)
            lowest, highest = max(0, waited - (length - inside)), min(waited, inside)
        minimum, uncertain = minimum + lowest, uncertain + highest - lowest
    return minimum * NS, uncertain * NS


def _queue_beside(readings: list[Reading]) -> float:
    """Return an upper bound of the waits for a CPU around the begin and the end of a span, in seconds."""
    ends = [(readings[0], readings[1])] + ([(readings[-2], readings[-1])] if len(readings) > 2 else [])
    return sum(min(after.queue_ns - before.queue_ns, after.at_ns - before.at_ns) for before, after in ends) * NS


def _in_state(readings: list[Reading], state: str, start_ns: int, end_ns: int) -> float:
    """Return the seconds in a state. A reading represents the time until the next one."""
    pairs = (pair for pair in zip(readings, readings[1:]) if pair[0].state == state)
    return sum(max(0, min(after.at_ns, end_ns) - max(before.at_ns, start_ns)) for before, after in pairs) * NS


def _lock_wait(readings: list[Reading], start_ns: int, end_ns: int) -> float | None:
    """Return the wait for Python's lock in seconds; None if a reading lacks it. A reading represents the time nearest to it."""
    if any(reading.wants_lock is None for reading in readings):
        return None
    middles = [(before.at_ns + after.at_ns) // 2 for before, after in zip(readings, readings[1:])]
    spans = zip(readings, [readings[0].at_ns, *middles], [*middles, readings[-1].at_ns])
    wanted = (min(until, end_ns) - max(since, start_ns) for reading, since, until in spans if reading.wants_lock)
    return sum(max(0, nanoseconds) for nanoseconds in wanted) * NS


def _stopped(readings: list[Reading], start_ns: int, end_ns: int) -> float:
    """Return the minimum of the stopped time: only between two readings of this state."""
    pairs = (pair for pair in zip(readings, readings[1:]) if pair[0].state == pair[1].state == "T")
    return sum(max(0, min(after.at_ns, end_ns) - max(before.at_ns, start_ns)) for before, after in pairs) * NS
