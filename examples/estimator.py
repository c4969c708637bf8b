"""A tf.estimator.Estimator under tracing (TensorFlow up to 2.15): train and evaluate with ``hooks=[server.hook]``.

python examples/estimator.py --steps 500
"""

import argparse

import tensorflow as tf
from small_model import CLASSES, IMAGE, digits, logits_of, train_op_of

from tftracer import TracingServer

v1 = tf.compat.v1


def input_fn():
    def batches():
        yield from digits(64, seed=0)

    shapes = ([None, IMAGE, IMAGE, 1], [None])
    dataset = tf.data.Dataset.from_generator(batches, (tf.float32, tf.int32), shapes)
    return dataset.prefetch(2)


def model_fn(features, labels, mode):
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits_of(features))
    train_op, loss, _ = train_op_of(features, labels)
    predictions = v1.argmax(logits_of(features), 1)
    metrics = {"confusion": v1.metrics.mean_per_class_accuracy(labels, predictions, CLASSES)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--stay", action="store_true", help="keep the page open after training")
    options = parser.parse_args()

    server = TracingServer()
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=options.steps, hooks=[server.hook])
    print(estimator.evaluate(input_fn, steps=20, hooks=[server.hook]))
    if options.stay:
        server.join()


if __name__ == "__main__":
    main()
