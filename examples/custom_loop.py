"""A training loop of one's own with a GradientTape; nothing in it knows of tftracer.

tftracer run examples/custom_loop.py --steps 500
"""

import argparse

import tensorflow as tf
from small_model import IMAGE, digits

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=500)
options = parser.parse_args()

layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((IMAGE, IMAGE, 1)), layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


batches = digits(64, seed=0)
for _ in range(options.steps):
    images, labels = next(batches)
    loss = train_step(tf.constant(images), tf.constant(labels))  # as tensors: a Python value would build the graph again
print(f"loss {float(loss):.3f}")
