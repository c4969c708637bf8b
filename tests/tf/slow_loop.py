"""A training with stalls of known kinds, for test_slow_steps.py: ``slow_loop.py session|keras|function|regular FOLDER``.

Stalls that use the CPU use a certain time of it, so that they are what they are on a busy machine, too.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import tftracer
from tftracer.slow.watch_results import Period, SlowRecord, Stall

STALL_S = 0.25
WARM_UP, APART = 40, 4
#: Of the checkpoint: so that writing it takes much longer than a step.
BIG = 32_000_000
GARBAGE = [(number, [number]) for number in range(300_000)]
VALUES = np.random.default_rng(0).random(60_000)
LIST = VALUES.tolist()


def with_numpy() -> None:
    end = time.thread_time() + STALL_S
    while time.thread_time() < end:
        np.sort(VALUES.reshape(300, 200), axis=0)


def with_sort() -> None:
    end = time.thread_time() + STALL_S
    while time.thread_time() < end:
        sorted(LIST)


def with_gc() -> None:
    end = time.thread_time() + STALL_S
    while time.thread_time() < end:
        gc.collect()


def with_sleep() -> None:
    time.sleep(STALL_S)


def with_lock() -> None:
    lock, is_held = threading.Lock(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            time.sleep(STALL_S)

    threading.Thread(target=hold, name="holder").start()
    is_held.wait()
    with lock:
        pass


def with_file() -> None:
    end = time.perf_counter() + STALL_S
    while time.perf_counter() < end:
        with tempfile.TemporaryFile() as file:
            np.save(file, VALUES.repeat(20))
            os.fsync(file.fileno())


def with_condition() -> None:
    condition = threading.Condition()
    with condition:
        condition.wait(STALL_S)


KINDS: list[Callable[[], None]] = [with_numpy, with_sort, with_gc, with_sleep, with_lock, with_file, with_condition]


def plan(step: int) -> tuple[str, Callable[[], None]] | None:
    """What stalls at a step, from 1: inside it, or in the time before it."""
    number, rest = divmod(step - WARM_UP, APART)
    if step < WARM_UP or rest or number >= 2 * len(KINDS):
        return None
    return ("inside", "between")[number % 2], KINDS[number // 2]


STEPS = WARM_UP + APART * (2 * len(KINDS) + 1)
PLANNED = [step for step in range(STEPS) if plan(step)]
#: The training goes on until its slow steps are explained, at most so long.
MAX_STEPS = 100_000
GIVEN: list[Callable[[], None]] = []  # what the Python function in the graph is to do next


def python_function(x: Any) -> Any:
    """What the graph calls at each step."""
    if GIVEN:
        GIVEN.pop()()
    return np.float32(0)


def stall_between(step: int) -> None:
    planned = plan(step)
    if planned and planned[0] == "between":
        planned[1]()


def stall_inside(step: int) -> None:
    planned = plan(step)
    if planned and planned[0] == "inside":
        GIVEN.append(planned[1])


class Slow:
    """Keeps what the watch hands over."""

    def __init__(self, server: tftracer.TracingServer) -> None:
        self.records: list[SlowRecord] = []
        self.server = server
        records = server.recorder.queue.slow
        take = records.take

        def taken() -> list[SlowRecord]:
            new = take()
            self.records.extend(new)
            return new

        records.take = taken  # type: ignore[method-assign]

    def settled(self) -> None:
        """After a warm-up: the medians are known."""
        assert self.server.recorder.flush()

    def explains(self, steps: list[int]) -> bool:
        """Whether the causes of these slow steps are known by now."""
        assert self.server.recorder.flush()
        return set(steps) <= {record.step for record in self.records if isinstance(record, Stall)}

    def has_all(self, step: int) -> bool:
        """Whether the plan is done and its slow steps are explained: looked at now and then, after the last of them."""
        return step > STEPS and step % 50 == 0 and self.explains(PLANNED)

    def finish(self, **more: Any) -> None:
        self.server.close()
        stalls = [stall for stall in self.records if isinstance(stall, Stall)]
        periods = [period for period in self.records if isinstance(period, Period)]
        report = {
            "stalls": [described(stall) for stall in stalls],
            "periods": [[period.steps, period.occurrences, period.cause.kind] for period in periods],
            "problems": [problem["code"] for problem in self.server.recorder.session()["problems"]],
            **more,
        }
        print("TOLD " + json.dumps(report))


def described(stall: Stall) -> dict[str, Any]:
    frame = stall.cause.frame
    return {
        "run": stall.run.title,
        "step": stall.step,
        "inside": stall.inside,
        "seconds": (stall.end_ns - stall.start_ns) * 1e-9,
        "kind": stall.cause.kind,
        "name": stall.cause.name,
        "function": frame.function if frame else "",
        "file": os.path.basename(frame.file) if frame else "",  # noqa: PTH119
        "stacks": [[f"{frame.function}:{frame.line}" for frame in stack.frames[-4:]] for stack in stall.stacks[:3]],
        "others": [
            [stack.thread, stack.samples, *[frame.function for frame in stack.frames[-4:]]] for stack in stall.other_stacks[:6]
        ],
        "doubt": stall.doubt,
        "parts": [[part.kind, round(part.seconds, 3), part.what] for part in stall.parts],
        "samples": [stack.samples for stack in stall.stacks[:3]],
        "traced": stall.is_traced,
    }


def sessions(slow: Slow, folder: str, checkpoint_steps: int, steps: int, before: Callable[[int], object]) -> None:
    """``before`` each step: a true answer ends the training."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        called = v1.py_func(python_function, [x], tf.float32)
        called.set_shape([])
        if checkpoint_steps:
            v1.get_variable("big", [BIG])
        weights = v1.get_variable("w", [4, 4])
        loss = tf.reduce_sum(tf.matmul(x + called, weights))  # TensorFlow needs it for the step, too
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_or_create_global_step(), name="train")
        hooks = [slow.server.hook]
        if checkpoint_steps:
            hooks.append(v1.train.CheckpointSaverHook(folder, save_steps=checkpoint_steps))
        with v1.train.MonitoredSession(hooks=hooks) as session:
            for step in range(1, steps + 1):
                if step in (WARM_UP - 10, WARM_UP - 1):
                    slow.settled()
                if before(step):
                    break
                session.run(train, {x: np.ones((2, 4), np.float32)})


def session(slow: Slow, folder: str) -> None:
    def before(step: int) -> bool:
        stall_between(step)
        stall_inside(step)
        return slow.has_all(step) and any(isinstance(record, Stall) and record.cause.kind == "hook" for record in slow.records)

    # It saves after the first step, and once after all other stalls.
    sessions(slow, folder, STEPS + 5, MAX_STEPS, before)


def regular(slow: Slow, folder: str) -> None:
    """Each 97th step is slow, inside; nobody asks for a trace. It ends soon after one of them was traced."""

    def traces() -> list[Any]:
        return [[trace["step"], trace["asked_by"], trace["duration_s"]] for trace in slow.server.recorder.runs()[0]["traces"]]

    def before(step: int) -> bool:
        time.sleep(0.004)  # as a training that reads its data
        if step % 97 == 0:
            GIVEN.append(lambda: time.sleep(0.35))
        is_traced = step % 97 == 50 and step > 97 and any(asked_by == "slow" for _, asked_by, _ in traces())
        return is_traced and slow.explains(list(range(97, step, 97)))

    sessions(slow, folder, 0, 97 * 60, before)
    slow.finish(traces=traces())


def function(slow: Slow, folder: str) -> None:
    @tf.function
    def train_step(x: Any) -> Any:
        called = tf.numpy_function(python_function, [x], tf.float32)
        return tf.reduce_sum(tf.matmul(x, x)) + called

    x = tf.ones((8, 8))
    for step in range(1, MAX_STEPS):
        if step in (WARM_UP - 10, WARM_UP - 1):
            slow.settled()
        stall_between(step)
        stall_inside(step)
        train_step(x)
        if slow.has_all(step):
            break


class Stalling(tf.keras.callbacks.Callback):
    """Stalls between two steps of fit."""

    def __init__(self, slow: Slow) -> None:
        super().__init__()
        self._slow = slow
        self._steps = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._steps += 1
        following = self._steps + 1
        if following in (WARM_UP - 10, WARM_UP - 1):
            self._slow.settled()
        stall_between(following)
        stall_inside(following)
        self.model.stop_training = self._slow.has_all(following)


class Calling(tf.keras.layers.Layer):
    """Calls the Python function at each step."""

    def call(self, x: Any) -> Any:
        called = tf.numpy_function(python_function, [x], tf.float32)
        called.set_shape([])
        return x + tf.stop_gradient(called)


def keras(slow: Slow, folder: str) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((8,)), layers.Dense(4), Calling(), layers.Dense(1)], name="net")
    model.compile("sgd", "mse", jit_compile=False)
    x, y = np.ones((MAX_STEPS, 8), np.float32), np.ones((MAX_STEPS, 1), np.float32)
    model.fit(x, y, batch_size=1, epochs=1, verbose=0, callbacks=[Stalling(slow)])


def main(mode: str, folder: str) -> None:
    slow = Slow(tftracer.TracingServer(start_web_server_on_start=False, spool_dir=folder))
    {"session": session, "regular": regular, "function": function, "keras": keras}[mode](slow, folder)
    if mode != "regular":
        slow.finish(plan=[[step, planned[0], planned[1].__name__] for step in PLANNED if (planned := plan(step))])


if __name__ == "__main__":
    main(*sys.argv[1:])
