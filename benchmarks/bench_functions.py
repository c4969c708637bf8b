"""What watching compiled functions adds to a call of one: calls of one loop go at random through the wrappers or past them.

    python benchmarks/bench_functions.py [--calls N]

Starts itself with TensorFlow 2.21 and 2.15. Measured is the time within the wrappers, where they stand in the loop: a clock
around each, less a clock around what it wraps. So the noise of the step itself does not reach the figure, and after a long step
the caches are as cold as they are in a training.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from time import perf_counter_ns, thread_time_ns
from typing import Any

from environments import ROOT, environment

ENVIRONMENTS = {"TF 2.21": "tf221", "TF 2.15": "tf215"}
#: Dense layers of the function -> calls.
SIZES = {0: 8000, 20: 3000, 200: 600}
#: A median's interval: quantiles of the medians of so many random halves.
HALVES = 100


class Switch:
    """Stands around one of TensorFlow's methods: calls go through the tracer's wrapper or past it."""

    through = False  # of all switches
    within_ns = 0

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name, self._original = owner, name, getattr(owner, name)
        setattr(owner, name, self._measured(self._original, -1))

    def stand_around(self) -> None:
        """The wrapper has been set."""
        watched = getattr(self._owner, self._name)
        through, past = self._measured(watched, 1), self._measured(watched.__wrapped__, 1)

        def chosen(*arguments: Any, **named: Any) -> Any:
            return (through if Switch.through else past)(*arguments, **named)

        setattr(self._owner, self._name, chosen)

    @staticmethod
    def _measured(method: Any, sign: int) -> Any:
        def measured(*arguments: Any, **named: Any) -> Any:
            start = perf_counter_ns()
            try:
                return method(*arguments, **named)
            finally:
                Switch.within_ns += sign * (perf_counter_ns() - start)

        return measured


def function(layers: int) -> Any:
    import tensorflow as tf

    weights = [tf.Variable(tf.ones((64, 64)) / 64) for _ in range(layers)]

    @tf.function
    def step(x: Any) -> Any:
        for weight in weights:
            x = tf.nn.relu(tf.matmul(x, weight))
        return x + 1.0

    return step, tf.ones((64, 64))


def measure(calls: int) -> dict[str, dict[str, list[float]]]:
    from tensorflow.python.eager.polymorphic_function import concrete_function, polymorphic_function

    import tftracer

    kinds = {polymorphic_function.Function: "__call__", concrete_function.ConcreteFunction: "_call_flat"}
    switches = [Switch(kind, name) for kind, name in kinds.items()]
    server = tftracer.hook_inject(start_web_server_on_start=False)
    for switch in switches:
        switch.stand_around()
    results = {str(layers): of_size(layers, calls or count) for layers, count in SIZES.items()}
    server.close()
    return results


def of_size(layers: int, calls: int) -> dict[str, list[float]]:
    """Microseconds within the wrappers, and of the whole call in CPU time."""
    step, argument = function(layers)
    for _ in range(20):
        step(argument)
    chance = random.Random(layers)
    within: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(calls):
        Switch.through, Switch.within_ns = chance.random() < 0.5, 0
        step(argument)
        within[Switch.through].append(Switch.within_ns / 1e3)
    begun = thread_time_ns()
    for _ in range(calls):
        step(argument)
    whole = (thread_time_ns() - begun) / calls / 1e3
    halves = [median_added(within, chance) for _ in range(HALVES)]
    added = statistics.median(within[True]) - statistics.median(within[False])
    return {"added": [added, *quantiles(halves)], "call": [whole]}


def median_added(within: dict[bool, list[float]], chance: random.Random) -> float:
    return statistics.median(half(within[True], chance)) - statistics.median(half(within[False], chance))


def half(values: list[float], chance: random.Random) -> list[float]:
    return chance.sample(values, len(values) // 2)


def quantiles(values: list[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]]


def in_environment(name: str, calls: int) -> dict[str, dict[str, list[float]]]:
    command = [f".envs/{name}/bin/python", __file__, "--measure", "--calls", str(calls)]
    settings = {"TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
    done = subprocess.run(
        command, cwd=ROOT, env={**environment(ours=True), **settings}, stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=0, help="calls of each function (default: by its size)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.calls)))
        return
    print("µs added to a call of a compiled function: median (5%, 95% of the medians of halves)")
    for title, name in ENVIRONMENTS.items():
        for layers, figures in in_environment(name, options.calls).items():
            added, low, high = figures["added"]
            print(
                f"{title}, {layers:>3} dense layers: {added:6.2f} ({low:.2f}, {high:.2f}); a call takes {figures['call'][0]:8.0f}"
            )


if __name__ == "__main__":
    main()
