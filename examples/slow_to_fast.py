"""A text classifier whose step is slow for one reason, which the trace names, and the same with one word changed.

    python examples/slow_to_fast.py --optimizer adam --save adam.tftrace
    python examples/slow_to_fast.py --optimizer adagrad --save adagrad.tftrace
    tftracer compare adam.tftrace -- adagrad.tftrace

docs/slow-to-fast.rst tells the story.
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

from tftracer import TracingServer

WORDS, SIZE, LENGTH, BATCH, CLASSES = 100_000, 64, 20, 128, 4
OPTIMIZERS = {"adam": tf.train.AdamOptimizer, "adagrad": tf.train.AdagradOptimizer}


def train_op_of(words, labels, optimizer):
    table = tf.get_variable("words/table", [WORDS, SIZE], initializer=tf.random_normal_initializer(stddev=0.1))
    with tf.variable_scope("classifier"):
        text = tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1)
        hidden = tf.nn.relu(tf.matmul(text, tf.get_variable("hidden", [SIZE, SIZE])))
        logits = tf.matmul(hidden, tf.get_variable("logits", [SIZE, CLASSES]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return tf.group(optimizer.minimize(loss, tf.train.get_or_create_global_step()), name="train")


def texts(seed):
    """Batches of made-up texts: those of a class use the words of their part of the vocabulary more often."""
    chance = np.random.default_rng(seed)
    while True:
        labels = chance.integers(0, CLASSES, BATCH)
        topical = chance.random((BATCH, LENGTH)) < 0.3
        own = labels[:, None] + CLASSES * chance.integers(0, WORDS // CLASSES, (BATCH, LENGTH))
        yield np.where(topical, own, chance.integers(0, WORDS, (BATCH, LENGTH))), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adam")
    parser.add_argument("--steps", type=int, default=1000, help="training steps; 0: until Ctrl-C")
    parser.add_argument("--traces", type=int, default=5, help="steps that are traced, beginning half-way")
    parser.add_argument("--port", type=int, default=9999, help="of the page; the next free one if it is in use")
    parser.add_argument("--save", help="a file for the session")
    options = parser.parse_args()

    tf.disable_eager_execution()
    words = tf.placeholder(tf.int32, [BATCH, LENGTH], name="words")
    labels = tf.placeholder(tf.int32, [BATCH], name="labels")
    train_op = train_op_of(words, labels, OPTIMIZERS[options.optimizer](0.01))

    server = TracingServer(server_port=options.port)
    with tf.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
        for step, batch in enumerate(texts(seed=0), 1):
            if step == options.steps // 2:
                server.trace_next(steps=options.traces)
            session.run(train_op, dict(zip((words, labels), batch)))
            if step == options.steps:
                break
    if options.save:
        server.save_session(options.save)


if __name__ == "__main__":
    main()
