"""What exporting a step takes: visualize() and Chrome JSON, beside TensorFlow's own Timeline and the original's visualize().

    python benchmarks/bench_exports.py [--rounds N]

Starts itself in the environments of 2.15 (TensorFlow's Timeline, ours) and of the original; they take turns round by round, so
that all see the same machine, whose speed may change within a minute. Each figure is the best of the rounds, and of the first
one, from a RunMetadata message in memory to the finished text; ours begins with serializing it. CPU is of all threads of the
process.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from environments import ROOT, environment

SMALL = ROOT / "tests" / "data" / "dense500_tf2.15_cpu.pb"
COPIES = 12  # of its 8,009 nodes: 96,108


def large(path: Path) -> Path:
    """The small step's nodes twelve times, one copy after the other in time, with names of their own."""
    from tftracer.trace.decode.descriptors import message_class

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


class Once(NamedTuple):
    """Seconds but the last."""

    wall: float
    cpu: float
    characters: int


class Measured(NamedTuple):
    """Seconds but the last."""

    best: float
    cpu: float
    first: float
    characters: int

    @classmethod
    def of(cls, rounds: list[Once]) -> Measured:
        return cls(min(r.wall for r in rounds), min(r.cpu for r in rounds), rounds[0].wall, rounds[0].characters)


def once(call: Callable[[], str]) -> Once:
    started, used = perf_counter(), process_time()
    size = len(call())
    return Once(perf_counter() - started, process_time() - used, size)


def calls(which: str, path: Path) -> dict[str, Callable[[], str]]:
    if which == "original":
        import original  # noqa: F401 (lets the next imports work)

    import tensorflow as tf
    from tensorflow.python.client import timeline as own

    from tftracer import Timeline

    metadata = (tf.RunMetadata if which == "original" else tf.compat.v1.RunMetadata).FromString(path.read_bytes())
    if which == "original":
        return {"original, visualize": lambda: Timeline(run_metadata=metadata).visualize()}
    return {
        "TensorFlow, Chrome JSON": lambda: own.Timeline(metadata.step_stats).generate_chrome_trace_format(),
        "ours, Chrome JSON": lambda: Timeline(metadata).to_chrome_trace(),
        "ours, visualize": lambda: Timeline(metadata).visualize(),
    }


def serve(which: str, path: Path) -> None:
    """One round for each line that comes."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whoever prints does not answer
    functions = calls(which, path)
    print(json.dumps(list(functions)), file=answers, flush=True)
    for name in sys.stdin:
        print(json.dumps(once(functions[name.strip()])), file=answers, flush=True)


@contextlib.contextmanager
def started(which: str, path: Path) -> Iterator[dict[str, Callable[[], Once]]]:
    """What the process measures, each for one round."""
    python = ROOT / ".envs" / ("original" if which == "original" else "tf215") / "bin" / "python"
    command = [str(python), __file__, "--measure", which, "--path", str(path)]
    pipe = subprocess.PIPE
    # Elsewhere, or the working tree would be imported in the place of the original.
    with (
        tempfile.TemporaryDirectory() as folder,
        (Path(folder) / "errors").open("w+") as errors,
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, cwd=folder, env=environment(ours=which == "ours")
        ) as process,
    ):

        def answer() -> list[Any]:
            line = process.stdout.readline()
            if not line:
                errors.seek(0)
                sys.exit(errors.read()[-3000:])
            return json.loads(line)

        def round_of(name: str) -> Once:
            print(name, file=process.stdin, flush=True)
            return Once(*answer())

        names = answer()
        yield {name: functools.partial(round_of, name) for name in names}


def measured(path: Path, rounds: int) -> dict[str, Measured]:
    rounds_of: dict[str, list[Once]] = {}
    with started("ours", path) as ours, started("original", path) as original:
        for number in range(rounds):
            for name, measure in {**ours, **original}.items():
                if number == 0 or path == SMALL or name not in original:  # of the large step it takes long enough
                    rounds_of.setdefault(name, []).append(measure())
    return {name: Measured.of(took) for name, took in rounds_of.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=("ours", "original"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        serve(options.measure, options.path)
        return
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        for path in (SMALL, large(Path(folder) / "large.pb")):
            nodes = 8009 if path == SMALL else 8009 * COPIES
            results = measured(path, options.rounds)
            print(f"{nodes:,} nodes")
            print(f"  {'':<26} {'best':>9}    {'CPU':>9}    {'first':>9}")
            for name, (wall, cpu, first, size) in results.items():
                times = "".join(f"{seconds * 1000:>9.1f} ms " for seconds in (wall, cpu, first))
                print(f"  {name:<26} {times} {size / 1e6:>7.2f} MB")
            for ours, theirs in (("ours, Chrome JSON", "TensorFlow, Chrome JSON"), ("ours, visualize", "original, visualize")):
                shares = [f"1/{results[theirs][i] / results[ours][i]:.1f}" for i in range(3)]
                print(f"  {ours} / {theirs}: {shares[0]} (CPU {shares[1]}, first call {shares[2]})")


if __name__ == "__main__":
    main()
