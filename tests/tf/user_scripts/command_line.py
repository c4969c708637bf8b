"""A script with arguments: Keras's fit, evaluate and predict, as the tutorials do it."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--port", type=int, help="an option that tftracer run has, too")
parser.add_argument("-m", "--model", default="net")
args = parser.parse_args()
print(args)

tf.keras.utils.set_random_seed(1)
images = np.random.rand(128, 8).astype("float32")
labels = np.random.randint(0, 3, 128)
model = tf.keras.Sequential(
    [tf.keras.layers.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)], name=args.model
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(images, labels, epochs=args.epochs, batch_size=32, verbose=0)
print([round(float(loss), 4) for loss in history.history["loss"]])
print([round(float(value), 4) for value in model.evaluate(images, labels, verbose=0)])
print(model.predict(images[:64], verbose=0).shape)
