"""Horovod and an Estimator (TensorFlow up to 2.15), all of its processes under tracing.

horovodrun -np 2 python examples/horovod_all_estimator.py --steps 500
"""

import argparse

import horovod.tensorflow as hvd
import tensorflow as tf
from small_model import IMAGE, digits, train_op_of

from tftracer import TracingServer

v1 = tf.compat.v1


def input_fn():
    def batches():
        yield from digits(64, seed=hvd.rank())

    shapes = ([None, IMAGE, IMAGE, 1], [None])
    return tf.data.Dataset.from_generator(batches, (tf.float32, tf.int32), shapes).prefetch(2)


def model_fn(features, labels, mode):
    train_op, loss, _ = train_op_of(features, labels, distribute=hvd.DistributedOptimizer)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--stay", action="store_true", help="keep the pages open after training")
    options = parser.parse_args()

    v1.disable_eager_execution()
    hvd.init()
    hooks = [hvd.BroadcastGlobalVariablesHook(0)]
    server = TracingServer(is_horovod=True)
    hooks.append(server.hook)
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=options.steps, hooks=hooks)
    if hvd.rank() == 0:
        print(f"trained {options.steps} steps on {hvd.size()} ranks", flush=True)
    if options.stay:
        server.join()


if __name__ == "__main__":
    main()
