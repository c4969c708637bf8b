"""The original's half of bench_page.py; runs in the environment that setup.sh makes.

page.py repeat IN.pb NODES OUT.pb   the trace's nodes, again and again one after the other, until there are so many
page.py visualize IN.pb OUT.html    the original's page of a trace; prints the seconds that it took
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import original  # noqa: F401  (first: it lets the original import)
import tensorflow

from tftracer import Timeline

RunMetadata: Any = tensorflow.RunMetadata  # original.py puts tf.compat.v1 in tensorflow's place


def repeat(source: str, nodes: int, out: str) -> None:
    """One device's nodes, each repetition later by the whole's length."""
    metadata = RunMetadata.FromString(Path(source).read_bytes())
    [device] = metadata.step_stats.dev_stats
    first = list(device.node_stats)
    begin = min(node.all_start_micros for node in first)
    length = max(node.all_start_micros + node.all_end_rel_micros for node in first) - begin
    del device.node_stats[:]
    for i in range(nodes):
        node = device.node_stats.add()
        node.CopyFrom(first[i % len(first)])
        later = i // len(first) * length
        node.all_start_micros += later
        node.all_start_nanos += later * 1000
        node.scheduled_micros += later
        node.scheduled_nanos += later * 1000
    Path(out).write_bytes(metadata.SerializeToString())


def visualize(source: str, out: str) -> None:
    metadata = RunMetadata.FromString(Path(source).read_bytes())
    began = time.perf_counter()
    Timeline(metadata).visualize(out)
    print(f"seconds {time.perf_counter() - began:.3f}")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "repeat":
        repeat(arguments[0], int(arguments[1]), arguments[2])
    else:
        visualize(*arguments)
