"""Reads Linux's counters of a thread, its process and the machine from /proc, before and after a span of time.

On other systems, in containers or with older kernels, a file may be missing: then its values are None. A reading takes about
40 µs. Runs on the watch's thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.slow.watch_results import HostChange

#: Only the first bytes of a file are read.
READ_BYTES = 4096
Parse = Callable[[bytes], Any]


class HostReading(NamedTuple):
    at_ns: int  # perf_counter
    counters: dict[str, int]  # field of HostChange -> its counter in Linux's unit, as far as the system has it


# ------------------------------------------------------------------------------------------------------- parsing the files


def parse_schedstat(text: bytes) -> tuple[int, int]:
    """Return a thread's (ns on a CPU, ns in the run queue)."""
    on_cpu, queued = text.split()[:2]
    return int(on_cpu), int(queued)


def after_name(text: bytes) -> list[bytes]:
    """Return the fields of a ``stat`` file that follow the name; the name may contain spaces and brackets."""
    return text.rpartition(b")")[2].split()


def parse_major_faults(text: bytes) -> int:
    return int(after_name(text)[9])


def parse_process_ticks(text: bytes) -> int:
    """Return the user and system time of all threads, in ticks."""
    fields = after_name(text)
    return int(fields[11]) + int(fields[12])


def parse_cpu(text: bytes) -> tuple[int, int]:
    """Return (busy, steal) ticks of all CPUs, from ``/proc/stat``."""
    fields = [int(field) for field in text.split(b"\n", 1)[0].split()[1:]]
    user, nice, system, _, _, irq, soft_irq, steal = (fields + [0] * 8)[:8]
    return user + nice + system + irq + soft_irq, steal


def parse_pressure(text: bytes) -> int:
    """Return the microseconds in which at least one process waited."""
    line = text.split(b"\n", 1)[0]
    if not line.startswith(b"some"):
        raise ValueError("no pressure line")
    return int(line.rpartition(b"total=")[2])


def parse_io(text: bytes) -> tuple[int, int]:
    """Return (bytes read from disks, bytes written to disks)."""
    fields = dict(line.split(b": ") for line in text.splitlines())
    return int(fields[b"read_bytes"]), int(fields[b"write_bytes"])


# ------------------------------------------------------------------------------------------------------------- reading


class ProcFiles:
    """Files that are read repeatedly: each is opened once, and a file that cannot be read is not tried again."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._open: dict[str, int | None] = {}

    def read(self, path: str) -> bytes | None:
        try:
            if path not in self._open:
                self._open[path] = None
                self._open[path] = os.open(f"{self._root}/{path}", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            opened = self._open[path]
            return None if opened is None else os.pread(opened, READ_BYTES, 0)
        except (OSError, AttributeError):  # the thread has ended, or the system has no pread
            self.forget(path)
            return None

    def forget(self, path: str) -> None:
        opened, self._open[path] = self._open.get(path), None
        if opened is not None:
            with contextlib.suppress(OSError):
                os.close(opened)

    def close(self) -> None:
        for path in list(self._open):
            self.forget(path)
        self._open.clear()

    def close_thread(self, native_id: int) -> None:
        """Close the files of a thread, because another thread may get its native id."""
        for path in [path for path in self._open if path.startswith(f"self/task/{native_id}/")]:
            self.forget(path)
            del self._open[path]


class HostCounters:
    """Reads the counters of a thread and the machine, and computes their changes."""

    def __init__(self, root: str = "/proc") -> None:
        self._files = ProcFiles(root)
        tick = 1 / _ticks_per_second()
        self._units = {  # counter -> its unit in seconds, or 1 for other counters
            **dict.fromkeys(("on_cpu_s", "run_queue_s"), 1e-9),
            **dict.fromkeys(("process_cpu_s", "machine_cpu_s", "steal_s"), tick),
            **dict.fromkeys(("cpu_pressure_s", "io_pressure_s", "memory_pressure_s"), 1e-6),
            **dict.fromkeys(("major_faults", "read_bytes", "written_bytes"), 1),
        }
        self._cpus = os.cpu_count()  # read only here, because reading it takes as long as the rest of ``change``

    def close(self) -> None:
        self._files.close()

    def close_thread(self, native_id: int) -> None:
        self._files.close_thread(native_id)

    def read(self, native_id: int | None) -> HostReading:
        """Read the counters now. ``native_id``: that of the training thread; None: not known."""
        values: dict[str, int] = {}
        thread = f"self/task/{native_id}"
        if native_id:
            self._take(values, f"{thread}/schedstat", parse_schedstat, "on_cpu_s", "run_queue_s")
            self._take(values, f"{thread}/stat", parse_major_faults, "major_faults")
        self._take(values, "self/stat", parse_process_ticks, "process_cpu_s")
        self._take(values, "stat", parse_cpu, "machine_cpu_s", "steal_s")
        self._take(values, "self/io", parse_io, "read_bytes", "written_bytes")
        for name in ("cpu", "io", "memory"):
            self._take(values, f"pressure/{name}", parse_pressure, f"{name}_pressure_s")
        return HostReading(perf_counter_ns(), values)

    def change(self, before: HostReading, after: HostReading) -> HostChange:
        known = before.counters.keys() & after.counters
        changes: dict[str, Any] = {
            name: max(0, after.counters[name] - before.counters[name]) * unit if name in known else None
            for name, unit in self._units.items()
        }
        return HostChange((after.at_ns - before.at_ns) * 1e-9, cpus=self._cpus, **changes)

    def _take(self, values: dict[str, int], path: str, parse: Parse, *names: str) -> None:
        """Read a file and set its counters in ``values``. Counters that cannot be read are left out."""
        text = self._files.read(path)
        with contextlib.suppress(ValueError, IndexError, KeyError):
            parsed = parse(text) if text else ()
            values.update(zip(names, parsed if isinstance(parsed, tuple) else (parsed,)))


def _ticks_per_second() -> int:
    try:
        return os.sysconf("SC_CLK_TCK")
    except (AttributeError, ValueError, OSError):
        return 100
