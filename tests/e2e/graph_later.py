"""A compiled function that was called before the tracer came: its graph has to be asked for. Trains until its input ends."""

from __future__ import annotations

import sys
import threading

import tensorflow as tf

weights = tf.Variable(tf.ones((64, 64)))
ended = threading.Event()


@tf.function
def train(x: tf.Tensor) -> tf.Tensor:
    for _ in range(10):
        x = tf.tanh(tf.matmul(x, weights))
    return tf.reduce_sum(x)


def listen() -> None:
    sys.stdin.read()
    ended.set()


batch = tf.ones((64, 64))
train(batch)

import tftracer  # noqa: E402

server = tftracer.hook_inject(server_port=0)
threading.Thread(target=listen, daemon=True).start()
train(batch)
print("URL", server.url, flush=True)
while not ended.wait(0.02):  # two cores are shared with a browser
    train(batch)
