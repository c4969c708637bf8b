"""Mixed precision, XLA, a distribution strategy and steps_per_execution."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x, y = np.random.rand(64, 8).astype("float32"), np.random.rand(64, 1).astype("float32")


def network(name):
    inputs = tf.keras.Input((8,))
    hidden = tf.keras.layers.Dense(16, activation="relu")(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1, dtype="float32")(hidden), name=name)


tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = network("half")
model.compile("adam", "mse")
print(model.layers[1].compute_dtype, round(model.fit(x, y, batch_size=8, verbose=0).history["loss"][0], 2))
tf.keras.mixed_precision.set_global_policy("float32")
with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
    mirrored = network("mirrored")
    mirrored.compile("sgd", "mse", steps_per_execution=4)
print(round(mirrored.fit(x, y, batch_size=8, verbose=0).history["loss"][0], 3))
