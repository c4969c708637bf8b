"""Resident memory of a process with the hook: over 10^6 steps of a bare loop around it, and over 1,000 traced steps.

    python benchmarks/bench_memory.py [--steps N] [--traces N]

The bare loop calls before_run and after_run as a MonitoredSession does, without a session between them: a million real steps
would take an hour and show the same. The traces are of a real model of 20 dense layers.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from pathlib import Path

import numpy as np
import tensorflow


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row(what: str, done: int, server) -> None:
    gc.collect()
    spool = Path(server._recorder.session()["file"])
    size = spool.stat().st_size / 1e6 if spool.is_file() else 0.0
    print(f"{what:28s} {done:>10,} {resident_mb():10.1f} MB   spool {size:8.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--traces", type=int, default=1_000)
    options = parser.parse_args()

    from tftracer import TracingServer

    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    server = TracingServer(server_port=0, spool_dir=tempfile.mkdtemp())
    inputs = tf.placeholder(tf.float32, [None, 32], name="inputs")
    hidden = inputs
    for layer in range(20):
        hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [32, 32])))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(hidden), tf.train.get_or_create_global_step())
    random = np.random.default_rng(0)
    with tf.train.MonitoredSession(hooks=[server.hook]) as session:
        for _ in range(200):
            session.run(train, {inputs: random.normal(size=(8, 32))})
        row("bare steps", 0, server)
        bare_steps(tf, server, session, train, inputs, options.steps)
        row("traces", 0, server)
        for number in range(1, options.traces + 1):
            server.trace_next(steps=1)
            session.run(train, {inputs: random.normal(size=(8, 32))})
            if number % max(1, options.traces // 5) == 0:
                row("traces", number, server)
        server.save_session(Path(tempfile.mkdtemp()) / "session.tftrace")
        row("saved", 1, server)


def bare_steps(tf, server, session, train, inputs, steps: int) -> None:
    hook = server.hook
    arguments = tf.train.SessionRunArgs(train, {inputs: 0})
    context = tf.train.SessionRunContext(arguments, session.raw_session() if hasattr(session, "raw_session") else None)
    values = tf.train.SessionRunValues(None, None, tf.RunMetadata())
    batch = np.zeros((8, 32))
    for number in range(1, steps + 1):
        arguments.feed_dict[inputs] = batch
        hook.before_run(context)
        hook.after_run(context, values)
        if number % max(1, steps // 5) == 0:
            row("bare steps", number, server)


if __name__ == "__main__":
    main()
