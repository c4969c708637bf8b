"""One task of a parameter-server job: trains until a file appears. Started by test_parameter_server.py with its TF_CONFIG."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from tftracer import TracingServer

LATE_S = 0.3


def rows(slow: bool) -> Iterator[np.ndarray]:
    while True:
        if slow:
            time.sleep(LATE_S)
        yield np.ones((16, 64), np.float32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slow", choices=["input", "compute"], default="input", help="what takes worker 1 its time")
    options = parser.parse_args()
    tf.disable_eager_execution()
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, (job, task) = tf.train.ClusterSpec(config["cluster"]), (config["task"]["type"], config["task"]["index"])
    runtime = tf.train.Server(cluster, job_name=job, task_index=task)
    server = TracingServer(server_port=0)
    aside = options.folder / f"{job}{task}.new"
    aside.write_text(server.url)
    aside.rename(options.folder / f"{job}{task}")
    if job == "ps":
        runtime.join()
    worker = f"/job:worker/task:{task}"
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
        slow = options.slow if task == 1 else ""
        dataset = tf.data.Dataset.from_generator(lambda: rows(slow == "input"), tf.float32, [16, 64])
        hidden = tf.data.make_one_shot_iterator(dataset).get_next()
        size = 2000 if slow == "compute" else 10
        big = tf.random.uniform([size, size])
        hidden += 1e-9 * tf.reduce_mean(tf.matmul(big, big, name="big"))
        for layer in range(6):
            hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable(f"layer{layer}", [64, 64])))
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        train_op = optimizer.minimize(tf.reduce_mean(hidden), global_step=step, name="train")
    filters = tf.ConfigProto(device_filters=["/job:ps", worker])
    with tf.train.MonitoredTrainingSession(runtime.target, task == 0, hooks=[server.hook], config=filters) as session:
        while not (options.folder / "stop").exists():
            session.run(train_op)


if __name__ == "__main__":
    main()
