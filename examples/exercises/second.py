"""Exercise 2: more layers, or fewer, make this model hardly slower or faster. What does the training spend its time on?

tftracer run examples/exercises/second.py
"""

import argparse

import numpy as np
import tensorflow as tf

SIZE = 64


def prepared(image, label):
    """The image, turned, blurred and normalized."""
    image = tf.image.random_flip_left_right(tf.cast(image, tf.float32))
    for _ in range(6):
        image = tf.nn.avg_pool2d(image[tf.newaxis], 5, 1, "SAME")[0]
        image = tf.image.resize(tf.image.random_crop(image, [SIZE - 8, SIZE - 8, 3]), [SIZE, SIZE])
    return tf.image.per_image_standardization(image), label


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()

    chance = np.random.default_rng(0)
    images = chance.integers(0, 256, (512, SIZE, SIZE, 3), np.uint8)
    labels = chance.integers(0, 10, len(images))
    data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(512).repeat()
    data = data.map(prepared).batch(32).prefetch(1)

    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((SIZE, SIZE, 3)),
            layers.Conv2D(8, 5, strides=4, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ],
        name="photos",
    )
    optimizer = tf.keras.optimizers.SGD(0.01)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    for step, (images, labels) in enumerate(data.take(options.steps)):
        loss = train_step(images, labels)
        if step % 100 == 0:
            print(f"step {step}: loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
