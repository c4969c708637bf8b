"""A Horovod rank that trains until a file appears, one rank slowed on purpose. Started by test_horovod.py under horovodrun.

All ranks stop at the same step: each feeds whether it has seen the file, and an allreduce tells everybody.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow.compat.v1 as tf

from tftracer import TracingServer

LATE_S = 0.2


def rows(slow: bool) -> Iterator[np.ndarray]:
    """The input pipeline: a slow rank's takes its time."""
    while True:
        if slow:
            time.sleep(LATE_S)
        yield np.ones((16, 64), np.float32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slow", choices=["input", "feed", "compute"], default="input")
    options = parser.parse_args()
    tf.disable_eager_execution()
    hvd.init()
    last = hvd.rank() == hvd.size() - 1

    dataset = tf.data.Dataset.from_generator(lambda: rows(last and options.slow == "input"), tf.float32, [16, 64])
    hidden = tf.data.make_one_shot_iterator(dataset).get_next()
    stop = tf.placeholder(tf.float32, [], name="stop")
    size = 2000 if last and options.slow == "compute" else 10
    big = tf.random.uniform([size, size])
    hidden += 1e-9 * tf.reduce_mean(tf.matmul(big, big, name="big"))
    for layer in range(6):
        hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable(f"layer{layer}", [64, 64])))
    loss = tf.reduce_mean(hidden)
    step = tf.train.get_or_create_global_step()
    train_op = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.01)).minimize(loss, global_step=step)
    with tf.control_dependencies([train_op]):
        stopped = hvd.allreduce(stop, op=hvd.Sum, name="stopped")
        others = [hvd.allgather(tf.fill([1], stop)), hvd.broadcast(stop, 0), *hvd.grouped_allreduce([stop, 2 * stop])]

    server = TracingServer(server_port=0, keep_traces=100)  # where one was late, more are made
    if hvd.rank() == 0:
        aside = options.folder / "url.new"
        aside.write_text(server.url)
        aside.rename(options.folder / "url")
    with tf.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0), server.hook]) as session:
        over = 0.0
        while not over:
            if last and options.slow == "feed":
                time.sleep(LATE_S)
            over = session.run([train_op, stopped, others], {stop: float((options.folder / "stop").exists())})[1]


if __name__ == "__main__":
    main()
