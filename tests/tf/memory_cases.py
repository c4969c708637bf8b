"""Trainings whose memory grows where it was planted, and balanced ones: ``python memory_cases.py CASE SECONDS MB_PER_S``.

A line that ends in ``# LEAK`` makes what is kept.
"""

from __future__ import annotations

import collections
import ctypes
import gc
import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CASE, SECONDS, MB_PER_S = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
STEPS_PER_S = 10.0
#: Of a leak in one step.
BYTES = round(MB_PER_S * 1e6 / STEPS_PER_S)
CASES: dict[str, Callable[[Any], None]] = {}
#: Cases in which nothing grows.
BALANCED: list[str] = []


def leak(run: Callable[[Any], None]) -> Callable[[Any], None]:
    CASES[run.__name__] = run
    return run


def balanced(run: Callable[[Any], None]) -> Callable[[Any], None]:
    BALANCED.append(run.__name__)
    return leak(run)


def steps() -> Any:
    """Numbers, so many a second at most, until the time is over or the file MEMORY_TRIAL_STOP exists."""
    begin, number, stop = time.monotonic(), 0, os.environ.get("MEMORY_TRIAL_STOP", "")
    while (now := time.monotonic()) < begin + SECONDS and not (stop and Path(stop).exists()):
        yield number
        number += 1
        time.sleep(max(0.0, now + 1 / STEPS_PER_S - time.monotonic()))


def a_step(tf: Any, size: int = 64) -> Any:
    weight = tf.Variable(tf.random.normal([size, size]) * 0.01)

    @tf.function
    def train_step(x: Any) -> Any:
        weight.assign_add(tf.matmul(x, weight) * 1e-9)
        return tf.reduce_sum(weight)

    return train_step


def a_network(tf: Any, width: int = 64) -> Any:
    layers = tf.keras.layers
    network = tf.keras.Sequential([layers.Input((32,)), layers.Dense(width, activation="relu"), layers.Dense(1)])
    network.compile("adam", "mse")
    return network


# ------------------------------------------------------------------------------------------------------------- leaks


@leak
def tensors(tf: Any) -> None:
    step, kept = a_step(tf), []
    for _ in steps():
        step(tf.ones([64, 64]))
        kept.append(tf.random.uniform([BYTES // 4]))  # LEAK


@leak
def retracing(tf: Any) -> None:
    @tf.function
    def train_step(x: Any, number: int) -> Any:
        for _ in range(20):
            x = tf.matmul(x, x) * 1e-9 + number
        return x

    x = tf.ones([8, 8])
    for number in steps():
        train_step(x, number)  # LEAK


@leak
def graph_ops(tf: Any) -> None:
    import numpy as np

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        weight = v1.get_variable("weight", [64, 64])
        session.run(v1.global_variables_initializer())
        rate = v1.placeholder(tf.float32, [])
        train = weight.assign_add(tf.matmul(weight, weight) * rate)
        for _ in steps():
            session.run(train, {rate: 1e-9})
            data = tf.constant(np.random.rand(BYTES // 4).astype(np.float32))  # LEAK
            del data


@leak
def iterators(tf: Any) -> None:
    import numpy as np

    step, kept = a_step(tf), []
    dataset = tf.data.Dataset.from_tensors(np.ones([BYTES // 4], np.float32)).repeat().batch(4).prefetch(1)
    options = tf.data.Options()
    options.autotune.enabled = False  # its thread delays the end of each iterator for up to a minute
    dataset = dataset.with_options(options)
    for number in steps():
        step(tf.ones([64, 64]))
        if number % 5 == 0:  # TensorFlow takes 23 ms and more to end each of them
            kept.append(iter(dataset))  # LEAK
            next(kept[-1])


@leak
def callbacks(tf: Any) -> None:
    import numpy as np

    class LossHistory(tf.keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.losses = np.ones(BYTES, np.uint8)

    network, kept = a_network(tf), []
    x, y = np.ones([32, 32], np.float32), np.ones([32, 1], np.float32)
    for _ in steps():
        kept.append(LossHistory())  # LEAK
        network.train_on_batch(x, y)


@leak
def arrays(tf: Any) -> None:
    import numpy as np

    step, kept = a_step(tf), []
    for _ in steps():
        step(tf.ones([64, 64]))
        kept.append(np.ones(BYTES, np.uint8))  # LEAK


@leak
def sessions(tf: Any) -> None:
    import numpy as np

    v1, kept = tf.compat.v1, []
    for _ in steps():
        graph = tf.Graph()
        with graph.as_default():
            weight = v1.get_variable("weight", initializer=np.ones([BYTES // 8], np.float32))
            total = tf.reduce_sum(weight)
            session = v1.Session(graph=graph)  # LEAK
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run(total)
        session.close()
        kept.append(session)


@leak
def cycle(tf: Any) -> None:
    class Node:
        def __init__(self) -> None:
            self.me = self
            self.payload = bytearray(BYTES)

    gc.disable()
    step = a_step(tf)
    for _ in steps():
        step(tf.ones([64, 64]))
        Node()  # LEAK


@leak
def metrics(tf: Any) -> None:
    step, history = a_step(tf), {}
    for number in steps():
        loss = float(step(tf.ones([64, 64])))
        history[f"step_{number}"] = [loss + each for each in range(BYTES // 32)]  # LEAK


@leak
def native(tf: Any) -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    step = a_step(tf)
    for _ in steps():
        step(tf.ones([64, 64]))
        ctypes.memset(libc.malloc(BYTES), 1, BYTES)


# ---------------------------------------------------------------------------------------------------------- balanced


@balanced
def plain_function(tf: Any) -> None:
    step = a_step(tf)
    for _ in steps():
        step(tf.ones([64, 64]))


@balanced
def eager_loop(tf: Any) -> None:
    weight, optimizer = tf.Variable(tf.ones([64, 64])), tf.keras.optimizers.SGD(1e-12)
    for _ in steps():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(weight, weight) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])


def fit(tf: Any, network: Any, x: Any, **options: Any) -> None:
    """One call of ``fit``, an epoch for each of ``steps()``: calls in a loop keep some memory of each, in Keras itself."""
    going = steps()

    class Pace(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = next(going, None) is None

    callbacks = [Pace(), *options.pop("callbacks", [])]
    network.fit(x, x[:, :1], epochs=1_000_000, verbose=0, callbacks=callbacks, **options)


@balanced
def keras_epochs(tf: Any) -> None:
    import numpy as np

    fit(tf, a_network(tf), np.random.rand(2000, 32).astype(np.float32))


@balanced
def keras_validation(tf: Any) -> None:
    import numpy as np

    x = np.random.rand(4000, 32).astype(np.float32)
    # Each 20th epoch: Keras 2 keeps some 400 kB of each validation, also without tftracer. There the growth that is told is true.
    fit(tf, a_network(tf, 512), x, validation_data=(x[:1000], x[:1000, :1]), validation_freq=20)


@balanced
def keras_checkpoints(tf: Any) -> None:
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        # Each 20th epoch: with one an epoch, fit keeps some 70 kB of each, as it does without tftracer.
        save = tf.keras.callbacks.ModelCheckpoint(f"{folder}/at.weights.h5", save_weights_only=True, save_freq=320)
        fit(tf, a_network(tf, 1024), np.random.rand(500, 32).astype(np.float32), callbacks=[save])


@balanced
def sessions_loop(tf: Any) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", [256, 256])
        train = weight.assign_add(tf.matmul(weight, weight) * 1e-9)
        with v1.train.MonitoredSession() as session:
            for _ in steps():
                session.run(train)


@balanced
def checkpoint_hook(tf: Any) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        step = v1.train.get_or_create_global_step()
        weight = v1.get_variable("weight", [1024, 1024])
        train = tf.group(weight.assign_add(weight * 1e-9), step.assign_add(1))
        with v1.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=40) as session:
            for _ in steps():
                session.run(train)


@balanced
def replaced_sessions(tf: Any) -> None:
    """A session a second, each closed and gone."""
    v1 = tf.compat.v1
    for _ in steps():
        with tf.Graph().as_default(), v1.Session() as session:
            total = tf.reduce_sum(tf.ones([100_000]))
            for _ in range(5):
                session.run(total)


@balanced
def fills_and_stops(tf: Any) -> None:
    """A replay buffer: 80 MB within half a minute, then old entries make way."""
    import numpy as np

    buffer: collections.deque[Any] = collections.deque(maxlen=300)
    step = a_step(tf)
    for _ in steps():
        step(tf.ones([64, 64]))
        buffer.append(np.ones(270_000, np.uint8))


@balanced
def shuffle_and_cache(tf: Any) -> None:
    import numpy as np

    data = tf.data.Dataset.from_tensor_slices(np.random.rand(4000, 4096).astype(np.float32)).cache().shuffle(2000)
    step, iterator = a_step(tf), iter(data.repeat().batch(16).prefetch(4))
    for _ in steps():
        next(iterator)
        step(tf.ones([64, 64]))


@balanced
def sawtooth(tf: Any) -> None:
    """A list that is emptied each 20 s."""
    import numpy as np

    step, kept = a_step(tf), []
    for number in steps():
        step(tf.ones([64, 64]))
        kept.append(np.ones(300_000, np.uint8))
        if number % 200 == 199:
            kept.clear()


@balanced
def garbage_cycles(tf: Any) -> None:
    """Freed by Python's garbage collection at times."""

    class Node:
        def __init__(self) -> None:
            self.me = self
            self.payload = bytearray(50_000)

    step = a_step(tf)
    for _ in steps():
        step(tf.ones([64, 64]))
        for _ in range(30):
            Node()


@balanced
def changing_shapes(tf: Any) -> None:
    """Batches of 1 to 400 rows: one signature, other sizes."""
    weight = tf.Variable(tf.ones([256, 256]))

    @tf.function(input_signature=[tf.TensorSpec([None, 256])])
    def train_step(x: Any) -> Any:
        return tf.reduce_sum(tf.matmul(x, weight))

    for number in steps():
        train_step(tf.ones([1 + number * 37 % 400, 256]))


@balanced
def some_retracing(tf: Any) -> None:
    """Eight signatures, all of them soon."""
    step = tf.function(lambda x: tf.reduce_sum(x * 2))
    for number in steps():
        step(tf.ones([1 + number % 8, 64]))


@balanced
def bounded_metrics(tf: Any) -> None:
    history: collections.deque[Any] = collections.deque(maxlen=500)
    step = a_step(tf)
    for number in steps():
        history.append({"step": number, "loss": float(step(tf.ones([64, 64])))})


@balanced
def summaries(tf: Any) -> None:
    step = a_step(tf)
    with tempfile.TemporaryDirectory() as folder, tf.summary.create_file_writer(folder).as_default():
        for number in steps():
            tf.summary.write("loss", step(tf.ones([64, 64])), step=number)
            tf.summary.write("weights", tf.random.normal([1000]), step=number)


@balanced
def generator(tf: Any) -> None:
    import numpy as np

    def rows() -> Any:
        while True:
            yield np.random.rand(20_000).astype(np.float32)

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([20_000], tf.float32))
    step, iterator = a_step(tf), iter(data.batch(8).prefetch(tf.data.AUTOTUNE))
    for _ in steps():
        next(iterator)
        step(tf.ones([64, 64]))


@balanced
def python_functions(tf: Any) -> None:
    import numpy as np

    def augment(x: Any) -> Any:
        return np.roll(x, 1).astype(np.float32)

    data = tf.data.Dataset.from_tensors(np.ones(50_000, np.float32)).repeat()
    data = data.map(lambda x: tf.numpy_function(augment, [x], tf.float32), num_parallel_calls=4).batch(4).prefetch(2)
    step, iterator = a_step(tf), iter(data)
    for _ in steps():
        next(iterator)
        step(tf.ones([64, 64]))


@balanced
def mapped_file(tf: Any) -> None:
    """A file of 200 MB, read through a mapping: pages of the system's cache, not of the process."""
    step = a_step(tf)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data"
        with file.open("wb") as out:
            out.truncate(200 << 20)
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
            for number in steps():
                at = number * 250_000 % (199 << 20)
                step(tf.ones([64, 64]) * sum(mapped[at : at + 250_000 : 4096]))


@balanced
def keras_batches(tf: Any) -> None:
    """``train_on_batch``, and ``predict_on_batch`` each tenth step."""
    import numpy as np

    network, x = a_network(tf, 256), np.random.rand(256, 32).astype(np.float32)
    for number in steps():
        network.train_on_batch(x, x[:, :1])
        if number % 10 == 0:
            network.predict_on_batch(x)


def main() -> None:
    import tftracer

    tftracer.hook_inject(start_web_server_on_start=False)
    import tensorflow as tf

    CASES[CASE](tf)


if __name__ == "__main__":
    main()
