"""MultiWorkerMirroredStrategy: two processes on this machine that train together."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys


def free_ports():
    """Two below those that the system hands out to connections."""
    free = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 40):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("", port))
            free.append(port)
    return free[:2]


if "TF_CONFIG" not in os.environ:
    workers = [f"127.0.0.1:{port}" for port in free_ports()]
    tasks = [{"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}} for index in range(2)]
    started = [
        subprocess.Popen([sys.executable, __file__], env={**os.environ, "TF_CONFIG": json.dumps(task)}, stdout=subprocess.PIPE)
        for task in tasks
    ]
    print([(process.communicate()[0], process.returncode) for process in started])
    sys.exit()

import tensorflow as tf  # noqa: E402 (the parent needs none)

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(1.0)


@tf.function
def train_step():
    def replica():
        return tf.distribute.get_replica_context().all_reduce("sum", weights * 2.0)

    return strategy.run(replica)


for _ in range(8):
    result = train_step()
print(float(strategy.experimental_local_results(result)[0]))
