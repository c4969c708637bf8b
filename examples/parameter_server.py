"""A parameter server and its workers (between-graph replication over TensorFlow's own grpc), the workers under tracing.

Each process gets its place by TF_CONFIG, as a cluster's scheduler would set it; without one, this starts them all here:

    python examples/parameter_server.py --workers 2 --steps 500

The page of worker 0 lists all processes; *Trace step on all ranks* there opens a step of all workers as one timeline.
"""

import argparse
import json
import os
import socket
import subprocess
import sys

import tensorflow.compat.v1 as tf
from small_model import IMAGE, digits, train_op_of

from tftracer import TracingServer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500, help="of each worker")
    parser.add_argument("--stay", action="store_true", help="keep the pages open after training")
    options = parser.parse_args()
    if "TF_CONFIG" not in os.environ:
        sys.exit(start_all(options.workers))

    tf.disable_eager_execution()
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, (job, task) = tf.train.ClusterSpec(config["cluster"]), (config["task"]["type"], config["task"]["index"])
    runtime = tf.train.Server(cluster, job_name=job, task_index=task)
    if job == "ps":
        TracingServer()  # so that the job's page lists it too
        runtime.join()
    else:
        work(runtime, cluster, task, options)


def work(runtime, cluster, task, options):
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{task}")):
        images = tf.placeholder(tf.float32, [None, IMAGE, IMAGE, 1], name="images")
        labels = tf.placeholder(tf.int32, [None], name="labels")
        train_op, loss, _ = train_op_of(images, labels)
    batches = digits(64, seed=task)

    server = TracingServer()
    # A worker talks to the server and to itself: it need not wait for the other workers, nor they for it when it has ended.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"])
    chief, hooks = task == 0, [server.hook]
    with tf.train.MonitoredTrainingSession(runtime.target, is_chief=chief, hooks=hooks, config=config) as session:
        for step in range(options.steps):
            _, value = session.run([train_op, loss], dict(zip((images, labels), next(batches))))
            if task == 0 and step % 100 == 99:
                print(f"step {step + 1}: loss {value:.3f}", flush=True)
    if options.stay:
        server.join()


def start_all(workers):
    """One parameter server and the workers, each a process of its own; the server ends with the last worker."""
    ports = [free_port() for _ in range(workers + 1)]
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{port}" for port in ports[1:]]}
    started = [start(cluster, "worker", task) for task in range(workers)]
    ps = start(cluster, "ps", 0)
    try:
        return max(process.wait() for process in started)
    finally:
        ps.terminate()
        ps.wait()


def start(cluster, job, task):
    config = json.dumps({"cluster": cluster, "task": {"type": job, "index": task}})
    return subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "TF_CONFIG": config})


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
