"""Steps that the script names itself: an eager loop with ``server.step``, a function with ``@server.trace``.

python examples/own_steps.py --steps 500
"""

import argparse

import tensorflow as tf
from small_model import IMAGE, digits

from tftracer import TracingServer

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=500)
options = parser.parse_args()

weights = tf.Variable(tf.zeros([IMAGE * IMAGE, 10]))
batches = digits(64, seed=0)
server = TracingServer()


def loss_of(images, labels):
    logits = tf.matmul(tf.reshape(images, [-1, IMAGE * IMAGE]), weights)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


@server.trace
def validate():
    return loss_of(*next(batches))


for number in range(options.steps):
    images, labels = next(batches)
    with server.step("train"):
        with tf.GradientTape() as tape:
            loss = loss_of(images, labels)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
    if number % 10 == 0:
        validate()
print(f"loss {float(loss):.3f}")
