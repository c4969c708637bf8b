"""Keras in graph mode (Keras 2: TensorFlow up to 2.15) under hook_inject."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_script

pytestmark = pytest.mark.tf


def test_keras_in_graph_mode(tmp_path: Path) -> None:
    run_script(
        """
import tensorflow
model = tensorflow.keras.Sequential([tensorflow.keras.layers.Dense(1, input_shape=(2,))])
model.compile("sgd", "mse")
data, labels = np.ones((32, 2), np.float32), np.ones((32, 1), np.float32)
model.fit(data, labels, batch_size=8, epochs=2, verbose=0)
(trained,) = [title for title, (steps, _) in runs().items() if steps == 8]
recorder.request_traces(run_id(trained), 2)
model.fit(data, labels, batch_size=8, verbose=0)
before = dict(runs())
assert before[trained] == (12, [9, 10]), before
assert model.predict(data, batch_size=8, verbose=0).shape == (32, 1)
(predicted,) = [title for title, (steps, _) in runs().items() if steps - before.get(title, (0,))[0] == 4]
assert predicted != trained
""",
        tmp_path,
    )
