"""The calls of Python functions by a real TensorFlow are measured, each once, and not changed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.tf

SCRIPT = """
import time, traceback
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import script_ops
from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.steps.queue import StepQueue

plain = script_ops.FuncRegistry.__call__
queue = StepQueue()
runs = FunctionRuns(queue)
runs.watch()

# The functions sleep, because their length is what is measured.
def of_py_function(x):
    time.sleep(0.2)
    return x

def of_numpy_function(x):
    time.sleep(0.2)
    return x

def of_session(x):
    time.sleep(0.2)
    return x

def fails(x):
    raise ValueError("bad row")

def rows():
    for row in range(3):
        time.sleep(0.1)
        yield row

def measured(call):
    start = time.perf_counter_ns()
    call()
    found = queue.function_times.within(start, time.perf_counter_ns())
    return found.more_s > 0.05, found.is_called, found.code.co_name if found.code else ""

x = tf.ones([3])
step = tf.function(lambda x: tf.py_function(of_py_function, [x], tf.float32) + 1)
step.get_concrete_function(x)
print("py_function", *measured(lambda: step(x)))
numpy = tf.function(lambda x: tf.numpy_function(of_numpy_function, [x], tf.float32) + 1)
numpy.get_concrete_function(x)
print("numpy_function", *measured(lambda: numpy(x)))
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    fetched = tf.compat.v1.py_func(of_session, [tf.ones([2])], tf.float32)
    print("session", *measured(lambda: session.run(fetched)))
nested = tf.function(lambda x: tf.py_function(lambda y: step(y), [x], tf.float32))
nested.get_concrete_function(x)
print("nested", *measured(lambda: nested(x)))
data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int32))
print("generator", *measured(lambda: list(data)))
matmul = tf.function(lambda x: x * 2)
matmul(x)
print("none", *measured(lambda: matmul(x)))
try:
    tf.function(lambda x: tf.py_function(fails, [x], tf.float32))(x)
except tf.errors.InvalidArgumentError as error:
    print("error", "bad row" in str(error), "tftracer" in str(error), "tftracer" in traceback.format_exc())
runs.stop()
print("restored", script_ops.FuncRegistry.__call__ is plain, float(step(x)[0]), queue.off)
"""
EXPECTED = [
    "py_function True True of_py_function",
    "numpy_function True True of_numpy_function",
    "session True True of_session",
    "nested True True <lambda>",
    "generator True True ",
    "none False False ",
    "error True False False",
    "restored True 2.0 False",
]


def test_each_call_is_measured_once_and_not_changed() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=500)
    assert done.stdout.splitlines() == EXPECTED, done.stderr[-4000:]
