"""Measures the CPU time of a traced step and of its busiest thread, and how long threads were ready to run but had no CPU.

``job_cpu_s`` is the CPU time of this process and of the processes that it started. Other ranks are left out, although the name
(part of the file format) suggests that they are included. ``job_cpu_s`` includes the tracer's own work, for example a child
process that still stores the previous trace. If one of these processes ended during the step, ``job_cpu_s`` is unknown.

The counters are read on the training thread, just before and just after a traced step; other steps cost nothing. The threads'
times come from Linux (``/proc/self/task/ID/schedstat``, some 10 µs a thread). If reading them fails or takes too long, they are
unknown.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tftracer.ledger.thread_cpu import OWN_PREFIX
from tftracer.slow.watch.host_counters import parse_schedstat
from tftracer.trace.model import CpuUse

#: If reading the threads' counters takes longer than this, they stay unknown: a process may have thousands of threads, and other
#: threads may take the GIL while this thread reads.
MAX_NS = 30_000_000


class CpuReading(NamedTuple):
    """Counters. Only the difference of two readings has a meaning."""

    at_ns: int  # perf_counter
    cpu_ns: int  # of all threads of the process
    threads: dict[str, tuple[int, int]] | None  # thread -> (ns on a CPU, ns in the run queue); None: not known
    children: dict[str, int] | None = None  # process that this one started -> ns on a CPU; None: not known


def read_before(proc: str = "/proc", max_ns: int = MAX_NS) -> CpuReading:
    """Read the counters before a step. The clocks are read last, so that they do not measure the reading itself."""
    threads, children = _read_tasks(proc, max_ns)
    return CpuReading(time.perf_counter_ns(), time.process_time_ns(), threads, children)


def read_after(proc: str = "/proc", max_ns: int = MAX_NS) -> CpuReading:
    at_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    return CpuReading(at_ns, cpu_ns, *_read_tasks(proc, max_ns))


def cpu_use(before: CpuReading, after: CpuReading) -> CpuUse:
    use = CpuUse(wall_s=(after.at_ns - before.at_ns) * 1e-9, cpu_s=(after.cpu_ns - before.cpu_ns) * 1e-9)
    cpus = usable_cpus()
    if cpus is not None:
        use["cpus"] = cpus
    if before.threads is not None and after.threads is not None:
        own_threads = {str(thread.native_id) for thread in threading.enumerate() if thread.name.startswith(OWN_PREFIX)}
        #: Thread -> (counters after the step, counters before the step).
        counters = {name: (now, before.threads.get(name, (0, 0))) for name, now in after.threads.items()}
        script_counters = [pair for name, pair in counters.items() if name not in own_threads]
        busiest_s = use["busiest_thread_s"] = max((now[0] - then[0] for now, then in script_counters), default=0) * 1e-9
        own_s = sum(now[0] - then[0] for name, (now, then) in counters.items() if name in own_threads) * 1e-9
        # The threads' counters cover slightly more time than the process's counter, so own_s may be too large. So cpu_s is at
        # least the time of the busiest thread, but never above the process's counter.
        use["cpu_s"] = max(use["cpu_s"] - own_s, min(use["cpu_s"], busiest_s))
        # Linux may count a sleep as a wait (slow/watch/thread_times_in_span.py): waits longer than the step are left out.
        waited = (max(0, now[1] - then[1]) for now, then in script_counters)
        use["run_queue_s"] = sum(ns for ns in waited if ns <= after.at_ns - before.at_ns) * 1e-9
    if before.children is not None and after.children is not None and before.children.keys() <= after.children.keys():
        children_ns = sum(now - before.children.get(name, 0) for name, now in after.children.items())
        use["job_cpu_s"] = (after.cpu_ns - before.cpu_ns + children_ns) * 1e-9
    return use


def _read_tasks(proc: str, max_ns: int) -> tuple[dict[str, tuple[int, int]] | None, dict[str, int] | None]:
    """Return (threads, children) of a reading."""
    until = time.perf_counter_ns() + max_ns
    threads = _thread_times(f"{proc}/self", until)
    return threads, None if threads is None else _child_times(proc, list(threads), until)


def _thread_times(process: str, until: int) -> dict[str, tuple[int, int]] | None:
    """Return the times of a process's threads; None if unknown. Threads that end meanwhile are left out."""
    threads = dict[str, tuple[int, int]]()
    try:
        for folder in Path(f"{process}/task").iterdir():
            if time.perf_counter_ns() > until:
                return None
            with contextlib.suppress(OSError, ValueError, IndexError):
                threads[folder.name] = parse_schedstat(_read(f"{folder}/schedstat"))
    except OSError:
        return None
    return threads or None


def _child_times(proc: str, threads: list[str], until: int) -> dict[str, int] | None:
    """Return the CPU time of each child process; None if Linux does not list them. Processes that end meanwhile are left out."""
    children: dict[str, int] = {}
    try:
        for name in {name for thread in threads for name in _child_ids(f"{proc}/self/task/{thread}")}:
            thread_times = _thread_times(f"{proc}/{name}", until)
            if thread_times is None and time.perf_counter_ns() > until:
                return None
            children[name] = sum(ran for ran, _ in (thread_times or {}).values())
    except OSError:
        return None
    return children


def _child_ids(thread: str) -> list[str]:
    try:
        return _read(f"{thread}/children").decode().split()
    except FileNotFoundError:
        if Path(thread).exists():
            raise
        return []  # the thread has ended


def _read(path: str) -> bytes:
    """Read a small file with three system calls; ``Path.read_bytes`` makes seven."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def usable_cpus(cgroup: str = "/sys/fs/cgroup") -> float | None:
    """Return how many CPUs this process may use: the number in its CPU affinity, or the container's limit if that is lower.

    Return None if neither is known.
    """
    try:
        allowed: float | None = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        allowed = os.cpu_count()
    limit = _cgroup_cpus(cgroup)
    return limit if allowed is None or (limit is not None and limit < allowed) else allowed


def _cgroup_cpus(cgroup: str) -> float | None:
    """Return a container's quota of CPU time, in CPUs (cgroup v2, then v1); None for no limit."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = Path(f"{cgroup}/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota_us = int(Path(f"{cgroup}/cpu/cpu.cfs_quota_us").read_text())
        return quota_us / int(Path(f"{cgroup}/cpu/cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    return None
