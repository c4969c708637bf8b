"""Fails within TensorFlow, in the way that its argument names."""

import sys

import numpy as np
import tensorflow as tf

kind = sys.argv[1]


def outside(x):
    return tf.gather(tf.ones(3), x, name="mine")


def network(*layers):
    made = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


if kind == "function":
    tf.function(outside)(tf.constant(7))
elif kind == "variable":
    variable, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = variable * outside(x)
        optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])

    step(tf.constant(7))
elif kind == "keras":
    embedded = network(tf.keras.layers.Embedding(3, 2), tf.keras.layers.Flatten())
    embedded.fit(np.full((8, 4), 7), np.ones((8, 1), np.float32), verbose=0)
elif kind == "optimizer":
    tf.keras.optimizers.SGD(0.1).apply_gradients([(tf.constant(1.0), tf.Variable(1.0)), (3, 4, 5)])
elif kind == "batch":
    network().train_on_batch(np.ones((8, 4), np.float32), np.ones((5, 3), np.float32))
else:
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    number = v1.placeholder(tf.int32, [], name="number")
    with v1.Session() as session:
        if kind == "session":
            session.run(outside(number), {number: 7})
        else:
            session.make_callable(outside(tf.constant(7)))()
