"""What an untraced step costs: steps of one loop go at random to a no-op hook or to a tracer, ours or the original in turn.

    python benchmarks/bench_hook.py [--steps N]

Starts itself in each environment: TensorFlow 2.21 and 2.15 with ours, 2.15 with tensorflow-tracer 1.1.0.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from time import perf_counter
from typing import Any

from environments import ROOT, environment

ENVIRONMENTS = {"ours, TF 2.21": "tf221", "ours, TF 2.15": "tf215", "original, TF 2.15": "original"}
LAYERS = (20, 100, 500)
ROUNDS = 5


def our_hook() -> Any:
    from tftracer import TracingServer

    server = TracingServer(server_port=0, start_web_server_on_start=False, spool_dir=tempfile.mkdtemp())
    return server.hook


def original_hook() -> Any:
    import original  # noqa: F401 (lets the next import work)

    from tftracer import TracingServer

    return TracingServer(start_web_server_on_start=False).hook


def measure(which: str, layers: int, steps: int) -> dict[str, list[float]]:
    """Microseconds that the tracer adds, one figure a round: to a whole step (difference of first deciles), and within the
    hook's two calls alone, where they stand in the loop (difference of medians), which the noise of long steps does not reach.
    """
    hook = original_hook() if which == "original" else our_hook()
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()

    nothing = tf.train.SessionRunHook()

    class Switch(tf.train.SessionRunHook):
        """Sends each step to the hook, or nowhere."""

        on = False
        inside = 0.0

        def begin(self) -> None:
            hook.begin()

        def after_create_session(self, session: Any, coord: Any) -> None:
            hook.after_create_session(session, coord)

        def before_run(self, run_context: Any) -> Any:
            chosen = hook if self.on else nothing
            start = perf_counter()
            asked = chosen.before_run(run_context)
            self.inside = perf_counter() - start
            return asked

        def after_run(self, run_context: Any, run_values: Any) -> None:
            chosen = hook if self.on else nothing
            start = perf_counter()
            chosen.after_run(run_context, run_values)
            self.inside += perf_counter() - start

    # Nothing is fed: the original prints whatever is fed at each step, which costs it ten times as much.
    hidden = tf.constant(np.zeros((4, 8), np.float32))
    for layer in range(layers):
        hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable(f"w{layer}", [8, 8])) + tf.get_variable(f"b{layer}", [8]))
    loss = tf.reduce_mean(hidden)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    switch, chance = Switch(), random.Random(1)
    added, inside = [], []
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=config), hooks=[switch]) as session:
        for _ in range(ROUNDS):
            times: dict[bool, list[float]] = {True: [], False: []}
            calls: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(steps):
                switch.on = chance.random() < 0.5
                start = perf_counter()
                session.run([train, loss])
                times[switch.on].append(perf_counter() - start)
                calls[switch.on].append(switch.inside)
            added.append(1e6 * (quick(times[True]) - quick(times[False])))
            inside.append(1e6 * (statistics.median(calls[True]) - statistics.median(calls[False])))
    return {"added": added, "inside": inside}


def quick(times: list[float]) -> float:
    """The first decile: what a step takes when nothing else gets in its way, on a machine that is not ours alone."""
    return sorted(times)[len(times) // 10]


def in_environment(name: str, layers: int, steps: int) -> dict[str, list[float]]:
    command = [f".envs/{name}/bin/python", __file__, "--which", name, "--layers", str(layers), "--steps", str(steps)]
    settings = {"TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
    variables = {**environment(ours=name != "original"), **settings}
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True, text=True)
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
    print(f"µs added by an untraced step, medians of {ROUNDS} rounds (least, most)")
    print(f"{'dense layers':>12} {'':20} {'within the two calls':28} to the whole step")
    for layers in LAYERS:
        medians = {}
        for title, name in ENVIRONMENTS.items():
            variables = in_environment(name, layers, options.steps or max(800, 60_000 // layers))
            medians[name] = statistics.median(variables["inside"])
            shown = [
                f"{statistics.median(f):7.2f} ({min(f):.2f}, {max(f):.2f})" for f in (variables["inside"], variables["added"])
            ]
            print(f"{layers:12} {title:20} {shown[0]:28} {shown[1]}", flush=True)
        print(f"{'':12} original / ours on 2.15, within the calls: {medians['original'] / medians['tf215']:.1f}")


if __name__ == "__main__":
    main()
