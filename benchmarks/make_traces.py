"""Real traces for the other benchmarks, written to benchmarks/out/: run once, with TensorFlow 2.

loop_1000.pb ... loop_100000.pb   a while_loop (control flow v1) of as many nodes, few names
loop_cut.pb                       400,000 turns: TensorFlow stops at 2^20 nodes
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
OUT = Path(__file__).parent / "out"
NODES_A_TURN = 14


def loop(turns: int) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        def body(i: Any, y: Any) -> tuple[Any, Any]:
            return i + 1, tf.tanh(tf.matmul(y, y))

        return v1.while_loop(lambda i, y: i < turns, body, [v1.constant(0), x])

    return build


def record(name: str, build: Callable[[Any], Any]) -> None:
    path = OUT / f"{name}.pb"
    if path.exists():
        return
    began = time.perf_counter()
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [4, 4])
        fetch, feed = build(x), {x: np.eye(4, dtype=np.float32) / 2}
        session.run(fetch, feed)
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE, output_partition_graphs=True)
        session.run(fetch, feed, options=options, run_metadata=metadata)
    path.write_bytes(metadata.SerializeToString())
    nodes = sum(len(entry.node_stats) for entry in metadata.step_stats.dev_stats)
    print(f"{path.name}: {nodes:,} nodes, {path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - began:.0f} s")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    v1.disable_eager_execution()
    v1.disable_control_flow_v2()
    for nodes in (1_000, 10_000, 100_000):
        record(f"loop_{nodes}", loop(nodes // NODES_A_TURN))
    record("loop_cut", loop(400_000))


if __name__ == "__main__":
    main()
