"""Steps whose bound is known since it was planted: what they do, and which sentences of the verdict name it.

``step(batch, variables)`` builds one step; it is run as a session, as a tf.function and in Keras's ``fit``. bench_verdict.py
records them and counts the headlines that are right and false.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

SESSION, FUNCTION, FIT = "session", "function", "fit"
Variables = dict[str, Any]
random = np.random.default_rng(0)


@dataclass(frozen=True)
class Planted:
    """``truth``: the codes of sentences that name the bound; ``also``: of those that are true beside it; ``names``: a pattern of
    what a headline has to say."""

    step: Callable[[Any, Variables], Any]
    truth: str
    names: str = ""
    also: str = ""
    variables: Callable[[], Variables] = dict
    data: Callable[[], Any] | None = None  # a dataset
    array: Callable[[], Any] | None = None  # what is fed
    between: Callable[[], None] | None = None  # called before each step
    ways: tuple[str, ...] = (SESSION, FUNCTION)
    jit: bool = False


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return random.standard_normal(shape).astype(dtype) * 0.05


def variable(*shape: int, dtype: Any = np.float32) -> Any:
    return tf.Variable(normal(*shape, dtype=dtype), dtype=dtype)


def train(loss_of: Callable[[], Any], variables: Variables, rate: float = 0.01) -> Any:
    with tf.GradientTape() as tape:
        loss = loss_of()
    updates = []
    for each, gradient in zip(variables.values(), tape.gradient(loss, list(variables.values()))):
        if gradient is not None:
            updates.append(each.assign_sub(rate * gradient, read_value=False))
    with tf.control_dependencies([u for u in updates if u is not None]):
        return tf.identity(loss)


# ------------------------------------------------------------------------------------------------------------- the steps


def small_product(batch: Any, _: Variables) -> Any:
    x = tf.reshape(tf.cast(batch, tf.float32), [-1])[:10_000]
    return tf.reduce_sum(tf.matmul(tf.reshape(x, [100, 100]), tf.ones([100, 100])))


def length_of_strings(batch: Any, _: Variables) -> Any:
    return tf.reduce_sum(tf.strings.length(batch))


def total(batch: Any, _: Variables) -> Any:
    return tf.reduce_sum(batch[:100])


def one_product(_: Any, v: Variables) -> Any:
    return tf.reduce_sum(tf.matmul(v["a"], v["b"])[:1])


def layers(_: Any, v: Variables) -> Any:
    def loss() -> Any:
        x = tf.ones([256, 512]) * 0.01
        for name in v:
            x = tf.nn.relu(tf.matmul(x, v[name]))
        return tf.reduce_mean(x * x)

    return train(loss, v)


def attention(_: Any, v: Variables) -> Any:
    def loss() -> Any:
        x = tf.reshape(tf.cast(tf.range(8 * 128 * 256) % 17, tf.float32) * 0.01, [8, 128, 256])
        q, k, value = (tf.einsum("bsd,de->bse", x, v[name]) for name in ("q", "k", "v"))
        for _ in range(2):
            weights = tf.nn.softmax(tf.einsum("bse,bte->bst", q, k) / 16.0)
            q = tf.einsum("bst,bte->bse", weights, value)
        return tf.reduce_mean(q * q)

    return train(loss, v)


def concatenations(_: Any, v: Variables) -> Any:
    x = v["a"] * 1.0
    parts = [tf.concat([x, x], 0) for _ in range(6)]
    return tf.add_n([part[0, 0] for part in parts])


def tiny(_: Any, v: Variables) -> Any:
    x = v["a"][:4]
    for i in range(4000):
        x = x * 1.0001 if i % 2 else x + 0.0001
    return tf.reduce_sum(x)


def turns(_: Any, v: Variables) -> Any:
    x = v["a"][:4]
    _, x = tf.while_loop(lambda i, _: i < 3000, lambda i, x: (i + 1, tf.tanh(x) * 1.01), [tf.constant(0), x])
    return tf.reduce_sum(x)


def lookup(_: Any, v: Variables) -> Any:
    return tf.reduce_sum(v["table"].lookup(tf.strings.as_string(tf.range(200_000) % 1000)))


def strings(_: Any, v: Variables) -> Any:
    words = tf.strings.join([tf.strings.as_string(tf.random.uniform([20_000])), "several words in a line of text"])
    return tf.reduce_sum(tf.strings.length(tf.strings.regex_replace(words, "[aeiou]+", "-")))


def sparse_embedding(_: Any, v: Variables) -> Any:
    ids = (tf.range(50_000) * 7919) % 100_000
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.gather(v["table"], ids)))
    gradient = tape.gradient(loss, v["table"])
    update = tf.raw_ops.ResourceScatterSub(resource=v["table"].handle, indices=gradient.indices, updates=gradient.values * 0.01)
    with tf.control_dependencies([update] if update is not None else []):
        return tf.identity(loss)


def dense_embedding(_: Any, v: Variables) -> Any:
    """The gradient of some rows becomes one of all rows."""
    ids = (tf.range(500) * 7919) % 300_000
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.gather(v["table"], ids)))
    gradient = tf.convert_to_tensor(tape.gradient(loss, v["table"]))
    update = tf.raw_ops.ResourceApplyGradientDescent(var=v["table"].handle, alpha=0.01, delta=gradient)
    with tf.control_dependencies([update] if update is not None else []):
        return tf.identity(loss)


def reductions(_: Any, v: Variables) -> Any:
    return tf.add_n([tf.reduce_sum(tf.reduce_max(v["a"], axis)) for axis in (0, 1)] + [tf.reduce_sum(tf.reduce_min(v["a"], 0))])


def elementwise(_: Any, v: Variables) -> Any:
    x = v["a"] * 1.0
    for i in range(12):
        x = x * 1.01 + float(i)
    return x[0, 0]


def transposes(_: Any, v: Variables) -> Any:
    x = v["a"]
    for _ in range(6):
        x = tf.transpose(tf.reshape(tf.transpose(x), [1000, 3000]))
        x = tf.matmul(x[:, :8], x[:8, :8])[:1] * 0.0 + x
    return x[0, 0]


def doubles(_: Any, v: Variables) -> Any:
    x = v["a"]
    for _ in range(3):
        x = tf.matmul(x, v["b"])
    return x[0, 0]


def random_numbers(_: Any, v: Variables) -> Any:
    return tf.reduce_sum(tf.random.normal([1_500_000])[:10])


def python_wait(_: Any, v: Variables) -> Any:
    def wait(x: Any) -> Any:
        time.sleep(0.03)
        return np.asarray(x)

    return tf.reduce_sum(tf.numpy_function(wait, [v["a"][:4]], tf.float32))


def reduced(_: Any, v: Variables) -> Any:
    """The training loop is a dataset's ``reduce``."""

    def turn(total: Any, _: Any) -> Any:
        return total + tf.reduce_sum(tf.matmul(v["a"], v["a"])[:1])

    return tf.data.Dataset.range(5).reduce(0.0, turn)


def many_fetched(_: Any, v: Variables) -> Any:
    return tf.strings.as_string(tf.random.uniform([100_000]))


def dropout_mask(_: Any, v: Variables) -> Any:
    return train(lambda: tf.reduce_mean(tf.nn.dropout(tf.matmul(v["a"], v["b"]), 0.5)), v)


# -------------------------------------------------------------------------------------------------------------- the data


def mapped() -> Any:
    def slow(i: Any) -> Any:
        x = tf.random.stateless_uniform([600_000], tf.stack([i, 1]))
        return tf.sort(x)[:10_000]

    return tf.data.Dataset.range(1 << 40).map(slow)


def generated() -> Any:
    def numbers() -> Any:
        while True:
            time.sleep(0.02)
            yield np.zeros(10_000, np.float32)

    return tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([10_000], tf.float32))


def batched() -> Any:
    return tf.data.Dataset.range(1 << 40).map(lambda i: tf.fill([10], i)).batch(8_000)


def read_by_python() -> Any:
    def read(i: Any) -> Any:
        time.sleep(0.02)
        return np.full(10_000, float(i), np.float32)

    return tf.data.Dataset.range(1 << 40).map(lambda i: tf.ensure_shape(tf.numpy_function(read, [i], tf.float32), [10_000]))


def ready() -> Any:
    return tf.data.Dataset.from_tensors(np.ones(10_000, np.float32)).repeat().prefetch(4)


def wait() -> None:
    time.sleep(0.03)


def one_layer() -> Variables:
    return {"a": variable(64, 64)}


def table_of_strings() -> Variables:
    keys = np.array([str(i) for i in range(1000)])
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(np.arange(1000, dtype=np.int64)))
    return {"table": tf.lookup.StaticHashTable(initializer, -1)}


INPUT = "input_bound"
PLANTED: dict[str, Planted] = {
    "input_map": Planted(small_product, INPUT, "tf.data|[Ii]nput", data=mapped, ways=(SESSION, FUNCTION, FIT)),
    "input_generator": Planted(small_product, INPUT, "tf.data|[Ii]nput", data=generated, ways=(SESSION, FUNCTION, FIT)),
    "input_batch": Planted(small_product, INPUT, "tf.data|[Ii]nput", data=batched, ways=(SESSION, FUNCTION, FIT)),
    "input_python": Planted(small_product, f"{INPUT} python_function", "", data=read_by_python, ways=(SESSION, FUNCTION, FIT)),
    "fed_bytes": Planted(total, "around_ops", "fed|argument", array=lambda: normal(25_000_000), ways=(SESSION, FUNCTION)),
    "fed_strings": Planted(
        length_of_strings,
        "fed",
        "fed|argument",
        array=lambda: np.array([f"word {i}" for i in range(30_000)]),
    ),
    "fetched_strings": Planted(many_fetched, "around_ops", "fetch", ways=(SESSION,)),
    "one_op": Planted(
        one_product,
        "one_op",
        "MatMul",
        also="elementwise",
        variables=lambda: {"a": variable(1500, 1500), "b": variable(1500, 1500)},
    ),
    "layers": Planted(
        layers,
        "balanced",
        "compute|MatMul",
        "one_op",
        lambda: {f"w{i}": variable(512, 512) for i in range(6)},
        ready,
        ways=(SESSION, FUNCTION, FIT),
    ),
    "attention": Planted(
        attention,
        "balanced elementwise",
        "compute|MatMul|Elementwise",
        "one_op tiny_ops",
        lambda: {n: variable(256, 256) for n in "qkv"},
        ready,
        ways=(SESSION, FUNCTION, FIT),
    ),
    "concatenations": Planted(
        concatenations,
        "balanced one_op",
        "ConcatV2|concat",
        variables=lambda: {"a": variable(1500, 1500)},
    ),
    "tiny": Planted(tiny, "tiny_ops", "", "elementwise balanced", one_layer),
    "turns": Planted(turns, "tiny_ops", "", variables=one_layer),
    "lookup": Planted(lookup, "one_op balanced", "Lookup|AsString", variables=table_of_strings),
    "strings": Planted(strings, "one_op", "Regex", variables=one_layer),
    "sparse_embedding": Planted(
        sparse_embedding,
        "one_op balanced elementwise",
        "Scatter|Gather|Mul|Square|compute",
        variables=lambda: {"table": variable(100_000, 64)},
    ),
    "dense_embedding": Planted(
        dense_embedding,
        "dense_update",
        "rows|dense",
        variables=lambda: {"table": variable(300_000, 32)},
    ),
    "reductions": Planted(
        reductions, "reductions one_op balanced", "Max|Min|[Rr]eduction", variables=lambda: {"a": variable(4000, 2000)}
    ),
    "elementwise": Planted(elementwise, "elementwise", "lementwise", variables=lambda: {"a": variable(2000, 1000)}),
    "transposes": Planted(transposes, "layout", "layout", variables=lambda: {"a": variable(1000, 3000)}),
    "doubles": Planted(
        doubles,
        "float64 one_op",
        "float64|MatMul",
        variables=lambda: {"a": variable(700, 700, dtype=np.float64), "b": variable(700, 700, dtype=np.float64)},
    ),
    "random_numbers": Planted(random_numbers, "one_op", "[Rr]andom", "elementwise", one_layer),
    "python_wait": Planted(python_wait, "python_function", "Python", variables=one_layer, data=None, ways=(SESSION, FUNCTION)),
    "reduced": Planted(reduced, "one_op balanced", "MatMul", variables=lambda: {"a": variable(700, 700)}, ways=(FUNCTION,)),
    "between": Planted(layers, "between_steps", "pass", variables=lambda: {"w0": variable(512, 512)}, between=wait),
    "between_fit": Planted(
        layers, "between_steps", "pass", variables=lambda: {"w0": variable(512, 512)}, data=ready, between=wait, ways=(FIT,)
    ),
    "xla": Planted(
        elementwise,
        "one_op balanced elementwise",
        "XLA|fusion|Fusion|compute|lementwise",
        variables=lambda: {"a": variable(2000, 1000)},
        ways=(FUNCTION,),
        jit=True,
    ),
    "dropout": Planted(
        dropout_mask,
        "balanced one_op elementwise",
        "",
        "one_op",
        lambda: {"a": variable(512, 512), "b": variable(512, 512)},
    ),
}
