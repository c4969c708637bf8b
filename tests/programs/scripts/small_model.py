"""A small Keras model, its data, and a start that gives the same numbers each time."""

import numpy as np
import tensorflow as tf


def begin() -> None:
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    tf.keras.utils.disable_interactive_logging()  # progress bars show times
    # Sums of floats depend on how many threads share them.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def data(rows: int = 320) -> tuple:
    x = np.random.default_rng(0).normal(size=(rows, 8)).astype("float32")
    return x, (x.sum(axis=1, keepdims=True) > 0).astype("float32")


def model(units: int = 8, rate: float = 0.01) -> tf.keras.Model:
    layers = tf.keras.layers
    network = tf.keras.Sequential([tf.keras.Input((8,)), layers.Dense(units, "relu"), layers.Dense(1, "sigmoid")])
    network.compile(tf.keras.optimizers.SGD(rate), "binary_crossentropy", metrics=["accuracy"])
    return network
