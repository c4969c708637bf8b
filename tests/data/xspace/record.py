"""Made control_flow_*, partitioned_* and two_threads_*.xplane.pb.xz: ``python tests/data/xspace/record.py FOLDER``."""

from __future__ import annotations

import lzma
import sys
import threading
from pathlib import Path
from typing import Any

import tensorflow as tf

from tftracer.capture.function_runs import FunctionRuns, function_library, name_of
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.traces.shared_profiles import Profiler
from tftracer.trace.decode.xplane_reader import DEFINITIONS_PLANE, PARTITIONS_PLANE, with_plane


@tf.function
def step(x: Any, steps: Any) -> Any:
    """A branch, a loop with a branch in it, and a function within the function."""

    def turn(i: Any, y: Any) -> Any:
        y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: tf.tanh(y @ x), lambda: y - 1.0)
        return i + 1, y

    start = tf.cond(tf.reduce_mean(x) > -1.0, lambda: tf.sin(x), lambda: tf.cos(x))
    _, y = tf.while_loop(lambda i, y: i < steps, turn, [0, start])
    return inner(y)


@tf.function
def inner(y: Any) -> Any:
    return tf.reduce_sum(tf.exp(y)) * 2.0


@tf.function
def other(x: Any) -> Any:
    """What another thread is at."""
    for _ in range(4):
        x = tf.nn.relu(tf.linalg.matmul(x, x, name="other_product"))
    return x


def profile(call: Any) -> bytes:
    profiler = Profiler()
    begun = profiler.begin()
    assert begun is not None, profiler.last_refusal
    number = begun.begin_step()
    call()
    profiler.finish(begun)
    return begun.step(number, 60)


def profiled(call: Any, concrete: Any) -> bytes:
    return with_plane(profile(call), DEFINITIONS_PLANE, *function_library(concrete))


def control_flow() -> bytes:
    x, steps = tf.constant([[0.5, -0.25], [0.1, 0.2]]), tf.constant(3)
    for _ in range(2):
        step(x, steps)
    return profiled(lambda: step(x, steps), step.get_concrete_function(x, steps))


def partitioned() -> bytes:
    """The step of ``control_flow`` with the graphs that it runs."""
    watching = FunctionRuns(StepQueue())
    watching.watch()
    x, steps = tf.constant([[0.5, -0.25], [0.1, 0.2]]), tf.constant(3)
    concrete = step.get_concrete_function(x, steps)
    step(x, steps)
    graphs = watching.calls.graphs.of(concrete)
    watching.stop()
    return with_plane(profile(lambda: step(x, steps)), PARTITIONS_PLANE, name_of(concrete), graphs)


def two_threads() -> bytes:
    """One step beside a thread that calls another function, and runs an op eagerly, all the time."""
    x, steps, big = tf.constant([[0.5, -0.25], [0.1, 0.2]]), tf.constant(3), tf.random.normal([64, 64])
    step(x, steps), other(big)
    begun, done = threading.Event(), threading.Event()

    def beside() -> None:
        while not done.is_set():
            other(big)
            tf.math.cumsum(big)
            begun.set()

    thread = threading.Thread(target=beside)
    thread.start()
    begun.wait()
    raw = profiled(lambda: [step(x, steps) for _ in range(1)], step.get_concrete_function(x, steps))
    done.set()
    thread.join()
    return raw


def main() -> None:
    folder, version = Path(sys.argv[1]), ".".join(tf.__version__.split(".")[:2])
    for name, record in (("partitioned", partitioned), ("control_flow", control_flow), ("two_threads", two_threads)):
        (folder / f"{name}_tf{version}.xplane.pb.xz").write_bytes(lzma.compress(record(), preset=9))


if __name__ == "__main__":
    main()
