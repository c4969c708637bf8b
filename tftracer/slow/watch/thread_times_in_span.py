"""Computes what a thread did within a span of time from readings of Linux's counters (thread_counters.py). No side effects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: The readings around a span lie outside it. The gaps between them and the span, together, must not exceed BESIDE_NS or BESIDE
#: times the span's length, whichever is more. Longer gaps are accepted if the thread's CPU time and waits for a CPU that may lie
#: in them are together at most BESIDE times the span's length.
BESIDE_NS, BESIDE = 150_000_000, 0.3
NS = 1e-9
#: Linux's letters for a thread that sleeps, or waits for a disk.
ASLEEP = ("S", "D")


class Reading(NamedTuple):
    at_ns: int
    cpu_ns: int
    queue_ns: int
    state: str  # the letter that Linux shows for the thread's state
    process_ns: int  # CPU time of the whole process
    process_queue_ns: int  # time for which all of its threads together have waited for a CPU
    wants_lock: bool | None = None  # whether the thread waits for Python's lock; None: not known
    kernel_ns: int = 0  # the part of cpu_ns in the kernel
    faults: int = 0  # page faults
    python_ns: int = 0  # CPU time of the script's other Python threads
    waits_for: str = ""  # a key of system_calls.WAITS; "": the thread ran, or it is not known


class Wait(NamedTuple):
    """The time for which a thread waited for a CPU, by one reading."""

    since_ns: int  # time of the previous reading
    at_ns: int  # time of this reading
    waited_ns: int

    def within(self, start_ns: int, end_ns: int) -> float:
        """Return the nanoseconds of the wait within a span.

        Linux counts a wait when it ends: a wait that is longer than the time between the two readings began before both.
        """
        since_ns = min(self.since_ns, self.at_ns - self.waited_ns)
        return max(0, min(self.at_ns, end_ns) - max(since_ns, start_ns)) * self.waited_ns / max(1, self.at_ns - since_ns)


#: The values that ``within`` returns.
SPAN_VALUES = (
    "cpu_s",
    "queue_s",
    "process_s",
    "process_min_s",
    "python_s",
    "disk_s",
    "stopped_s",
    "asleep_s",
    "lock_wait_s",
    "kernel_s",
    "faults",
)
#: Those of them that may be added up over spans of one thread.
SUMMABLE_VALUES = ("cpu_s", "kernel_s", "queue_s", "disk_s", "faults")
#: What ``Counters.within`` returns.
NAMES = (*SPAN_VALUES, "process_queue_s", "process_doubtful_queue_s")


class Times:
    """The times of readings, for ``bisect``. Making a list of them would take as long as the rest of an answer."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def __len__(self) -> int:
        return len(self._readings)

    def __getitem__(self, index: int) -> int:
        return self._readings[index].at_ns


def within(readings: Sequence[Reading], start_ns: int, end_ns: int) -> dict[str, float | None]:
    """Return the values within a span, mostly in seconds; None if the readings do not separate them from the time around the
    span."""
    at = Times(readings)
    first, last = bisect_right(at, start_ns) - 1, bisect_left(at, end_ns)
    if not 0 <= first < last < len(readings):
        return dict.fromkeys(SPAN_VALUES)
    inner = [readings[index] for index in range(first, last + 1)]
    cpu, process = (_grown(inner, name, start_ns, end_ns) for name in ("cpu_ns", "process_ns"))
    length_ns, beside_ns = end_ns - start_ns, start_ns - at[first] + at[last] - end_ns
    if beside_ns > max(BESIDE_NS, BESIDE * length_ns) and _did_beside(inner) > BESIDE * length_ns:
        states = {"stopped_s": _stopped(inner, start_ns, end_ns), "asleep_s": _asleep(inner, start_ns, end_ns)}
        return {**dict.fromkeys(SPAN_VALUES), **states}
    return {
        "cpu_s": cpu.seconds,
        "queue_s": max(0.0, min(_queued(inner, start_ns, end_ns), length_ns * NS - cpu.seconds)),
        "process_s": process.seconds,
        "process_min_s": process.min_s,
        "python_s": _grown(inner, "python_ns", start_ns, end_ns).seconds,
        "disk_s": _in_state(inner, "D", start_ns, end_ns),
        "lock_wait_s": _lock_wait(inner, start_ns, end_ns),
        "stopped_s": _stopped(inner, start_ns, end_ns),
        "asleep_s": _asleep(inner, start_ns, end_ns),
        "kernel_s": _grown(inner, "kernel_ns", start_ns, end_ns).seconds,
        "faults": _grown(inner, "faults", start_ns, end_ns).seconds / NS,
    }


def added(readings: Sequence[Reading], spans: Sequence[tuple[int, int]]) -> dict[str, float] | None:
    """Return the length of all spans and the sums of the ``SUMMABLE_VALUES`` in them; None if there is no span, or a value is not
    known."""
    each = [within(readings, start, end) for start, end in spans]
    if not each or any(values["cpu_s"] is None for values in each):
        return None
    sums = {name: sum(values[name] or 0.0 for values in each) for name in SUMMABLE_VALUES}
    return {"length_s": sum(end - start for start, end in spans) * NS, **sums}


class _Grown(NamedTuple):
    seconds: float
    min_s: float  # surely within the span


def _grown(readings: list[Reading], name: str, start_ns: int, end_ns: int) -> _Grown:
    """Return the growth of a counter of CPU time within a span, assuming that it grows evenly between two readings."""
    seconds = minimum = 0.0
    for before, after in zip(readings, readings[1:]):
        grown, length = getattr(after, name) - getattr(before, name), after.at_ns - before.at_ns
        inside = min(after.at_ns, end_ns) - max(before.at_ns, start_ns)
        if length > 0 and inside > 0:
            seconds += grown * inside / length
            minimum += grown if inside == length else 0
    return _Grown(seconds * NS, minimum * NS)


def _waited(before: Reading, after: Reading) -> int:
    """Return the nanoseconds for which the thread waited for a CPU, as counted between two readings.

    A thread that slept at the first reading cannot have waited for longer than the time between the readings. But from Linux 6.12
    on, when Linux moves a sleeping thread to another CPU, it counts the sleep as a wait. Then the real wait is unknown, but
    short.
    """
    waited = after.queue_ns - before.queue_ns
    return 0 if before.state in ASLEEP and waited > after.at_ns - before.at_ns else waited


def _queued(readings: list[Reading], start_ns: int, end_ns: int) -> float:
    waits = (Wait(before.at_ns, after.at_ns, _waited(before, after)) for before, after in zip(readings, readings[1:]))
    return sum(wait.within(start_ns, end_ns) for wait in waits) * NS


def _did_beside(readings: list[Reading]) -> int:
    """Return an upper bound of the CPU time and waits for a CPU around the beginning and the end of a span, in nanoseconds."""
    ends = [(readings[0], readings[1])] + ([(readings[-2], readings[-1])] if len(readings) > 2 else [])
    return sum(after.cpu_ns - before.cpu_ns + min(_waited(before, after), after.at_ns - before.at_ns) for before, after in ends)


def _in_state(readings: list[Reading], state: str, start_ns: int, end_ns: int) -> float:
    """Return the seconds in a state. A reading represents the time until the next one."""
    return _seconds((pair for pair in zip(readings, readings[1:]) if pair[0].state == state), start_ns, end_ns)


def _lock_wait(readings: list[Reading], start_ns: int, end_ns: int) -> float | None:
    """Return the seconds of waiting for Python's lock; None if not known. A reading stands for the time nearest to it."""
    if any(reading.wants_lock is None for reading in readings):
        return None
    middles = [(before.at_ns + after.at_ns) // 2 for before, after in zip(readings, readings[1:])]
    spans = zip(readings, [readings[0].at_ns, *middles], [*middles, readings[-1].at_ns])
    wanted = (min(until, end_ns) - max(since, start_ns) for reading, since, until in spans if reading.wants_lock)
    return sum(max(0, nanoseconds) for nanoseconds in wanted) * NS


def _stopped(readings: list[Reading], start_ns: int, end_ns: int) -> float:
    """Return the minimum seconds for which the process was stopped: between two readings that show this state."""
    return _seconds((pair for pair in zip(readings, readings[1:]) if pair[0].state == pair[1].state == "T"), start_ns, end_ns)


def _asleep(readings: list[Reading], start_ns: int, end_ns: int) -> float:
    """Return the minimum seconds for which the thread slept: between two readings that show this state and the same CPU time."""
    pairs = zip(readings, readings[1:])
    sleeps = (pair for pair in pairs if pair[0].state in ASLEEP and pair[1].state in ASLEEP and pair[0].cpu_ns == pair[1].cpu_ns)
    return _seconds(sleeps, start_ns, end_ns)


def _seconds(pairs: Iterable[tuple[Reading, Reading]], start_ns: int, end_ns: int) -> float:
    return sum(max(0, min(after.at_ns, end_ns) - max(before.at_ns, start_ns)) for before, after in pairs) * NS
