"""A real training whose every 97th step waits for a slow read inside the graph, and that writes large logs now and then.

Prints ``URL url`` once the page is up, and trains until its standard input is closed.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

from tftracer import TracingServer

PERIOD, STALL_S = 97, 0.15
reads = 0


def read_batch() -> np.ndarray:
    """Each 97th comes from a slow disk."""
    global reads
    reads += 1
    if reads % PERIOD == 0:
        time.sleep(STALL_S)
    return np.ones([8, 16], np.float32)


def prepare_next() -> float:
    """Between the steps, in Python."""
    return sum(float(i) for i in range(40_000))


def main() -> None:
    tf.disable_eager_execution()
    server = TracingServer(server_port=0, token="e2e")
    batch = tf.py_func(read_batch, [], tf.float32, name="read_batch")
    batch.set_shape([8, 16])
    loss = tf.reduce_sum(tf.matmul(batch, tf.get_variable("w", [16, 4])), name="loss")
    train = tf.train.GradientDescentOptimizer(0.001).minimize(loss, tf.train.get_or_create_global_step())
    ended = threading.Event()

    def await_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=await_end, daemon=True).start()
    with tf.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
        print("URL", server.url, flush=True)
        while not ended.is_set():
            session.run(train)
            prepare_next()
    print("ENDED", server.session_file, flush=True)


main()
