"""Each training thread reads its CPU counters and its process's CPU time when a step begins or ends, at most every 25 ms.

Linux counts for how long a thread ran on a CPU, and for how long it was ready to run but had no CPU. The watch's own process
(outside_process.py) reads the same counters, but on a busy machine it is late itself. The thread's own readings are at the end
of each slow step, and at most 25 ms before its beginning. A reading takes 2 to 8 µs.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left
from collections import deque
from dataclasses import replace
from threading import get_native_id
from time import process_time_ns
from typing import NamedTuple

from tftracer.slow.cause.observed import Span
from tftracer.slow.watch.slow_turn import SlowTurn

#: Minimum time between two readings of a thread: EVERY_NS, or MIN_NS if the second has another reason, such as the end of a
#: checkpoint.
EVERY_NS, MIN_NS = 25_000_000, 1_000_000
#: A time in the far future: the thread takes no more readings.
NEVER_NS = 1 << 62
#: Maximum number of readings of a thread that are kept: at least those of the last minute.
MAX_READINGS = 2500
MAX_THREADS = 8
READ_BYTES = 128
#: The readings around a span may lie outside it: the sum of both gaps must not exceed BESIDE_NS or BESIDE times the span's
#: length, whichever is more. What the thread did in the gaps is estimated from its last USUAL readings before the span.
BESIDE_NS, BESIDE, USUAL = 65_000_000, 0.35, 40
#: In the gaps, the process may have used up to this many times its estimated CPU time.
DOUBTFUL = 3.0
#: In a shorter span, the wait for Python's lock comes from only one or two readings of the thread's state, so it is limited.
FEW_READINGS_S = 0.15
NS = 1e-9


class CpuTimes(NamedTuple):
    """What a thread did within a span, in seconds."""

    ran_s: float  # on a CPU
    queued_s: float  # ready to run, but without a CPU
    process_s: float  # CPU time of all threads of the process
    process_min_s: float  # the part of process_s that was surely used within the span


class ThreadClocks:
    """``read`` is called on the training threads, the other methods on the watch's thread."""

    def __init__(self) -> None:
        #: Thread -> earliest time of its next reading. A training thread compares the current time with it, then calls ``read``.
        self.next_ns: dict[int, int] = {}
        self._files: dict[int, int] = {}
        #: Thread -> (time, content of its schedstat file, CPU time of the process in nanoseconds).
        self._readings: dict[int, deque[tuple[int, bytes, int]]] = {}
        self._is_on = False

    def start(self) -> None:
        self._is_on = True
        self.next_ns.clear()

    def stop(self) -> None:
        """Take no more readings, and close the files. Also called in a forked child, whose threads have other files."""
        self._is_on = False
        for thread in list(self._files):
            self.forget(thread)

    def forget(self, thread: int) -> None:
        """Forget a thread that has ended."""
        self._readings.pop(thread, None)
        file = self._files.pop(thread, None)
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)
        self.next_ns.pop(thread, None)

    def read_if_due(self, thread: int, now_ns: int) -> None:
        """Read the counters of the calling thread if its last reading is old. Hot paths compare the times themselves."""
        if now_ns >= self.next_ns.get(thread, 0):
            self.read(thread, now_ns)

    def read(self, thread: int, now_ns: int) -> None:
        """Read the counters of the calling thread, unless it has just done so. It never raises an exception of its own."""
        if now_ns < self.next_ns.get(thread, 0) - EVERY_NS + MIN_NS:
            return
        self.next_ns[thread] = now_ns + EVERY_NS
        try:
            self._readings[thread].append((now_ns, os.pread(self._files[thread], READ_BYTES, 0), process_time_ns()))
        except Exception:  # not opened yet, or the file belongs to an ended thread that had the same ident
            self._open(thread, now_ns)

    def _open(self, thread: int, now_ns: int) -> None:
        self.forget(thread)
        self.next_ns[thread] = NEVER_NS
        if not self._is_on or len(self._files) >= MAX_THREADS:
            return
        with contextlib.suppress(OSError, AttributeError):  # the system has no such file, or no pread
            self._files[thread] = os.open(f"/proc/self/task/{get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            first = (now_ns, os.pread(self._files[thread], READ_BYTES, 0), process_time_ns())
            self._readings[thread] = deque([first], MAX_READINGS)
            self.next_ns[thread] = now_ns + EVERY_NS

    def within(self, thread: int, start_ns: int, end_ns: int) -> CpuTimes | None:
        """Return what a thread did within a span; None if its readings do not separate the span from the time around it."""
        readings = list(self._readings.get(thread, ()))
        first, last = bisect_left(readings, (start_ns + 1,)) - 1, bisect_left(readings, (end_ns,))
        if not 0 <= first < last < len(readings):
            return None
        length_ns, beside_ns = end_ns - start_ns, start_ns - readings[first][0] + readings[last][0] - end_ns
        if beside_ns > max(BESIDE_NS, BESIDE * length_ns):
            return None
        try:
            usual, before, after = (_counters(*readings[index]) for index in (max(0, first - USUAL), first, last))
        except (ValueError, IndexError):  # this kernel does not count them
            return None
        rate_readings = (usual, before) if usual[0] < before[0] else (before, after)
        beside_counters = [_rate(*rate_readings, i) * beside_ns for i in (1, 2, 3)]
        grown = [after[i] - before[i] for i in (1, 2, 3)]
        ran_ns, queued_ns, process_ns = (max(0.0, each - beside) for each, beside in zip(grown, beside_counters))
        ran_ns = min(ran_ns, length_ns)
        process_min_ns = max(ran_ns, grown[2] - DOUBTFUL * beside_counters[2])
        return CpuTimes(ran_ns * NS, min(queued_ns, length_ns - ran_ns) * NS, process_ns * NS, process_min_ns * NS)

    def sum_within(self, thread: int, spans: list[tuple[int, int]]) -> CpuTimes | None:
        """Return what a thread did in all of these spans together; None if there is no span, or one is not known."""
        each = [self.within(thread, start, end) for start, end in spans]
        known = [times for times in each if times is not None]
        if not known or len(known) < len(each):
            return None
        return CpuTimes(*map(sum, zip(*known)))


def with_own_times(between: Span, inside: Span, turn: SlowTurn, clocks: ThreadClocks) -> tuple[Span, Span]:
    """Replace the times of both parts of a turn by those that its thread measured itself, as far as they are known."""
    known = clocks.sum_within(turn.thread, turn.clocked)
    if known is not None and between.clocked is not None:
        between = replace(between, clocked=_with_times(between.clocked, known))
    elif known is not None:
        length_s = sum(end - start for start, end in turn.clocked) * NS
        clocked = Span(length_s, cpu_s=known.ran_s, queue_s=known.queued_s)
        between = replace(between, clocked=clocked, kernel_s=None, faults=None, disk_s=None)
    before, step = (clocks.within(turn.thread, start, end) for start, end in turn.spans)
    return _with_times(between, before), _with_times(inside, step)


def _with_times(span: Span, times: CpuTimes | None) -> Span:
    if times is None:
        return span
    # When Linux moves a sleeping thread to another CPU, it may count the sleep as a wait for a CPU (from 6.12 on).
    queued_s = max(0.0, min(times.queued_s, span.length_s - times.ran_s - (span.asleep_s or 0.0)))
    kernel_s = None if span.kernel_s is None else min(span.kernel_s, times.ran_s)
    lock_wait_s = span.lock_wait_s
    if lock_wait_s is not None:  # a thread that waits for the lock often wakes, and then may have no CPU, but it does not run
        not_ran_s = span.length_s - times.ran_s - (queued_s if span.length_s < FEW_READINGS_S else 0.0)
        lock_wait_s = min(lock_wait_s, max(0.0, not_ran_s))
    return replace(
        span,
        cpu_s=times.ran_s,
        queue_s=queued_s,
        kernel_s=kernel_s,
        lock_wait_s=lock_wait_s,
        process_s=times.process_s,
        process_min_s=times.process_min_s,
    )


def _counters(at_ns: int, content: bytes, process_ns: int) -> tuple[int, int, int, int]:
    """Return the time of a reading, the thread's nanoseconds on a CPU and in the queue for one, and the process's CPU time."""
    ran, queued = map(int, content.split()[:2])
    return at_ns, ran, queued, process_ns


def _rate(before: tuple[int, int, int, int], after: tuple[int, int, int, int], index: int) -> float:
    return (after[index] - before[index]) / max(1, after[0] - before[0])
