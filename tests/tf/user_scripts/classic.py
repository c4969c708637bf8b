"""TensorFlow 1 style: an Estimator where there still is one, and a MonitoredTrainingSession."""

import sys
import tempfile

import tensorflow.compat.v1 as tf

if sys.argv[1] == "estimator":

    def model_fn(features, labels, mode):
        loss = tf.reduce_mean((tf.layers.dense(features["x"], 1) - labels) ** 2)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step(), name="train")
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": tf.ones((4, 2))}, tf.ones((4, 1)))).repeat()

    estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    estimator.train(input_fn, steps=12)
    print(sorted(estimator.evaluate(input_fn, steps=3)))
else:
    tf.disable_eager_execution()
    tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None], name="x")
    total = tf.reduce_sum(x, name="total")
    count = tf.assign_add(tf.train.get_global_step(), 1, name="count")
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(12)]) as session:
        while not session.should_stop():
            result, _ = session.run([total, count], {x: [1.0, 2.0]})
    print(float(result))
