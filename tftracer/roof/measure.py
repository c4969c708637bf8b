"""Measures this machine: a few seconds of full load on all of its cores, and on its first GPU."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from tftracer.contract.machine import MeasuredDevice, MeasuredRate, MeasuredRoof
from tftracer.errors import UnsupportedError
from tftracer.roof import with_numpy, with_tensorflow
from tftracer.roof.other_work import Clock, doubt_about, others_share
from tftracer.session.process.processor import processor
from tftracer.storage.spool_folder import recording_processes


def refuse_beside_training() -> None:
    """``UnsupportedError`` while a process that tftracer records runs here: measuring would slow it down, and be slowed down."""
    running = recording_processes()
    if running:
        pids = ", ".join(map(str, running))
        who = f"Process {pids} is" if len(running) == 1 else f"Processes {pids} are"
        raise UnsupportedError(
            f"{who} being recorded on this machine, so that nothing was measured. Measure when no training runs, and none stays "
            "for its page (run --stay)."
        )


def measure(seconds: float, say: Callable[[str], None]) -> MeasuredRoof:
    """``seconds``: for each rate."""
    before = Clock.now()
    devices = [_processor(seconds, say)]
    tf = with_tensorflow.tensorflow()
    if tf is not None:
        say("Matrix products with TensorFlow...")
        devices[0]["rates"] = _best([*devices[0]["rates"], *with_tensorflow.matrix_rates(tf, "CPU:0", seconds)])
    doubt = doubt_about(others_share(before, Clock.now()))
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
    """The fastest of each type of number."""
    best: dict[str, MeasuredRate] = {}
    for rate in rates:
        if rate["dtype"] not in best or rate["flops_per_s"] > best[rate["dtype"]]["flops_per_s"]:
            best[rate["dtype"]] = rate
    return sorted(best.values(), key=lambda rate: rate["dtype"])
