"""The model that the examples train: a small convolutional network on synthetic digits. No download; seconds on a CPU."""

import numpy as np
import tensorflow.compat.v1 as tf

IMAGE, CLASSES = 16, 4


def digits(batch, seed):
    """Endless (images [batch, 16, 16, 1], labels [batch]): noisy bars whose direction is the class."""
    random = np.random.default_rng(seed)
    while True:
        labels = random.integers(0, CLASSES, batch)
        images = random.normal(0, 0.3, (batch, IMAGE, IMAGE, 1)).astype(np.float32)
        for image, label in zip(images, labels):
            place = random.integers(2, IMAGE - 2)
            if label == 0:
                image[place, :, 0] += 1
            elif label == 1:
                image[:, place, 0] += 1
            elif label == 2:
                image[range(IMAGE), range(IMAGE), 0] += 1
            else:
                image[range(IMAGE), range(IMAGE - 1, -1, -1), 0] += 1
        yield images, labels.astype(np.int32)


def variable(name, shape):
    return tf.get_variable(name, shape, initializer=tf.glorot_uniform_initializer())


def logits_of(images):
    """[batch, 16, 16, 1] -> [batch, 4]"""
    hidden = tf.reshape(images, [-1, IMAGE, IMAGE, 1])
    for layer, (inputs, outputs) in enumerate([(1, 16), (16, 32)]):
        with tf.variable_scope(f"conv{layer}", reuse=tf.AUTO_REUSE):
            hidden = tf.nn.relu(tf.nn.conv2d(hidden, variable("kernel", [3, 3, inputs, outputs]), padding="SAME"))
            hidden = tf.nn.max_pool2d(hidden, 2, 2, "SAME")
    with tf.variable_scope("dense", reuse=tf.AUTO_REUSE):
        flat = tf.reshape(hidden, [-1, 4 * 4 * 32])
        return tf.matmul(flat, variable("kernel", [4 * 4 * 32, CLASSES]))


def train_op_of(images, labels, learning_rate=0.05):
    """(train op, loss, accuracy)"""
    logits = logits_of(images)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.MomentumOptimizer(learning_rate, 0.9).minimize(loss, global_step=step, name="train")
    return train_op, loss, accuracy
