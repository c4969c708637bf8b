"""Linux's counters of threads of this process: the time for which a thread had no CPU, and the CPU time of the tracer."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter_ns

from tftracer.slow.watch.host_counters import after_name

#: The names of the tracer's threads begin with this text.
OWN_PREFIX = "tftracer-"
#: The CPU time of the tracer is read this often: each reading takes some 20 µs for each of its threads.
EVERY_NS = 5_000_000_000


def without_cpu_ns(native: int) -> int | None:
    """Return the time since its start for which a thread of this process could have run and had no CPU; None if not known."""
    return _schedstat(native, 1)


def _schedstat(native: int, column: int) -> int | None:
    """Return the time on a CPU (0) or without one (1) of a thread of this process; None if not known."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/self/task/{native}/schedstat").read_bytes().split()[column])
    return None


class WithoutCpu:
    """Adds up the time for which the training's thread could have run and had no CPU.

    Linux may count a thread's sleep as a wait for a CPU (slow/watch/thread_times_in_span.py): a wait that is longer than the time
    between two readings is left out.
    """

    def __init__(self) -> None:
        self.sum_ns: int | None = None  # None: not known
        self._native: int | None = None
        self._last_ns = self._at_ns = 0

    def of_thread(self, native: int | None) -> None:
        """Set the thread, by the kernel's number. None (it has ended, or is not known) changes nothing."""
        if native is not None and native != self._native:
            self._native, self._at_ns = native, perf_counter_ns()
            self.sum_ns = waited = without_cpu_ns(native)
            self._last_ns = waited or 0

    def update(self) -> None:
        """Read the counter, and add the time since the last reading."""
        waited, now_ns = None if self._native is None else without_cpu_ns(self._native), perf_counter_ns()
        if waited is not None and self.sum_ns is not None:
            more = waited - self._last_ns
            self.sum_ns += more if more <= now_ns - self._at_ns else 0
            self._last_ns, self._at_ns = waited, now_ns


def _children_ns(native: int) -> dict[int, int]:
    """Return the CPU time of each process that a thread of this process started, and of the ended processes that these started.

    Raises OSError if Linux does not tell which processes these are.
    """
    result = {}
    for child in map(int, Path(f"/proc/self/task/{native}/children").read_bytes().split()):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = after_name(Path(f"/proc/{child}/stat").read_bytes())
            result[child] = sum(map(int, fields[11:15])) * 10**9 // os.sysconf("SC_CLK_TCK")
    return result


class OwnCpu:
    """Adds up the CPU time of the tracer's threads in this process, and of the processes that they started."""

    def __init__(self) -> None:
        self._next_ns = 0
        self._is_known = False
        self._ns: dict[int, int] = {}  # kernel's number of a thread or process, also of an ended one -> its CPU time

    def sum_s(self, natives: Iterable[int]) -> float | None:
        """Return the seconds of these threads, of those of earlier calls, and of their processes; None if not known."""
        now_ns = perf_counter_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + EVERY_NS
            self._is_known = all(self._add(native) for native in natives)
        return sum(self._ns.values()) * 1e-9 if self._ns and self._is_known else None

    def _add(self, native: int) -> bool:
        """Read a thread's time, and its processes'. Return False if the system does not tell which processes these are."""
        ns = _schedstat(native, 0)
        if ns is None:
            return True  # it has ended
        self._ns[native] = ns
        try:
            self._ns.update(_children_ns(native))
        except OSError:
            return _schedstat(native, 0) is None
        return True
