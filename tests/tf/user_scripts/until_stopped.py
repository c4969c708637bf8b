"""Trains until somebody stops it."""

import tensorflow as tf

weights = tf.Variable(1.0)


@tf.function
def train_step(x):
    weights.assign_add(x)
    return weights


for number in range(10**9):
    train_step(tf.constant(0.1))
    if number == 20:
        print("ready", flush=True)
