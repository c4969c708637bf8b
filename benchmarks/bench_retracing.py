"""Resident memory over 10,000 functions that are traced, called and thrown away, with the tracer and without it.

    python benchmarks/bench_retracing.py [--functions N]

TensorFlow keeps something of each function that it ever traced; the tracer is to keep nothing. Ten readings each, in MB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from environments import ROOT, environment

READINGS = 10


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def measure(functions: int, traced: bool) -> list[float]:
    import gc

    import tensorflow as tf

    if traced:
        import tftracer

        tftracer.hook_inject(start_web_server_on_start=False)
    resident = []
    for number in range(functions):
        tf.function(lambda x: x * 2.0 + 1.0)(tf.constant(1.0))
        if (number + 1) % (functions // READINGS) == 0:
            gc.collect()
            resident.append(resident_mb())
    return resident


def in_environment(functions: int, traced: bool) -> list[float]:
    command = [".envs/tf221/bin/python", __file__, "--functions", str(functions), "--measure", "traced" if traced else "plain"]
    settings = {"TF_CPP_MIN_LOG_LEVEL": "3", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
    variables = {**environment(ours=True), **settings}
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


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
        grown = 1024 * (readings[-1] - readings[1]) / (options.functions * (READINGS - 2) / READINGS)
        shown = " ".join(f"{reading:.0f}" for reading in readings)
        print(f"{'with the tracer' if traced else 'without':16} {shown} MB; {grown:.1f} KB a function", flush=True)


if __name__ == "__main__":
    sys.exit(main())
