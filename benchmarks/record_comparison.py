"""Real trainings for ``tftracer compare``: sessions of the same code (A1, A2), and of one with 5% longer steps (B), interleaved.

    python benchmarks/record_comparison.py FOLDER [--sessions 8] [--steps 1200]

Each session is a process of its own. All are there from the beginning and train in turns, 50 steps at a time and in a new order
each round: a shared machine is faster and slower by the second, and this way as often for one session as for another. All run the
same graph; its op ``inject`` is a Python function that is busy for 5% of a step in B, and for no time in A1 and A2.
bench_compare.py judges the sessions.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from environments import environment

SHARE = 0.05
LAYERS, WIDTH, BATCH, TRACES = 10, 256, 64, 7
TURN = 50  # steps
KINDS = ("A1", "A2", "B")


def train(path: str, steps: int, busy_ns: int) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    from tftracer import TracingServer

    v1 = tf.compat.v1
    v1.disable_eager_execution()

    def busy(x: np.ndarray) -> np.ndarray:
        end = time.perf_counter_ns() + busy_ns
        while time.perf_counter_ns() < end:
            pass
        return x

    x = v1.placeholder(tf.float32, [BATCH, WIDTH], name="x")
    y = tf.reshape(v1.py_func(busy, [x], tf.float32, name="inject"), [BATCH, WIDTH])
    for layer in range(LAYERS):
        with v1.variable_scope(f"layer_{layer}"):
            weights = v1.get_variable("w", [WIDTH, WIDTH])
            y = tf.nn.relu(tf.matmul(y, weights))
    loss = tf.reduce_mean(tf.square(y))
    v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
    server = TracingServer(server_port=0, start_web_server_on_start=False, spool_dir=str(Path(path).parent / "spool"))
    feed = {x: np.random.default_rng(0).random((BATCH, WIDTH), np.float32)}
    one_thread = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)  # what else runs shows less
    creator = v1.train.ChiefSessionCreator(config=one_thread)
    with v1.train.MonitoredSession(creator, hooks=[server.hook]) as session:
        for step in range(steps):
            if step % TURN == 0:
                print("waiting", flush=True)
                input()
            if step % (steps // (TRACES + 1)) == 0 and step:  # apart: none is traced while the one before it is being stored
                server.trace_next()
            session.run(train_op, feed)
    server.save_session(path)


class Session:
    """A training that waits for its turns."""

    def __init__(self, folder: Path, name: str, steps: int, busy_ns: int) -> None:
        self.path = folder / f"{name}.tftrace"
        command = [sys.executable, __file__, str(folder), "--train", str(self.path), "--steps", str(steps)]
        command += ["--busy-ns", str(busy_ns)]
        self.process = subprocess.Popen(
            command, env=environment(ours=True), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.is_waiting()

    def is_waiting(self) -> bool:
        """Returns when it waits for its next turn, or has ended: False."""
        return self.process.stdout.readline() != ""

    def take_turn(self) -> bool:
        """Whether there is another one."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.is_waiting()


def train_in_turns(sessions: list[Session]) -> None:
    chance, left = random.Random(0), sessions
    while left:
        order = chance.sample(left, len(left))
        left = [session for session in order if session.take_turn()]
    if any(session.process.wait() for session in sessions):
        raise SystemExit("A session has failed.")


def usual_step_ns(path: Path) -> float:
    import tftracer

    steps = tftracer.open(path).steps()
    return float(np.percentile(steps["mean_ns"][len(steps) // 10 :], 25))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--busy-ns", type=int, default=0)
    parser.add_argument("--train")
    options = parser.parse_args()
    if options.train:
        train(options.train, options.steps, options.busy_ns)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    first = Session(options.folder, "first", options.steps, 0)
    train_in_turns([first])
    step_ns = usual_step_ns(first.path)
    print(f"a step takes {step_ns / 1e6:.2f} ms; B is busy for {SHARE * step_ns / 1e3:.0f} µs more")
    names = [(kind, number) for number in range(options.sessions) for kind in KINDS]
    busy_ns = {"B": round(SHARE * step_ns)}
    sessions = [Session(options.folder, f"{kind}-{number}", options.steps, busy_ns.get(kind, 0)) for kind, number in names]
    train_in_turns(sessions)
    for session in sessions:
        print(f"{session.path.name}: {usual_step_ns(session.path) / 1e6:.3f} ms", flush=True)


if __name__ == "__main__":
    main()
