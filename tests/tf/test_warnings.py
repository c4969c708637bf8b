"""TensorFlow warns of the script's lines under ``tftracer run``, as it does without: never of a line of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tf

SCRIPT = """
import tensorflow as tf
v1 = tf.compat.v1

def model(features, labels, mode):
    weight = v1.get_variable("weight", [])
    loss = tf.reduce_mean((features * weight - 1.0) ** 2)
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

if hasattr(tf, "estimator"):  # up to TensorFlow 2.15
    tf.estimator.Estimator(model, "model").train(lambda: tf.data.Dataset.from_tensors([1.0]).repeat(), steps=3)
else:
    with tf.Graph().as_default():
        train = v1.assign_add(v1.train.get_or_create_global_step(), 1)
        with v1.train.MonitoredTrainingSession(hooks=[v1.train.StopAtStepHook(3)]) as session:
            while not session.should_stop():
                session.run(train)
"""


def warnings_of(*command: str, folder: Path) -> set[str]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, cwd=folder, env=os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    warned = {line for line in done.stderr.splitlines() if line.startswith("WARNING:tensorflow")}
    # A hook of TensorFlow's reads the global step beside the op that counts it, and warns when it comes first: by chance.
    return {line for line in warned if "global step (tf.train.get_global_step) has not been increased" not in line}


def test_deprecations_name_the_same_lines_as_without_the_tracer(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    alone = warnings_of("train.py", folder=tmp_path)
    shutil.rmtree(tmp_path / "model", ignore_errors=True)
    assert warnings_of("-m", "tftracer", "run", "--output", "session.tftrace", "train.py", folder=tmp_path) == alone
