"""A Keras model as it is usually written; nothing in it knows of tftracer.

tftracer run examples/keras_fit.py --epochs 20
"""

import argparse

import tensorflow as tf
from small_model import IMAGE, digits

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

batches = digits(64, seed=0)
images, labels = zip(*(next(batches) for _ in range(20)))
data = tf.data.Dataset.from_tensor_slices((tf.concat(images, 0), tf.concat(labels, 0)))
data = data.shuffle(1000).batch(64).prefetch(tf.data.AUTOTUNE)

layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        layers.Input((IMAGE, IMAGE, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10),
    ],
    name="convnet",
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(data, epochs=options.epochs, verbose=2)
model.evaluate(data.take(4), verbose=2)
