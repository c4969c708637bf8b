"""Horovod, all of its processes under tracing.

    horovodrun -np 2 python examples/horovod_all.py --steps 500

Each rank serves its page on 9999 plus its local rank. Open rank 0's: it lists all ranks, and *Trace step on all ranks* there
opens the same step of all as one timeline.
"""

import argparse

import horovod.tensorflow as hvd
import tensorflow.compat.v1 as tf
from small_model import IMAGE, digits, train_op_of

from tftracer import TracingServer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--stay", action="store_true", help="keep the pages open after training")
    options = parser.parse_args()

    tf.disable_eager_execution()
    hvd.init()
    images = tf.placeholder(tf.float32, [None, IMAGE, IMAGE, 1], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    train_op, loss, _ = train_op_of(images, labels, distribute=hvd.DistributedOptimizer)
    batches = digits(options.batch, seed=hvd.rank())

    hooks = [hvd.BroadcastGlobalVariablesHook(0)]
    server = TracingServer(is_horovod=True)
    hooks.append(server.hook)
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        for step in range(options.steps):
            _, value = session.run([train_op, loss], dict(zip((images, labels), next(batches))))
            if hvd.rank() == 0 and step % 100 == 99:
                print(f"step {step + 1}: loss {value:.3f}", flush=True)
    if options.stay:
        server.join()


if __name__ == "__main__":
    main()
