"""Exercise 1: a Keras model that trains quickly, but for a pause now and then. Where does the pause come from?

tftracer run examples/exercises/first.py
"""

import argparse
import random
import re

import numpy as np
import tensorflow as tf

WORDS = ["loss", "step", "rate", "norm", "batch", "shard", "retry", "cache"]


class Journal(tf.keras.callbacks.Callback):
    """Keeps a journal of the training, and counts what is in it."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.chance = random.Random(0)
        self.counts = {}

    def on_train_batch_end(self, batch, logs=None):
        for _ in range(50):
            self.lines.append(" ".join(f"{self.chance.choice(WORDS)}={self.chance.random():.6f}" for _ in range(12)))
        if len(self.lines) >= 3200:
            self.counts = count_large(" ".join(self.lines))
            self.lines.clear()


def count_large(text):
    """How often each word has a value of 0.9 and more."""
    return {word: len([value for name, value in sorted(pairs(text)) if name == word and value >= 0.9]) for word in WORDS}


def pairs(text):
    return [(name, float(value)) for name, value in re.findall(r"(\w+)=(0\.\d+)", text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()

    chance = np.random.default_rng(0)
    images = chance.normal(size=(250 * 32, 24, 24, 1)).astype(np.float32)
    labels = chance.integers(0, 10, len(images))
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((24, 24, 1)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ],
        name="digits",
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=32, epochs=options.epochs, verbose=2, callbacks=[Journal()])


if __name__ == "__main__":
    main()
