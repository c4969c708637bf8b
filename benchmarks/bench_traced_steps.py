"""What a traced step of a compiled function costs, by the level of the profiler; steps of all kinds alternate in one run.

    python benchmarks/bench_traced_steps.py [TF...] [--steps N]        # environments: tf221 tf215

Level 2 leaves out cheap ops, level 3 records all. *In a row*: the whole cost of a step among others that share a profile, with
collecting it. *Eager*: what an optimizer that applies gradients in eager code costs more, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

from environments import ROOT, environment

from tftracer.capture.traces import shared_profiles

LEVELS = (2, 3)
MODELS = ["convnet", "transformer", "ResNet50"]
ROW, UPDATES = 20, 2000


def model_of(name: str) -> tuple[Any, Any]:
    """(a model, a batch)"""
    import tensorflow as tf

    layers = tf.keras.layers
    if name == "convnet":
        parts = [layers.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(10)]
        return tf.keras.Sequential(parts), tf.zeros((32, 28, 28, 1))
    if name == "ResNet50":
        inputs = {"input_shape": (64, 64, 3), "classes": 10, "classifier_activation": None}
        return tf.keras.applications.ResNet50(weights=None, **inputs), tf.zeros((8, 64, 64, 3))
    words = tf.keras.Input((64,))
    state = layers.Embedding(1000, 64)(words)
    for _ in range(6):
        state = layers.LayerNormalization()(layers.Add()([state, layers.MultiHeadAttention(4, 16)(state, state)]))
        state = layers.LayerNormalization()(layers.Add()([state, layers.Dense(64)(layers.Dense(256, "relu")(state))]))
    return tf.keras.Model(words, layers.Dense(10)(layers.GlobalAveragePooling1D()(state))), tf.zeros((8, 64))


def step_of(model: Any, x: Any) -> Callable[[], Any]:
    import tensorflow as tf

    optimizer, loss_of = tf.keras.optimizers.Adam(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    y = tf.zeros((x.shape[0],), tf.int32)

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return lambda: step().numpy()


def once(step: Callable[[], Any], level: int, steps: int = 1) -> tuple[float, float, int]:
    """(seconds of the steps, of collecting their profile, its bytes); level 0: untraced."""

    if not level:
        begun = perf_counter()
        step()
        return perf_counter() - begun, 0.0, 0
    shared_profiles.OPTIONS["host_tracer_level"] = shared_profiles.Level(level)
    profile = shared_profiles.Profile(0)
    profile.start()
    begun = perf_counter()
    for _ in range(steps):
        profile.begin_step()
        step()
        profile.end_step()
    ended = perf_counter()
    profile.closing.set()
    profile.collect()
    collected = perf_counter()
    return ended - begun, collected - ended, sum(len(profile.step(number, 0)) for number in range(steps))


def measure(steps: int, wanted: list[str]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name in wanted:
        model, x = model_of(name)
        step = step_of(model, x)
        for _ in range(100):
            step()
        times: dict[int, list[tuple[float, float, int]]] = {level: [] for level in (0, *LEVELS)}
        for _ in range(steps):
            for level, found in times.items():
                found.append(once(step, level))
        results[name] = {str(level): [statistics.median(column) for column in zip(*found)] for level, found in times.items()}
        row = [(sum(once(step, 3, ROW)[:2]) / ROW) for _ in range(3)]
        results[name]["row"] = statistics.median(row)
    results["eager"] = eager_cost()
    return results


def eager_cost() -> float:
    """Microseconds that the tracer adds to an update in eager code: around an optimizer that does nothing."""
    import tftracer
    from tftracer.capture.loops.eager_steps import EagerSteps

    server = tftracer.hook_inject(start_web_server_on_start=False)
    apply = EagerSteps(server.functions.calls).wrap_apply(lambda optimizer: None)
    server.recorder.flush()
    times = []
    for _ in range(UPDATES):
        begun = perf_counter()
        apply(server)
        times.append(perf_counter() - begun)
    server.close()
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environments", nargs="*", default=["tf221", "tf215"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.steps, options.models)))
        return
    for name in options.environments:
        command = [f".envs/{name}/bin/python", __file__, "--measure", "--steps", str(options.steps), "--models", *options.models]
        settings = {"TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": tempfile.mkdtemp()}
        done = subprocess.run(
            command, cwd=ROOT, env={**environment(ours=True), **settings}, stdout=subprocess.PIPE, check=True, text=True
        )
        results = json.loads(done.stdout.splitlines()[-1])
        print(f"{name}: an update in eager code costs {results.pop('eager'):.1f} µs more")
        for model, found in results.items():
            plain = found["0"][0]
            print(f"{name}, {model}: {plain * 1e3:.1f} ms")
            for level in LEVELS:
                took, collecting, size = found[str(level)]
                print(f"    level {level}: {took / plain:.2f} times; {collecting * 1e3:.0f} ms to collect {size / 1e3:.0f} kB")
            print(f"    level 3 in a row: {(found['row'] - plain) * 1e3:.1f} ms more each")


if __name__ == "__main__":
    main()
