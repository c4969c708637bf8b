"""Scripts under hook_inject, each in a process of its own, because hook_inject changes TensorFlow's classes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

START = """
import json
import numpy as np
import tftracer
server = tftracer.hook_inject(start_web_server_on_start=False)
assert tftracer.hook_inject(server_port=1) is server
recorder = server.recorder
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [None, 2], name="x")
y = tf.reduce_sum(x, name="y")
def runs():
    assert recorder.flush()
    return {run["title"]: (run["steps"], [trace["step"] for trace in run["traces"]]) for run in recorder.runs()}
def run_id(title):
    assert recorder.flush()
    return next(run["id"] for run in recorder.runs() if run["title"] == title)
def batch():
    return np.ones((1, 2), np.float32)
problems = []
"""
EAGER_START = """
import json, sys
import numpy as np
import tftracer
import tensorflow as tf
server = tftracer.hook_inject(start_web_server_on_start=False)
recorder = server.recorder
def runs():
    assert recorder.flush()
    return {run["title"]: (run["steps"], [trace["step"] for trace in run["traces"]]) for run in recorder.runs()}
def the_run(title):
    assert recorder.flush()
    return next(run for run in recorder.runs() if run["title"] == title)
def network(**options):
    layers = tf.keras.layers
    made = tf.keras.Sequential([layers.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(1)], name="net")
    made.compile("sgd", "mse", **options)
    return made
def batches(count):
    x, y = np.ones((32 * count, 8), np.float32), np.ones((32 * count, 1), np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
problems = []
"""
END = """
assert [problem["code"] for problem in recorder.session()["problems"]] == problems, recorder.session()["problems"]
print("fine")
"""


def run_eager_script(body: str, tmp_path: Path) -> None:
    run_script(body, tmp_path, EAGER_START)


def run_script(body: str, tmp_path: Path, start: str = START) -> None:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": str(tmp_path), "PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, "-c", start + body + END]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("fine\n"), f"exit status {done.returncode}: {done.stderr[-6000:]}"
