"""A training that saves its weights on every 60th step, and takes long for it: the sample that ``tftracer demo`` opens.

    tftracer run --trace 4 --from 100 --output training.tftrace examples/slow_checkpoints.py

Its slow steps, their period and the line that takes the time are found without anyone watching; its traces show the model's ops.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

IMAGES, SIZE, CLASSES = 32, 28, 10
EVERY = 60


def model_of(chance):
    """Weights of two convolutions and a dense layer."""
    shapes = {"conv1": [3, 3, 1, 16], "conv2": [3, 3, 16, 32], "dense": [SIZE * SIZE // 16 * 32, CLASSES]}
    return {name: tf.Variable(chance.normal(0, 0.05, shape).astype(np.float32), name=name) for name, shape in shapes.items()}


def logits_of(weights, images):
    for name in ("conv1", "conv2"):
        with tf.name_scope(name):
            images = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(images, weights[name], 1, "SAME")), 2, 2, "SAME")
    with tf.name_scope("dense"):
        return tf.matmul(tf.reshape(images, [IMAGES, -1]), weights["dense"])


def save_checkpoint(weights, history, folder):
    """Compresses far more than the weights: all batches that were seen since the last time."""
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    np.savez_compressed(Path(folder) / "checkpoint.npz", *history, **arrays)
    history.clear()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=900)
    steps = parser.parse_args().steps
    chance = np.random.default_rng(0)
    weights = model_of(chance)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits_of(weights, images))
            loss = tf.reduce_mean(losses)
        for weight, gradient in zip(weights.values(), tape.gradient(loss, list(weights.values()))):
            weight.assign_sub(0.01 * gradient)
        return loss

    history = []
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, steps + 1):
            images = chance.random((IMAGES, SIZE, SIZE, 1), np.float32)
            history.append(images)
            train_step(images, chance.integers(0, CLASSES, IMAGES))
            if step % EVERY == 0:
                save_checkpoint(weights, history, folder)


if __name__ == "__main__":
    main()
