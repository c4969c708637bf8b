"""The job that the browser tests watch: a small training loop that runs until its standard input closes.

    python job.py [--layers N] [--port PORT]

Prints ``URL <url>`` once, then trains; a line ``steps`` on standard input makes it print the steps done so far.
"""

from __future__ import annotations

import argparse
import sys
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from tftracer import TracingServer


def dense_layers(layers: int, width: int = 32) -> tuple[tf.Tensor, tf.Operation, tf.Tensor]:
    """(input, train op, loss) of a chain of dense layers."""
    inputs = tf.placeholder(tf.float32, [None, width], name="x")
    hidden = inputs
    for layer in range(layers):
        weights = tf.get_variable(f"w{layer}", [width, width], initializer=tf.glorot_uniform_initializer())
        hidden = tf.tanh(tf.matmul(hidden, weights))
    loss = tf.reduce_mean(tf.square(hidden - 0.5), name="loss")
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())
    return inputs, train, loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--port", type=int, default=9999)
    options = parser.parse_args()

    stop = threading.Event()
    steps = [0]

    def listen() -> None:
        for line in sys.stdin:
            if line.strip() == "steps":
                print("STEPS", steps[0], flush=True)
        stop.set()

    tf.disable_eager_execution()
    inputs, train, loss = dense_layers(options.layers)
    random = np.random.default_rng(0)
    server = TracingServer(server_port=options.port)
    print("URL", server.url, flush=True)
    threading.Thread(target=listen, daemon=True).start()
    with tf.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
        while not stop.wait(0.005):  # a step now and then: the tests share two cores with it
            session.run(train, {inputs: random.normal(size=(8, 32))})
            steps[0] += 1
            if steps[0] % 10 == 0:
                session.run({"loss": loss}, {inputs: random.normal(size=(8, 32))})
    print("ENDED", steps[0], flush=True)
    server.join()


if __name__ == "__main__":
    main()
