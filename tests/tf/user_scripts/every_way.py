"""Every way to train with tf.function and Keras, a few steps of each; again with each line of input."""

import sys

import tensorflow as tf

layers = tf.keras.layers


def network(name, **options):
    model = tf.keras.Sequential([layers.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(1)], name=name)
    model.compile("sgd", "mse", **options)
    return model


def data(batches):
    return tf.data.Dataset.from_tensor_slices((tf.ones((8 * batches, 8)), tf.ones((8 * batches, 1)))).batch(8)


plain, batchwise = network("plain"), network("batchwise")
compiled, eager = network("compiled", jit_compile=True), network("eager", run_eagerly=True)
several = network("several", steps_per_execution=4)
weights = tf.Variable(tf.ones((8, 1)))
strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    mirrored = tf.Variable(tf.ones((8, 1)))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - y) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


@tf.function(jit_compile=True)
def xla_step(x):
    return tf.reduce_sum(tf.matmul(x, x, transpose_a=True))


@tf.function
def distributed_step(x):
    return strategy.run(lambda: tf.reduce_sum(tf.matmul(x, mirrored)))


@tf.function
def replica_step(x):
    return tf.reduce_sum(tf.matmul(x, mirrored))


def train():
    plain.fit(data(4), verbose=0)
    plain.evaluate(data(3), verbose=0)
    plain.predict(data(2).map(lambda x, y: x), verbose=0)
    batchwise.train_on_batch(tf.ones((8, 8)), tf.ones((8, 1)))
    batchwise.test_on_batch(tf.ones((8, 8)), tf.ones((8, 1)))
    batchwise.predict_on_batch(tf.ones((8, 8)))
    eager.train_on_batch(tf.ones((8, 8)), tf.ones((8, 1)))
    compiled.fit(data(4), verbose=0)
    several.fit(data(8), verbose=0)
    eager.fit(data(4), verbose=0)
    for x, y in data(5):
        train_step(x, y)
        xla_step(x)
        distributed_step(x)
        strategy.run(replica_step, (x,))


train()
print("trained", flush=True)
for _ in sys.stdin:
    train()
    print("again", flush=True)
