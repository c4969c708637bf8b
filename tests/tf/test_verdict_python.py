"""Steps that Python holds up: ops that the script runs one by one, and another thread that has Python's lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script
from tf.test_verdict_slow_functions import HELPERS

pytestmark = pytest.mark.tf


def test_ops_that_an_eager_loop_runs_one_by_one(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + """
optimizer = tf.keras.optimizers.SGD(0.01)
def train(steps):
    for _ in range(steps):
        with tf.GradientTape() as tape:
            y = tf.ones((8, 64))
            for _ in range(10):
                y = layers(y) * tf.ones((8, 64))
            loss = tf.reduce_sum(y)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
check(train, "eager_ops", "ops one by one, without a compiled function", "of the step none runs", "Python prepares the next")
def wait_and_train(steps):
    for _ in range(steps):
        time.sleep(0.5)
        train(1)
check(wait_and_train, "eager_ops", "of this step", "pass before its first op and after its last")
""",
        tmp_path,
    )


def test_what_reads_a_gradient_that_became_dense_belongs_to_its_update(tmp_path: Path) -> None:
    """No op applies it: it is multiplied, and subtracted from the table."""
    run_eager_script(
        HELPERS
        + """
table = tf.Variable(tf.ones((300000, 32)))
@tf.function
def step(ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
    table.assign_sub(0.01 * tf.convert_to_tensor(tape.gradient(loss, table)))
def train(steps):
    for _ in range(steps):
        step(tf.range(100))
for _ in range(5):  # until a busy machine left one of the steps alone
    firsts = [first for _, first in verdicts(train)]
    found = [first for first in firsts if first["code"] == "dense_update"]
    if found:
        break
assert found, firsts
assert all(first["numbers"]["executions"] == 3 for first in found), found
""",
        tmp_path,
    )


def test_a_regularizer_makes_the_gradient_of_a_table_of_keras_dense(tmp_path: Path) -> None:
    """Keras 3 has no L2Loss, and reads the table whole before it looks rows up."""
    run_eager_script(
        HELPERS
        + """
model = tf.keras.Sequential([
    tf.keras.Input((8,), dtype="int32"), tf.keras.layers.Embedding(300000, 32, embeddings_regularizer="l2"),
    tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
batch = np.zeros((32, 8), np.int32), np.zeros((32, 1), np.float32)
def train(steps):
    model.fit(tf.data.Dataset.from_tensors(batch).repeat(steps), verbose=0)
for _ in range(5):
    found = [first for _, first in verdicts(train) if first["code"] == "dense_update"]
    if found:
        break
words = ("The gradient of a table becomes dense", "The update of")  # Keras 3, Keras 2
assert all(first["text"].startswith(words) for first in found) and found
""",
        tmp_path,
    )


def test_a_python_function_of_another_thread_that_keeps_the_lock(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + """
import sys
import threading
stopped = threading.Event()
def elements():
    while not stopped.is_set():
        yield sum(range(10000000))
reading = iter(tf.data.Dataset.from_generator(elements, output_signature=tf.TensorSpec((), tf.int64)).prefetch(1000))
next(reading)
sys.setswitchinterval(0.1)  # how long a thread keeps the lock that another one asks for
step = tf.function(lambda: layers(tf.ones((32, 64))))
def train(steps):
    for _ in range(steps):
        step()
for _ in range(5):
    codes = [first["code"] for _, first in verdicts(train)]
    if "python_lock" in codes:
        break
assert "python_lock" in codes, codes
sys.setswitchinterval(0.005)
stopped.set()
""",
        tmp_path,
    )
