"""Made while_loop_tf2.15_cpu.pb and estimator_tf2.15_cpu.pb (TensorFlow 2.15): ``python tests/data/golden/record.py FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def full_trace() -> tuple[object, object]:
    return v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True), v1.RunMetadata()


def while_loop() -> bytes:
    """Twenty turns of a loop over a 64 x 64 product, control flow v1."""
    with v1.Graph().as_default(), v1.Session() as session:
        v1.disable_control_flow_v2()
        start = v1.random_uniform([64, 64], seed=1)
        _, result = v1.while_loop(lambda i, x: i < 20, lambda i, x: (i + 1, tf.tanh(tf.matmul(x, x))), [0, start])
        total = v1.reduce_sum(result)
        for _ in range(3):
            session.run(total)
        options, metadata = full_trace()
        session.run(total, options=options, run_metadata=metadata)
        return bytes(metadata.SerializeToString())  # type: ignore[attr-defined]


class Tracing(v1.train.SessionRunHook):
    """Traces the third step."""

    def __init__(self) -> None:
        self.steps, self.traced = 0, b""

    def before_run(self, run_context: object) -> object:
        options = full_trace()[0] if self.steps == 2 else None
        return v1.train.SessionRunArgs(None, options=options)

    def after_run(self, run_context: object, run_values: object) -> None:
        if self.steps == 2:
            self.traced = bytes(run_values.run_metadata.SerializeToString())  # type: ignore[attr-defined]
        self.steps += 1


def estimator() -> bytes:
    """A linear classifier on sixteen features, fed by tf.data."""
    features = np.random.default_rng(0).normal(size=(256, 16)).astype(np.float32)
    labels = (features.sum(axis=1) > 0).astype(np.int32)

    def batches() -> object:
        data = tf.data.Dataset.from_tensor_slices(({"x": features}, labels))
        return data.repeat().batch(32).prefetch(1)

    model = tf.estimator.DNNClassifier([32, 16], [tf.feature_column.numeric_column("x", [16])])
    hook = Tracing()
    model.train(batches, hooks=[hook], steps=5)
    return hook.traced


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "while_loop_tf2.15_cpu.pb").write_bytes(while_loop())
    (folder / "estimator_tf2.15_cpu.pb").write_bytes(estimator())


if __name__ == "__main__":
    main()
