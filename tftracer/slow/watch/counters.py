"""Linux's counters of a training's threads, read 20 times a second from outside, kept for two minutes.

For any span of time they tell how long a thread ran on a CPU, waited for one, waited for a disk, or was stopped, and how much
CPU time the whole process used. What the system does not tell is None.
"""

from __future__ import annotations

import contextlib
import os
import time
from bisect import bisect_left, bisect_right
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

#: Readings of one thread: two minutes.
KEPT = 2400
MAX_THREADS = 8
READ_BYTES = 1024
#: Readings may lie so far beside a span, both together; or this part of its length.
BESIDE_NS, BESIDE = 150_000_000, 0.3
#: Of all threads: between two readings, between two looks at which there are, and how many.
QUEUES_NS, LIST_NS, MAX_LISTED = 200_000_000, 5_000_000_000, 200
NS = 1e-9


class Reading(NamedTuple):
    at_ns: int
    cpu_ns: int
    queue_ns: int
    state: str  # Linux's letter
    process_ns: int  # CPU time of the whole process
    process_queue_ns: int  # how long all of its threads together have waited for a CPU


class ThreadCounters:
    def __init__(self, pid: int, native: int) -> None:
        self.readings: deque[Reading] = deque(maxlen=KEPT)
        self._files = [os.open(f"/proc/{pid}/task/{native}/{name}", os.O_RDONLY) for name in ("schedstat", "stat")]

    def read(self, now_ns: int, process_ns: int, process_queue_ns: int) -> None:
        cpu, queue = os.pread(self._files[0], READ_BYTES, 0).split()[:2]
        state = os.pread(self._files[1], READ_BYTES, 0).rpartition(b")")[2].split(None, 1)[0].decode()
        self.readings.append(Reading(now_ns, int(cpu), int(queue), state, process_ns, process_queue_ns))

    def close(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):
                os.close(file)


class ThreadState:
    """Of one thread at a time, as Linux tells it just now; 0 and "" where it does not."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._native = 0
        self._files: dict[str, int] = {}

    def queued_ns(self, native: int) -> int:
        """How long the thread has waited for a CPU since its start. What it waits just now is not in it."""
        try:
            return int(self._read(native, "schedstat").split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def letter(self, native: int) -> str:
        """ "R": it runs, or waits for a CPU; "S": it waits for something else."""
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
    """How long all threads of a process have waited for a CPU: read five times a second."""

    def __init__(self, pid: int) -> None:
        self.sum_ns = 0
        self._pid = pid
        self._files: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._next_ns = self._next_list_ns = 0

    def read(self, now_ns: int) -> None:
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + QUEUES_NS
        if now_ns >= self._next_list_ns:
            self._next_list_ns = now_ns + LIST_NS
            self._list()
        for native, file in list(self._files.items()):
            try:
                queued = int(os.pread(file, READ_BYTES, 0).split()[1])
            except (OSError, ValueError, IndexError):
                self._close(native)
                continue
            self.sum_ns += queued - self._last.get(native, queued)
            self._last[native] = queued

    def _list(self) -> None:
        with contextlib.suppress(OSError):
            for folder in Path(f"/proc/{self._pid}/task").iterdir():
                if folder.name not in self._files and len(self._files) < MAX_LISTED:
                    with contextlib.suppress(OSError):
                        self._files[folder.name] = os.open(folder / "schedstat", os.O_RDONLY)

    def _close(self, native: str) -> None:
        os.close(self._files.pop(native))
        self._last.pop(native, None)


class Counters:
    """``watch`` names the threads, ``read`` is called 20 times a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._process_clock = (~pid << 3) | 2  # the clock of another process's CPU time, as clock_getcpuclockid(3) makes it
        self._threads: dict[int, ThreadCounters] = {}
        self._queues = Queues(pid)

    def watch(self, natives: list[int]) -> None:
        for native in set(self._threads) - set(natives):
            self._threads.pop(native).close()
        for native in natives[:MAX_THREADS]:
            if native not in self._threads:
                with contextlib.suppress(OSError):
                    self._threads[native] = ThreadCounters(self._pid, native)

    def read(self, now_ns: int) -> None:
        try:
            process_ns = time.clock_gettime_ns(self._process_clock)
        except OSError:
            process_ns = 0
        if self._threads:
            self._queues.read(now_ns)
        for native, thread in list(self._threads.items()):
            try:
                thread.read(now_ns, process_ns, self._queues.sum_ns)
            except (OSError, ValueError, IndexError):  # it has ended, or this kernel has no such counters
                self._threads.pop(native).close()

    def within(self, native: int, start_ns: int, end_ns: int) -> dict[str, Any]:
        """Seconds of a thread within a span. None where the readings lie too far beside its ends, as on a machine without CPU."""
        readings = list(self._threads[native].readings) if native in self._threads else []
        at = [reading.at_ns for reading in readings]
        first, last = bisect_right(at, start_ns) - 1, bisect_left(at, end_ns)
        beside = start_ns - at[first] + at[last] - end_ns if 0 <= first < last < len(readings) else 0
        if not 0 <= first < last < len(readings) or beside > max(BESIDE_NS, BESIDE * (end_ns - start_ns)):
            return dict.fromkeys(("cpu_s", "queue_s", "process_s", "process_queue_s", "disk_s", "stopped_s"))
        inner = readings[first : last + 1]
        return {
            "cpu_s": _within(inner, "cpu_ns", start_ns, end_ns),
            "queue_s": _within(inner, "queue_ns", start_ns, end_ns),
            "process_s": _within(inner, "process_ns", start_ns, end_ns),
            "process_queue_s": _within(inner, "process_queue_ns", start_ns, end_ns),
            "disk_s": _in_state(inner, "D", start_ns, end_ns),
            "stopped_s": _in_state(inner, "T", start_ns, end_ns),
        }

    def usual(self, native: int, now_ns: int) -> dict[str, float | None]:
        """Of the last minute: CPU seconds per second of a thread and of the process, medians over spans of a second."""
        readings = list(self._threads[native].readings)[-1200:] if native in self._threads else []
        chosen = readings[::20]
        rates = [
            ((b.cpu_ns - a.cpu_ns) / (b.at_ns - a.at_ns), (b.process_ns - a.process_ns) / (b.at_ns - a.at_ns))
            for a, b in zip(chosen, chosen[1:])
        ]
        if not rates:
            return {"cpu": None, "process": None}
        middle = len(rates) // 2
        return {"cpu": sorted(rate[0] for rate in rates)[middle], "process": sorted(rate[1] for rate in rates)[middle]}


def _within(readings: list[Reading], name: str, start_ns: int, end_ns: int) -> float:
    """How much a counter grew within a span. What it grew between two readings is spread evenly over the time between them,
    but for the ends of a span, where the rate of the reading beside it tells what belongs to the time before or after it."""
    grown = 0.0
    for one, other in zip(readings, readings[1:]):
        length = other.at_ns - one.at_ns
        inside = min(other.at_ns, end_ns) - max(one.at_ns, start_ns)
        if length > 0 and inside > 0:
            grown += (getattr(other, name) - getattr(one, name)) * inside / length
    return max(0.0, grown) * NS


def _in_state(readings: list[Reading], state: str, start_ns: int, end_ns: int) -> float:
    seconds = 0.0
    for one, other in zip(readings, readings[1:]):
        if one.state == state or (other.state == state and other is readings[-1]):
            seconds += max(0, min(other.at_ns, end_ns) - max(one.at_ns, start_ns))
    return seconds * NS
