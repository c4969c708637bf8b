"""Keras with the callback: each trace says of which epoch its step was.

python examples/keras_callback.py --epochs 20
"""

import argparse

import tensorflow as tf
from small_model import IMAGE, digits

from tftracer import TracingServer

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((IMAGE, IMAGE, 1)), layers.Flatten(), layers.Dense(10)], name="linear")
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images, labels = next(digits(640, seed=0))

server = TracingServer()
model.fit(images, labels, batch_size=64, epochs=options.epochs, verbose=2, callbacks=[server.callback])
