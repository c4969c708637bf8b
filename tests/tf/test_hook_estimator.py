"""The hook in tf.estimator (TensorFlow up to 2.15): train and evaluate, one hook for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tftracer.capture.hook import make_hook
from tftracer.session.live import Recorder

pytestmark = [pytest.mark.tf, pytest.mark.estimator]
v1 = tf.compat.v1


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    loss = v1.losses.mean_squared_error(labels, v1.layers.dense(features, 1))
    train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def input_fn() -> Any:
    return tf.data.Dataset.from_tensors((np.ones((4, 3), np.float32), np.ones((4, 1), np.float32))).repeat(20)


def test_train_and_evaluate(tmp_path: Path) -> None:
    recorder = Recorder(spool_dir=tmp_path / "spool").start()
    hook = make_hook(recorder)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "model"))
    recorder.request_traces(None, 1)
    estimator.train(input_fn, hooks=[hook], steps=10)
    estimator.evaluate(input_fn, hooks=[hook], steps=5)
    estimator.train(input_fn, hooks=[hook], steps=10)
    assert recorder.flush()
    counted = [run["steps"] for run in recorder.runs() if run["steps"] > 1]
    assert sorted(counted) == [5, 20]
    assert sum(len(run["traces"]) for run in recorder.runs()) == 1
    assert recorder.session()["problems"] == [] and not recorder.session()["active"]
    recorder.close()
