"""Models whose steps compute nearly all the time: some made slow by one thing, others balanced. For record_compute_steps.py.

Each function builds a model in the current graph and returns its train op and what it is fed. ``scale`` makes the second set's
models larger than the first's, so that what was chosen on one is checked on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
Built = tuple[Any, dict[Any, Any]]
random = np.random.default_rng(0)


def weights(name: str, shape: list[int], dtype: Any = tf.float32) -> Any:
    return v1.get_variable(name, shape, dtype, initializer=v1.random_normal_initializer(stddev=0.05, dtype=dtype))


def convolution(x: Any, name: str, filters: int, size: int = 3, stride: int = 1) -> Any:
    kernel = weights(name, [size, size, int(x.shape[-1]), filters])
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, stride, "SAME"), weights(f"{name}_bias", [filters])))


def dense(x: Any, name: str, width: int) -> Any:
    return tf.nn.bias_add(tf.matmul(x, weights(name, [int(x.shape[-1]), width])), weights(f"{name}_bias", [width]))


def descend(loss: Any) -> Any:
    return v1.train.GradientDescentOptimizer(0.01).minimize(loss)


def classify(logits: Any, labels: Any) -> Any:
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    return v1.train.AdamOptimizer(1e-3).minimize(loss)


# ------------------------------------------------------------------------------------------- each made slow by one thing


def float64(scale: int) -> Built:
    """An MLP whose input is of NumPy's own type, and so all of it."""
    return layers(scale, tf.float64)


def layers(scale: int, dtype: Any = tf.float32) -> Built:
    x = v1.placeholder(dtype, [128 * scale, 512])
    h = x
    for i in range(5):
        h = tf.nn.relu(tf.matmul(h, weights(f"w{i}", [512, 512], dtype)))
    return descend(tf.reduce_mean(h * h)), {x: random.random((128 * scale, 512))}


def transposes(scale: int) -> Built:
    """Channels first outside and last within each convolution, as in a port from another framework."""
    x = v1.placeholder(tf.float32, [32, 32, 16 * scale, 32])
    h = x
    for i in range(5):
        z = tf.transpose(h, [0, 2, 3, 1])
        z = tf.nn.conv2d(z, weights(f"k{i}", [1, 1, 32, 32]), 1, "SAME")
        h = tf.nn.relu(tf.transpose(z, [0, 3, 1, 2]))
    return descend(tf.reduce_mean(h * h)), {x: random.random((32, 32, 16 * scale, 32))}


def slow_kernel(scale: int) -> Built:
    """One depthwise convolution with a large filter among convolutions."""
    x = v1.placeholder(tf.float32, [8 * scale, 32, 32, 64])
    h = convolution(convolution(x, "a", 64), "b", 64)
    h = tf.nn.depthwise_conv2d(h, weights("depthwise", [9, 9, 64, 1]), [1, 1, 1, 1], "SAME")
    h = convolution(h, "c", 64)
    return descend(tf.reduce_mean(h * h)), {x: random.random((8 * scale, 32, 32, 64))}


def elementwise(scale: int) -> Built:
    """A long chain of additions and multiplications between two products."""
    x = v1.placeholder(tf.float32, [512 * scale, 128])
    h = tf.matmul(x, weights("w", [128, 1024]))
    for i in range(10):
        h = (h * 1.1 + weights(f"b{i}", [1024])) * tf.abs(h) - h
    return descend(tf.reduce_mean(tf.matmul(h, weights("o", [1024, 64])))), {x: random.random((512 * scale, 128))}


def dense_update(scale: int) -> Built:
    """A large table of which a step needs few rows, trained with Adam."""
    ids, labels = v1.placeholder(tf.int64, [128, 20]), v1.placeholder(tf.int32, [128])
    table = weights("table", [50_000 * scale, 32])
    h = tf.nn.relu(dense(tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1), "d", 64))
    fed = {ids: random.integers(0, 50_000 * scale, (128, 20)), labels: random.integers(0, 10, 128)}
    return classify(dense(h, "logits", 10), labels), fed


# ------------------------------------------------------------------------------------------------------------- balanced


def mlp(scale: int) -> Built:
    x, labels = v1.placeholder(tf.float32, [128 * scale, 784]), v1.placeholder(tf.int32, [128 * scale])
    h = x
    for i in range(3):
        h = tf.nn.relu(dense(h, f"d{i}", 512))
    fed = {x: random.random((128 * scale, 784)), labels: random.integers(0, 10, 128 * scale)}
    return classify(dense(h, "logits", 10), labels), fed


def convnet(scale: int) -> Built:
    batch = 24 * scale
    x, labels = v1.placeholder(tf.float32, [batch, 32, 32, 3]), v1.placeholder(tf.int32, [batch])
    h = tf.nn.max_pool2d(convolution(convolution(x, "c1", 32), "c2", 32), 2, 2, "SAME")
    h = convolution(convolution(h, "c3", 64), "c4", 64, stride=2)
    h = tf.nn.relu(dense(tf.reshape(h, [batch, 8 * 8 * 64]), "d1", 128))
    fed = {x: random.random((batch, 32, 32, 3)), labels: random.integers(0, 10, batch)}
    return classify(dense(h, "logits", 10), labels), fed


def normalized(x: Any, name: str) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * weights(f"{name}_gain", [int(x.shape[-1])])


def attention(x: Any, name: str, batch: int, length: int, width: int, heads: int = 4) -> Any:
    def head(kind: str) -> Any:
        each = tf.reshape(dense(x, f"{name}_{kind}", width), [batch, length, heads, width // heads])
        return tf.transpose(each, [0, 2, 1, 3])

    scores = tf.nn.softmax(tf.matmul(head("q"), head("k"), transpose_b=True) / (width / heads) ** 0.5)
    mixed = tf.transpose(tf.matmul(scores, head("v")), [0, 2, 1, 3])
    return dense(tf.reshape(mixed, [batch * length, width]), f"{name}_o", width)


def transformer(scale: int) -> Built:
    batch, length, width, words = 8, 48 * scale, 192, 1000
    x, labels = v1.placeholder(tf.int32, [batch, length]), v1.placeholder(tf.int32, [batch, length])
    h = tf.reshape(tf.nn.embedding_lookup(weights("embedding", [words, width]), x), [batch * length, width])
    for i in range(1):
        h += attention(normalized(h, f"n{i}"), f"attention{i}", batch, length, width)
        h += dense(tf.nn.gelu(dense(normalized(h, f"m{i}"), f"up{i}", 4 * width)), f"down{i}", width)
    fed = {x: random.integers(0, words, (batch, length)), labels: random.integers(0, words, (batch, length))}
    return classify(dense(h, "words", words), tf.reshape(labels, [-1])), fed


def lstm(scale: int) -> Built:
    batch, turns, width, units = 64 * scale, 6, 128, 256
    x, labels = v1.placeholder(tf.float32, [turns, batch, width]), v1.placeholder(tf.int32, [batch])
    kernel, bias = weights("kernel", [width + units, 4 * units]), weights("bias", [4 * units])
    inputs = tf.TensorArray(tf.float32, turns, element_shape=[batch, width]).unstack(x)

    def turn(i: Any, h: Any, c: Any) -> Any:
        gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs.read(i), h], 1), kernel), bias)
        new, forget, gate, output = tf.split(gates, 4, 1)
        c = tf.sigmoid(forget) * c + tf.sigmoid(gate) * tf.tanh(new)
        return i + 1, tf.sigmoid(output) * tf.tanh(c), c

    zeros = tf.zeros([batch, units])
    _, h, _ = tf.while_loop(lambda i, *_: i < turns, turn, [0, zeros, zeros])
    fed = {x: random.random((turns, batch, width)), labels: random.integers(0, 10, batch)}
    return classify(dense(h, "logits", 10), labels), fed


class Kind(NamedTuple):
    """What a step is slow by (or its model, of a balanced one), and how it is made."""

    build: Callable[[int], Built]
    traces: int
    environment: dict[str, str] = {}
    others: int = 0  # processes that keep the machine busy meanwhile


KINDS = {
    "float64": Kind(float64, 12),
    "transposes": Kind(transposes, 12),
    "slow_kernel": Kind(slow_kernel, 12),
    "elementwise": Kind(elementwise, 12),
    "dense_update": Kind(dense_update, 12),
    "one_thread": Kind(layers, 12, environment={"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}),
    "busy_machine": Kind(layers, 12, others=6),
    "mlp": Kind(mlp, 9),
    "convnet": Kind(convnet, 9),
    "transformer": Kind(transformer, 9),
    "lstm": Kind(lstm, 9),
}
