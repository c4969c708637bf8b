"""What an untraced step costs: steps of one loop go at random to a no-op hook or to a tracer, ours or the original in turn.

    python benchmarks/bench_hook.py [--steps N]

Starts itself in each environment: TensorFlow 2.21 and 2.15 with ours, 2.15 with tensorflow-tracer 1.1.0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = {"ours, TF 2.21": "tf221", "ours, TF 2.15": "tf215", "original, TF 2.15": "original"}
LAYERS = (20, 100, 500)
ROUNDS = 5


def our_hook():
    from tftracer import TracingServer

    server = TracingServer(server_port=0, start_web_server_on_start=False, spool_dir=tempfile.mkdtemp())
    return server.hook


def original_hook():
    import original  # noqa: F401 (lets the next import work)

    from tftracer import TracingServer

    return TracingServer(start_web_server_on_start=False).hook


def measure(which: str, layers: int, steps: int) -> list[float]:
    """Microseconds that the tracer adds to a step, one figure a round (difference of medians)."""
    hook = original_hook() if which == "original" else our_hook()
    import numpy as np
    import tensorflow

    tf = tensorflow.compat.v1
    tf.disable_eager_execution()

    class Switch(tf.train.SessionRunHook):
        """Sends each step to the hook, or nowhere."""

        on = False

        def begin(self):
            hook.begin()

        def after_create_session(self, session, coord):
            hook.after_create_session(session, coord)

        def before_run(self, run_context):
            return hook.before_run(run_context) if self.on else None

        def after_run(self, run_context, run_values):
            if self.on:
                hook.after_run(run_context, run_values)

    inputs = tf.placeholder(tf.float32, [None, 8], name="inputs")
    hidden = inputs
    for layer in range(layers):
        hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable(f"w{layer}", [8, 8])) + tf.get_variable(f"b{layer}", [8]))
    loss = tf.reduce_mean(hidden)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    switch, chance = Switch(), random.Random(1)
    added = []
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=config), hooks=[switch]) as session:
        for _ in range(ROUNDS):
            times: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(steps):
                switch.on = chance.random() < 0.5
                batch = np.zeros((4, 8), np.float32)
                start = perf_counter()
                session.run([train, loss], {inputs: batch})
                times[switch.on].append(perf_counter() - start)
            added.append(1e6 * (statistics.median(times[True]) - statistics.median(times[False])))
    return added


def in_environment(name: str, layers: int, steps: int) -> list[float]:
    command = [f".envs/{name}/bin/python", __file__, "--which", name, "--layers", str(layers), "--steps", str(steps)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
    if name != "original":
        environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=0, help="steps a round (default: by model size)")
    parser.add_argument("--which", help=argparse.SUPPRESS)
    parser.add_argument("--layers", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.which:
        print(json.dumps(measure(options.which, options.layers, options.steps)))
        return
    print(f"{'dense layers':>14} {'':20} added to a step, µs (median of {ROUNDS} rounds, least, most)")
    for layers in LAYERS:
        medians = {}
        for title, name in ENVIRONMENTS.items():
            added = in_environment(name, layers, options.steps or max(1000, 60_000 // layers))
            medians[name] = statistics.median(added)
            print(f"{layers:14} {title:20} {medians[name]:6.2f}  {min(added):6.2f}  {max(added):6.2f}", flush=True)
        print(f"{'':14} original / ours on 2.15: {medians['original'] / max(medians['tf215'], 0.01):.1f}")


if __name__ == "__main__":
    sys.exit(main())
