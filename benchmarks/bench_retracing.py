"""Memory and time of 10,000 functions that are traced, called and thrown away, with the tracer, which collects the graph of each,
and without it.

    python benchmarks/bench_retracing.py [--functions N]

TensorFlow keeps something of each function that it ever traced; the tracer is to keep nothing. Ten readings of the resident
memory each, in MB; the processor time of tracing and calling a function once; the graphs that the tracer holds at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from time import process_time
from typing import NamedTuple

from environments import ROOT, environment

READINGS = 10


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


class Readings(NamedTuple):
    resident_mb: list[float]
    cpu_ms: float  # of one function: traced and called once
    graphs: int  # that the tracer holds at the end


def measure(functions: int, traced: bool) -> Readings:
    import gc

    import tensorflow as tf

    server = None
    if traced:
        import tftracer

        server = tftracer.hook_inject(start_web_server_on_start=False)
    resident, start = [], process_time()
    for number in range(functions):
        tf.function(lambda x: x * 2.0 + 1.0)(tf.constant(1.0))
        if (number + 1) % (functions // READINGS) == 0:
            gc.collect()
            resident.append(resident_mb())
    cpu_ms = 1e3 * (process_time() - start) / functions
    return Readings(resident, cpu_ms, server.functions.table_sizes()["partition graphs"] if server else 0)


def in_environment(functions: int, traced: bool) -> Readings:
    command = [".envs/tf221/bin/python", __file__, "--functions", str(functions), "--measure", "traced" if traced else "plain"]
    settings = {"TF_CPP_MIN_LOG_LEVEL": "3", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
    variables = {**environment(ours=True), **settings}
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True, text=True)
    return Readings(*json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=10_000)
    parser.add_argument("--measure", choices=["traced", "plain"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.functions, options.measure == "traced")))
        return
    for traced in (False, True):
        readings = in_environment(options.functions, traced)
        resident = readings.resident_mb
        grown = 1024 * (resident[-1] - resident[1]) / (options.functions * (READINGS - 2) / READINGS)
        shown = " ".join(f"{reading:.0f}" for reading in resident)
        who = "with the tracer" if traced else "without"
        print(f"{who:16} {shown} MB; {grown:.1f} KB and {readings.cpu_ms:.1f} ms a function", flush=True)
        print(f"{'':16} {readings.graphs} graphs held at the end", flush=True)


if __name__ == "__main__":
    main()
