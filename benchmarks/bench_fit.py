"""What watching costs ``fit``: its median step with TensorFlow's methods wrapped, against the same without, in one training.

    python benchmarks/bench_fit.py [--pairs N] [--steps N]

Starts itself with TensorFlow 2.21 and 2.15. Windows of steps come in pairs, watched and not, in either order at random. Of each
pair the medians of both windows are divided, and the median of these ratios is told with the interval that holds it with 95%
certainty: what else the machine does slows both windows of most pairs alike.
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

from tftracer.capture.functions import function_definitions

ENVIRONMENTS = {"TF 2.21": "tf221", "TF 2.15": "tf215"}
LAYERS, WIDTH, BATCH = 20, 256, 64
SETTLING = 3  # steps after a change that do not count


def watched_methods() -> list[tuple[Any, str, Any]]:
    """(class, name, wrapper) of all that is wrapped; what a wrapper wraps is its ``__wrapped__``."""
    from tensorflow.python.distribute.distribute_lib import StrategyBase

    function, concrete = (
        function_definitions.function_module().Function,
        function_definitions.concrete_function_module().ConcreteFunction,
    )
    places = [(function, "__call__"), (concrete, "_call_flat"), (StrategyBase, "run")]
    return [(owner, name, getattr(owner, name)) for owner, name in places]


def measure(pairs: int, steps: int) -> dict[str, Any]:
    import numpy as np
    import tensorflow as tf

    import tftracer

    server = tftracer.hook_inject(start_web_server_on_start=False)
    methods, chance = watched_methods(), random.Random(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((WIDTH,)), *(layers.Dense(WIDTH, "tanh") for _ in range(LAYERS))])
    model.compile("sgd", "mse")
    values = np.ones((BATCH, WIDTH), np.float32)
    data = tf.data.Dataset.from_tensors((values, values)).repeat()

    class Windows(tf.keras.callbacks.Callback):
        times: list[float] = []
        windows: list[tuple[bool, list[float]]] = []
        order: list[bool] = []

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch % (steps + SETTLING) == 0:
                self._begin()
            self.started = perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.times.append(perf_counter() - self.started)

        def _begin(self) -> None:
            if not self.order:
                first = chance.random() < 0.5
                self.order = [first, not first]
            on, self.times = self.order.pop(), []
            self.windows.append((on, self.times))
            for owner, name, wrapper in methods:
                setattr(owner, name, wrapper if on else wrapper.__wrapped__)

    windows = Windows()
    model.fit(data, steps_per_epoch=2 * pairs * (steps + SETTLING), verbose=0, callbacks=[windows])
    server.close()
    medians = [(on, statistics.median(times[SETTLING:])) for on, times in windows.windows]
    ratios = [one / other if on else other / one for (on, one), (_, other) in zip(medians[::2], medians[1::2])]
    return {"ratios": ratios, "step_s": statistics.median(median for on, median in medians if not on)}


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """(median, low, high): by order statistics, the median lies between these with 95% certainty."""
    ordered, n = sorted(ratios), len(ratios)
    reach = round(0.98 * n**0.5)
    return statistics.median(ordered), ordered[max(0, n // 2 - reach)], ordered[min(n - 1, n // 2 + reach)]


def in_environment(name: str, pairs: int, steps: int) -> dict[str, Any]:
    command = [f".envs/{name}/bin/python", __file__, "--measure", "--pairs", str(pairs), "--steps", str(steps)]
    settings = {"TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
    variables = {**environment(ours=True), **settings}
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=80, help="pairs of windows (80)")
    parser.add_argument("--steps", type=int, default=30, help="steps of a window (30)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.pairs, options.steps)))
        return
    print(f"fit's median step while it is watched, against itself: {options.pairs} pairs of {options.steps} steps")
    for title, name in ENVIRONMENTS.items():
        variables = in_environment(name, options.pairs, options.steps)
        median, low, high = (100 * (value - 1) for value in interval(variables["ratios"]))
        print(
            f"{title}: {median:+.2f}% (95%: {low:+.2f} to {high:+.2f}); a step takes {1e3 * variables['step_s']:.1f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
