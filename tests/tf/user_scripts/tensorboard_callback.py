"""TensorBoard's callback, which uses TensorFlow's only profiler for a batch of its own."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)], name="net")
model.compile("sgd", "mse")
logs = tempfile.mkdtemp()
board = tf.keras.callbacks.TensorBoard(logs, profile_batch=(2, 3))
model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=2, batch_size=8, verbose=0, callbacks=[board])
print(len(list(pathlib.Path(logs).rglob("*.xplane.pb"))), "profile")
