"""What exporting a step takes: visualize() and Chrome JSON, beside TensorFlow's own Timeline and the original's visualize().

    python benchmarks/bench_exports.py [--rounds N]

Starts itself in the environments of 2.15 (TensorFlow's Timeline, ours) and of the original, in turn, so that both see the
same machine. Each figure is the best of the rounds, and of the first one, from a RunMetadata message in memory to the finished
text; ours begins with serializing it. CPU is of all threads of the process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from environments import ROOT, environment

SMALL = ROOT / "tests" / "data" / "dense500_tf2.15_cpu.pb"
COPIES = 12  # of its 8,009 nodes: 96,108


def large(path: Path) -> Path:
    """The small step's nodes twelve times, one copy after the other in time, with names of their own."""
    from tftracer.trace.descriptors import message_class

    step = message_class("RunMetadata").FromString(SMALL.read_bytes())
    (device,) = step.step_stats.dev_stats
    first = device.node_stats[0].all_start_micros
    length = max(n.all_start_micros + n.all_end_rel_micros for n in device.node_stats) - first + 10
    nodes = list(device.node_stats)
    for copy in range(1, COPIES):
        for node in nodes:
            added = device.node_stats.add()
            added.CopyFrom(node)
            head, _, rest = node.timeline_label.partition("(")
            inputs = ", ".join(f"c{copy}/{text}" for text in rest[:-1].split(", ")) if rest[:-1] else ""
            added.node_name, added.timeline_label = f"c{copy}/{node.node_name}", f"c{copy}/{head}({inputs})"
            added.all_start_micros += copy * length
            added.all_start_nanos += copy * length * 1000
            added.scheduled_micros = added.scheduled_nanos = 0
    del step.partition_graphs[:]  # TensorFlow's Timeline reads none either
    path.write_bytes(step.SerializeToString())
    return path


class Measured(NamedTuple):
    """Seconds but the last."""

    best: float
    cpu: float
    first: float
    characters: int


def best(rounds: int, call) -> Measured:
    walls, cpus, size = [], [], 0
    for _ in range(rounds):
        started, used = perf_counter(), process_time()
        size = len(call())
        walls.append(perf_counter() - started)
        cpus.append(process_time() - used)
    return Measured(min(walls), min(cpus), walls[0], size)


def measure(which: str, path: Path, rounds: int) -> dict[str, Measured]:
    if which == "original":
        import original  # noqa: F401 (lets the next imports work)

    import tensorflow as tf
    from tensorflow.python.client import timeline as own

    from tftracer import Timeline

    metadata = (tf.RunMetadata if which == "original" else tf.compat.v1.RunMetadata).FromString(path.read_bytes())
    if which == "original":
        return {"original, visualize": best(rounds, lambda: Timeline(run_metadata=metadata).visualize())}
    return {
        "TensorFlow, Chrome JSON": best(rounds, lambda: own.Timeline(metadata.step_stats).generate_chrome_trace_format()),
        "ours, Chrome JSON": best(rounds, lambda: Timeline(metadata).to_chrome_trace()),
        "ours, visualize": best(rounds, lambda: Timeline(metadata).visualize()),
    }


def started(which: str, path: Path, rounds: int) -> dict[str, Measured]:
    python = ROOT / ".envs" / ("original" if which == "original" else "tf215") / "bin" / "python"
    command = [str(python), __file__, "--measure", which, "--path", str(path), "--rounds", str(rounds)]
    with tempfile.TemporaryDirectory() as elsewhere:  # or the working tree would be imported in the place of the original
        found = environment(ours=which == "ours")
        done = subprocess.run(command, capture_output=True, text=True, cwd=elsewhere, check=False, env=found)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return {name: Measured(*measured) for name, measured in json.loads(done.stdout.splitlines()[-1]).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=("ours", "original"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.path, options.rounds)))
        return
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        for path in (SMALL, large(Path(folder) / "large.pb")):
            nodes = 8009 if path == SMALL else 8009 * COPIES
            found = {**started("ours", path, options.rounds), **started("original", path, options.rounds if path == SMALL else 1)}
            print(f"{nodes:,} nodes")
            print(f"  {'':<26} {'best':>9}    {'CPU':>9}    {'first':>9}")
            for name, (wall, cpu, first, size) in found.items():
                times = "".join(f"{seconds * 1000:>9.1f} ms " for seconds in (wall, cpu, first))
                print(f"  {name:<26} {times} {size / 1e6:>7.2f} MB")
            for ours, theirs in (("ours, Chrome JSON", "TensorFlow, Chrome JSON"), ("ours, visualize", "original, visualize")):
                shares = [f"1/{found[theirs][i] / found[ours][i]:.1f}" for i in range(3)]
                print(f"  {ours} / {theirs}: {shares[0]} (CPU {shares[1]}, first call {shares[2]})")


if __name__ == "__main__":
    main()
