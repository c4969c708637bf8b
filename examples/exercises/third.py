"""Exercise 3: all steps of this training take alike long, about twice as long as its matrices need. What is wrong with them?

tftracer run examples/exercises/third.py
"""

import argparse

import numpy as np
import tensorflow as tf

BATCH, WIDTH, CLASSES = 256, 512, 16
LAYERS = ["first", "second", "third"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()

    chance = np.random.default_rng(0)
    weights = {name: tf.Variable(chance.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)), name=name) for name in LAYERS}
    weights["head"] = tf.Variable(chance.normal(0, WIDTH**-0.5, (WIDTH, CLASSES)), name="head")
    rows = chance.normal(size=(8 * BATCH, WIDTH))
    targets = chance.integers(0, CLASSES, len(rows))

    @tf.function
    def train_step(inputs, labels):
        with tf.GradientTape() as tape:
            hidden = inputs
            for name in LAYERS:
                with tf.name_scope(name):
                    hidden = tf.nn.relu(tf.matmul(hidden, weights[name]))
            with tf.name_scope("head"):
                logits = tf.matmul(hidden, weights["head"])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for weight, gradient in zip(weights.values(), tape.gradient(loss, list(weights.values()))):
            weight.assign_sub(0.01 * gradient)
        return loss

    for step in range(options.steps):
        batch = slice(step % 8 * BATCH, (step % 8 + 1) * BATCH)
        loss = train_step(tf.constant(rows[batch]), tf.constant(targets[batch]))
        if step % 200 == 0:
            print(f"step {step}: loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
