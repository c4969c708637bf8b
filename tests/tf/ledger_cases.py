"""Scripts whose time goes where it was planted: ``python ledger_cases.py CASE TRUTH.json SECONDS``.

What was planted is measured by the script's own clock and written as it comes, for some are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
CASE, TRUTH, SECONDS = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
STOP = """
import os, signal, sys, time
began = time.perf_counter()
os.kill(int(sys.argv[1]), signal.SIGSTOP)
time.sleep(float(sys.argv[2]))
os.kill(int(sys.argv[1]), signal.SIGCONT)
print(time.perf_counter() - began)
"""
truth: dict[str, float] = {}
CASES: dict[str, Callable[[Any], None]] = {}


@contextlib.contextmanager
def planted(kind: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    truth[kind] = truth.get(kind, 0.0) + time.perf_counter() - began
    TRUTH.write_text(json.dumps(truth))


def wait(kind: str, part: float = 0.1) -> None:
    with planted(kind):
        time.sleep(SECONDS * part)


def case(run: Callable[[Any], None]) -> Callable[[Any], None]:
    CASES[run.__name__] = run
    return run


def a_step(tf: Any) -> Callable[[], Any]:
    weight = tf.Variable(tf.ones([8, 8]))

    @tf.function
    def train_step() -> Any:
        return weight.assign_add(tf.matmul(weight, weight) * 1e-9)

    return train_step


def a_model(tf: Any, layer: Any = None) -> Any:
    layers = [tf.keras.layers.Input((8,)), *([layer] if layer is not None else []), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
    return model


def batches(tf: Any, count: int = 10) -> Any:
    return tf.data.Dataset.from_tensors((tf.ones([4, 8]), tf.ones([4, 1]))).repeat(count)


def slowly(given: Any) -> Any:
    time.sleep(SECONDS * 0.1)
    return given


@case
def imports(tf: Any) -> None:
    """The sleep is before the import of TensorFlow (below)."""
    step = a_step(tf)
    truth["start"] = time.perf_counter() - BEGAN
    TRUTH.write_text(json.dumps(truth))
    for _ in range(10):
        step()


@case
def between_steps(tf: Any) -> None:
    step = a_step(tf)
    step()
    for _ in range(10):
        wait("python")
        step()


@case
def slow_generator(tf: Any) -> None:
    step = a_step(tf)

    def elements() -> Iterator[float]:
        for number in range(10):
            time.sleep(SECONDS * 0.1)
            yield float(number)

    elements_of = iter(tf.data.Dataset.from_generator(elements, output_signature=tf.TensorSpec((), tf.float32)))
    step()
    for _ in range(10):
        with planted("input"):
            next(elements_of)
        step()


@case
def retracing(tf: Any) -> None:
    @tf.function
    def train_step(values: Any) -> Any:
        time.sleep(SECONDS * 0.2)
        return tf.reduce_sum(values)

    train_step(tf.ones([1]))
    truth["building"] = SECONDS * 0.2
    for size in range(2, 6):
        values = tf.ones([size])
        for repeated in range(5):
            with planted("building" if not repeated else "calls"):
                train_step(values)


@case
def lines_between_steps(tf: Any) -> None:
    """Waits for input, checkpoints and slow turns are no lines of the time between steps."""
    step, checkpoint = a_step(tf), tf.train.Checkpoint(value=tf.Variable(tf.ones([1000, 1000])))
    manager = tf.train.CheckpointManager(checkpoint, str(TRUTH.parent / "managed"), max_to_keep=1)

    def elements() -> Iterator[float]:
        while True:
            time.sleep(0.01)
            yield 1.0

    elements_of = iter(tf.data.Dataset.from_generator(elements, output_signature=tf.TensorSpec((), tf.float32)))
    end, number = time.perf_counter() + 10 * SECONDS, 0
    while time.perf_counter() < end:
        number += 1
        next(elements_of)
        if number % 20 == 0:
            with planted("checkpoints"):
                manager.save()
        if number % 50 == 25:
            wait("python", 0.3 / SECONDS)
        wait("python", 0.02 / SECONDS)
        step()


@case
def checkpoints(tf: Any) -> None:
    class Slow(tf.train.experimental.PythonState):
        def serialize(self) -> str:
            time.sleep(SECONDS * 0.25)
            return ""

        def deserialize(self, value: str) -> None: ...

    step, checkpoint = a_step(tf), tf.train.Checkpoint(state=Slow())
    for _ in range(4):
        step()
        with planted("checkpoints"):
            checkpoint.save(str(TRUTH.parent / "checkpoint"))
        step()


@case
def checkpoint_manager(tf: Any) -> None:
    """Saving is slow outside of what writes the variables."""
    step, checkpoint = a_step(tf), tf.train.Checkpoint(value=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(TRUTH.parent), max_to_keep=1)
    for _ in range(4):
        step()
        with planted("checkpoints"):
            manager.save(options=tf.train.CheckpointOptions(experimental_write_callbacks=[slowly]))
        step()


@case
def evaluation_step(tf: Any) -> None:
    step = a_step(tf)

    @tf.function
    def test_step(value: Any) -> Any:
        return tf.py_function(slowly, [value], tf.float32)

    test_step(tf.constant(1.0))
    truth["evaluation"] = SECONDS * 0.1
    for _ in range(9):
        step()
        with planted("evaluation"):
            test_step(tf.constant(1.0))
    step()


@case
def keras_callback(tf: Any) -> None:
    class Slow(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            wait("python", 0.25)

    model = a_model(tf)
    model.fit(batches(tf), epochs=5, verbose=0, callbacks=[Slow()])
    model.train_on_batch(tf.ones([4, 8]), tf.ones([4, 1]))


@case
def keras_validation(tf: Any) -> None:
    class Slow(tf.keras.callbacks.Callback):
        def on_test_begin(self, logs: Any = None) -> None:
            self.whole = contextlib.ExitStack()
            self.whole.enter_context(planted("evaluation"))
            time.sleep(SECONDS * 0.2)

        def on_test_end(self, logs: Any = None) -> None:
            self.whole.close()

    a_model(tf).fit(batches(tf), epochs=5, verbose=0, validation_data=batches(tf), callbacks=[Slow()])


@case
def keras_predict(tf: Any) -> None:
    model = a_model(tf)
    model.fit(batches(tf), verbose=0)
    slow = batches(tf).map(lambda x, y: tf.ensure_shape(tf.py_function(slowly, [x], tf.float32), [4, 8]))
    with planted("evaluation"):
        model.predict(slow, verbose=0)


@case
def keras_checkpoint(tf: Any) -> None:
    class Slow(tf.keras.layers.Dense):
        def save_own_variables(self, store: Any) -> None:
            time.sleep(SECONDS * 0.25)
            super().save_own_variables(store)

    class Saver(tf.keras.callbacks.ModelCheckpoint):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            with planted("checkpoints"):
                super().on_epoch_end(epoch, logs)

    saver = Saver(str(TRUTH.parent / "epoch.weights.h5"), save_weights_only=True)
    a_model(tf, Slow(8)).fit(batches(tf), epochs=4, verbose=0, callbacks=[saver])


def a_session_step(tf: Any, seconds: float = 0.0) -> Any:
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    v1.train.get_or_create_global_step()

    def wait_within() -> float:
        time.sleep(seconds)
        return 1.0

    with v1.control_dependencies([v1.py_func(wait_within, [], tf.float64)]):
        return v1.assign_add(v1.train.get_global_step(), 1)


@case
def session_steps(tf: Any) -> None:
    op = a_session_step(tf, SECONDS * 0.1)
    with tf.compat.v1.train.MonitoredTrainingSession() as session:
        for _ in range(11):
            with planted("steps"):
                session.run(op)


@case
def session_checkpoints(tf: Any) -> None:
    v1: Any = tf.compat.v1
    op = a_session_step(tf)

    class Slow(v1.train.CheckpointSaverListener):
        def before_save(self, session: Any, step: int) -> None:
            wait("checkpoints", 0.25)

    hook = v1.train.CheckpointSaverHook(tempfile.mkdtemp(), save_steps=10, listeners=[Slow()])
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        for _ in range(30):
            session.run(op)


@case
def input_that_ends(tf: Any) -> None:
    """TensorFlow 1's usual end: a step that fails."""
    v1: Any = tf.compat.v1
    op = a_session_step(tf)
    element = v1.data.make_one_shot_iterator(tf.data.Dataset.range(30)).get_next()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                session.run([op, element])
        wait("end", 0.5)


@case
def fed_by_a_thread(tf: Any) -> None:
    """Another thread is in a step all the time; the main one waits between its own."""
    v1 = tf.compat.v1
    op = a_session_step(tf)
    queue = v1.FIFOQueue(2, tf.float32, shapes=[()])
    put, take = queue.enqueue(1.0), queue.dequeue()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())

        def feed() -> None:
            with contextlib.suppress(tf.errors.CancelledError, RuntimeError):
                while True:
                    session.run(put)

        threading.Thread(target=feed, daemon=True).start()
        session.run([op, take])
        for _ in range(10):
            wait("python")
            session.run([op, take])
        session.run(queue.close(cancel_pending_enqueues=True))


@case
def in_a_thread(tf: Any) -> None:
    """The training runs beside a main thread that waits for it."""
    thread = threading.Thread(target=between_steps, args=[tf])
    thread.start()
    thread.join()


@case
def stopped(tf: Any) -> None:
    step = a_step(tf)
    step()
    done = subprocess.run([sys.executable, "-c", STOP, str(os.getpid()), str(SECONDS)], capture_output=True, check=True)
    truth["suspended"] = float(done.stdout)
    TRUTH.write_text(json.dumps(truth))
    step()


@case
def the_end(tf: Any) -> None:
    step = a_step(tf)
    for _ in range(10):
        step()
    wait("end", 1.0)


@case
def killed(tf: Any) -> None:
    step = a_step(tf)
    step()
    for _ in range(10):
        wait("python", 0.2)
        step()
    step()
    time.sleep(4.5)  # longer than the file is behind
    os.kill(os.getpid(), signal.SIGKILL)


@case
def estimator(tf: Any) -> None:
    """For TensorFlow 2.15."""

    def model(features: Any, labels: Any, mode: str) -> Any:
        step = tf.compat.v1.train.get_or_create_global_step()
        time.sleep(SECONDS * 0.25)
        loss = tf.reduce_sum(features)
        if mode == "infer":

            def slow(value: Any) -> Any:
                time.sleep(SECONDS * 0.05)  # the planted time of a prediction
                return value

            return tf.estimator.EstimatorSpec(mode, predictions=tf.numpy_function(slow, [features], tf.float32))
        train = tf.compat.v1.assign_add(step, 1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    made = tf.estimator.Estimator(model, model_dir=tempfile.mkdtemp())
    data = lambda: tf.data.Dataset.from_tensors((tf.ones([4]), tf.ones([4]))).repeat(20)  # noqa: E731
    made.train(data)
    truth["building"] = SECONDS * 0.25
    with planted("evaluation"):
        made.evaluate(data)
    with planted("evaluation"):
        for _ in made.predict(data):
            time.sleep(SECONDS * 0.01)  # what the script does with a prediction
    truth["evaluation"] -= SECONDS * (2 * 0.25 + 80 * 0.01)
    truth["building"] += SECONDS * 2 * 0.25
    TRUTH.write_text(json.dumps(truth))


if __name__ == "__main__":
    if CASE == "imports":
        time.sleep(SECONDS)
    import tensorflow

    from tftracer import hook_inject

    hook_inject(server_port=0, start_web_server_on_start=False)
    CASES[CASE](tensorflow)
