"""Run with ``python -m vision.train``: relative imports, and a GradientTape loop."""

import sys

import tensorflow as tf

from . import layers

weights = tf.Variable([[1.0], [2.0]])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((layers.double(x) @ weights - y) ** 2)
    gradient = tape.gradient(loss, weights)
    optimizer.apply_gradients([(gradient, weights)])
    return loss


print(__name__, __package__, sys.argv[1:], sys.modules["__main__"].__spec__.name)
batches = tf.data.Dataset.from_tensor_slices((tf.ones((64, 2)), tf.ones((64, 1)))).batch(8)
for x, y in batches:
    loss = train_step(x, y)
print(f"loss {loss.numpy():.4f}")
