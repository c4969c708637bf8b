"""Measures this machine: a few seconds of full load on all of its cores, and on its first GPU."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tftracer.contract.machine import MeasuredDevice, MeasuredRate, MeasuredRoof
from tftracer.errors import UnsupportedError
from tftracer.roof import with_numpy, with_tensorflow
from tftracer.session.process.facts import processor
from tftracer.storage.spool_folder import recording_processes


def refuse_during_training() -> None:
    """Raise ``UnsupportedError`` if a process that tftracer records runs here: it and the measurement would slow each other."""
    running = recording_processes()
    if running:
        pids = ", ".join(map(str, running))
        who = f"Process {pids} is" if len(running) == 1 else f"Processes {pids} are"
        raise UnsupportedError(
            f"{who} being recorded on this machine, so nothing was measured. Measure when no training runs and no ended one "
            "still serves its page (run --stay)."
        )


def measure(seconds: float, say: Callable[[str], None]) -> MeasuredRoof:
    """Measure this machine. ``seconds``: the time for each rate. ``say``: called with a line of text about each part."""
    before = CpuTimes.now()
    devices = [_processor(seconds, say)]
    tf = with_tensorflow.tensorflow()
    if tf is not None:
        say("Matrix products with TensorFlow...")
        devices[0]["rates"] = _best([*devices[0]["rates"], *with_tensorflow.matrix_rates(tf, "CPU:0", seconds)])
    doubt = doubt_about(others_share(before, CpuTimes.now()))
    gpu = with_tensorflow.gpu(tf, seconds) if tf is not None else None
    return {
        "host": socket.gethostname(),
        "processor": processor(),
        "measured_at": time.time(),
        "doubt": doubt,
        "devices": [*devices, gpu] if gpu else devices,
    }


def _processor(seconds: float, say: Callable[[str], None]) -> MeasuredDevice:
    cores = with_numpy.cores()
    say("Matrix products with NumPy...")
    rates = with_numpy.matrix_rates(seconds)
    say("Copies in memory...")
    title = f"{processor()}, {cores} core{'s' if cores > 1 else ''}"
    return {"kind": "CPU", "title": title, "rates": rates, "bytes_per_s": with_numpy.copy_rate(seconds)}


def _best(rates: list[MeasuredRate]) -> list[MeasuredRate]:
    """Return the fastest rate of each type of number."""
    best = {rate["dtype"]: rate for rate in sorted(rates, key=lambda rate: rate["flops_per_s"])}  # the last one stays
    return sorted(best.values(), key=lambda rate: rate["dtype"])


#: If other processes took a larger share of the processors, the rates are doubtful.
TOLERATED = 0.05
_STAT = Path("/proc/stat")
_IDLE, _IOWAIT, _GUESTS = 3, 4, 8  # positions in the first line of /proc/stat; the user times already include guests


@dataclass(frozen=True)
class CpuTimes:
    """CPU times until now, in seconds, to find other load on the machine; None: not known."""

    busy_s: float | None  # of all processes, including time stolen by a hypervisor
    whole_s: float  # of all processors, busy or idle
    own_s: float  # of this process and its ended children

    @classmethod
    def now(cls) -> CpuTimes:
        times = os.times()
        own_s = times.user + times.system + times.children_user + times.children_system
        try:
            ticks = [int(field) for field in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:]]
            unit = os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return cls(None, 0.0, own_s)
        counted = sum(ticks[:_GUESTS])
        return cls((counted - ticks[_IDLE] - ticks[_IOWAIT]) / unit, counted / unit, own_s)


def others_share(before: CpuTimes, after: CpuTimes) -> float | None:
    """Return the share of the processors' time that other processes took between two moments, 0..1; None: not known."""
    if before.busy_s is None or after.busy_s is None or after.whole_s <= before.whole_s:
        return None
    others_s = after.busy_s - before.busy_s - (after.own_s - before.own_s)
    return min(1.0, max(0.0, others_s / (after.whole_s - before.whole_s)))


def doubt_about(share: float | None) -> str:
    """Return a sentence that says why the rates may be too low; "" if there is no reason."""
    if share is None or share <= TOLERATED:
        return ""
    return f"Other programs used {share:.0%} of the processors while the machine was measured: its rates may be higher."
