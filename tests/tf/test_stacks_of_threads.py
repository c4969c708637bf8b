"""Stacks are read from inside while TensorFlow begins and ends threads that call Python functions: the process lives on.

``faulthandler.dump_traceback`` killed it in seconds: it goes through the list of threads without that list's lock.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.tf

SCRIPT = """
import threading, time
import tensorflow as tf
from tftracer.slow.watch.stacks_from_inside import stacks_of_threads

@tf.function
def step(x):
    return tf.add_n([tf.numpy_function(lambda a: a, [x + i], tf.float32) for i in range(6)])

def look():
    for _ in range(20_000):
        stacks_of_threads()
        time.sleep(0.0002)

x = tf.constant(1.0)
looking = threading.Thread(target=look)
looking.start()
while looking.is_alive():
    step(x)
print("lives")
"""


def test_reading_stacks_beside_python_functions_of_tensorflow_does_not_kill_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stdout) == (0, "lives\n"), done.stderr[-2000:]
