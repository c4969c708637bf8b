"""Whose time it is: other threads' work is not the step's, what a step is fed is, and a dataset's ``reduce`` is a loop of it.

Compiled functions as the script calls them, traced through the recorder (test_verdict_slow_functions.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script
from tf.test_verdict_slow_functions import HELPERS

pytestmark = pytest.mark.tf

TRACES = """
import threading
import numpy as np
def traced(call, count=3):
    '''The answers to ``count`` traces of the run of a function.'''
    call()
    assert recorder.flush()
    run = max(recorder.runs(), key=lambda run: run["last_run_at"])
    recorder.request_traces(run["id"], count)
    traces = []
    for _ in range(2_000):
        if len(traces) >= count:
            break
        call()
        assert recorder.flush()
        traces = [trace for each in recorder.runs() if each["id"] == run["id"] for trace in each["traces"]]
    assert len(traces) >= count, recorder.session()["problems"]
    answers = [Answers(recorder.trace_bytes(trace["id"]), recorder.trace_context(trace["id"])) for trace in traces]
    for one in answers:  # flush() passes between the steps, and a test may run on a busy machine
        one.context.between_steps_s = one.context.before_step_s = None
        one.context.cpu_use.clear()
    return answers
"""


def test_a_dataset_that_another_thread_reads_is_not_what_a_function_waits_for(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + TRACES
        + """
stop = threading.Event()
def other():
    data = tf.data.Dataset.range(10**9).map(lambda x: tf.random.stateless_uniform((64, 64), [x, 1])).batch(8).prefetch(1)
    for _ in data:
        if stop.is_set():
            return
reading = threading.Thread(target=other, daemon=True)  # an assertion that fails ends the script
reading.start()
step = tf.function(lambda: layers(tf.ones((32, 64))))
waits = []
for answers in traced(step):
    codes = [sentence["code"] for sentence in answers.verdict()["sentences"]]
    assert "input_bound" not in codes, codes
    whole = answers.budget()["whole"]
    waits.append(whole["parts_ns"]["input"])
    # On a busy machine TensorFlow 2.15's profile of 1 of 50 steps does not tell whose an event of tf.data is.
    assert waits[-1] <= 0.05 * answers.trace.duration_ns, whole
    assert answers.trace.duration_ns <= answers.context.step_s * 1e9, (answers.trace.duration_ns, answers.context.step_s)
assert sorted(waits)[1] == 0, waits
stop.set()
reading.join()
""",
        tmp_path,
    )


def test_a_training_loop_that_is_a_datasets_reduce_is_no_input(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + TRACES
        + """
large = tf.Variable(tf.ones((500, 500)))
def turn(total, _):
    return total + tf.reduce_sum(tf.matmul(large, large)[:1])
step = tf.function(lambda: tf.data.Dataset.range(5).reduce(0.0, turn))
traces = traced(step)
shares = sorted(answers.budget()["whole"]["parts_ns"]["input"] / answers.trace.duration_ns for answers in traces)
assert shares[1] < 0.1, shares  # a busy machine may hold one of them up
for answers in traces:
    sentences = answers.verdict()["sentences"]
    assert "input_bound" not in [sentence["code"] for sentence in sentences], sentences
    (products,) = [row for row in answers.ops("type")["rows"] if "MatMul" in row["key"]]
    assert products["count"] == 5, products
""",
        tmp_path,
    )


def test_a_function_whose_arguments_are_arrays_is_told_what_it_is_fed(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + TRACES
        + """
words = np.array([f"word {i}" for i in range(200_000)])
step = tf.function(lambda x: tf.size(x), input_signature=[tf.TensorSpec([200_000], tf.string)])
for answers in traced(lambda: step(words)):
    first = answers.verdict()["sentences"][0]
    assert first["code"] == "around_ops" and "200,000 strings" in first["text"], first
""",
        tmp_path,
    )


def test_a_session_is_told_what_it_is_fed(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + TRACES
        + """
with tf.Graph().as_default():
    fed = tf.compat.v1.placeholder(tf.string, [200_000])
    size = tf.size(fed)
    with tf.compat.v1.Session() as session:
        words = [f"word {i}" for i in range(200_000)]
        for answers in traced(lambda: session.run(size, {fed: words})):
            first = answers.verdict()["sentences"][0]
            assert first["code"] == "around_ops" and "200,000 strings" in first["text"], first
            assert answers.context.began_at is not None
""",
        tmp_path,
    )


def test_a_step_is_told_that_what_it_is_fed_is_converted_first(tmp_path: Path) -> None:
    """To the type of a placeholder, and of the signature of a function, a method too."""
    run_eager_script(
        HELPERS
        + TRACES
        + """
class Model:
    @tf.function(input_signature=[tf.TensorSpec([None, 1000], tf.float32)])
    def step(self, x):
        return tf.reduce_sum(x[:10])
model, values = Model(), np.zeros((6250, 1000))
with tf.Graph().as_default():
    fed = tf.compat.v1.placeholder(tf.float32, [None, 1000], name="x")
    total = tf.reduce_sum(fed[:10])
    with tf.compat.v1.Session() as session:
        of_session = traced(lambda: session.run(total, {fed: values}))
for name, all_answers in (("x:0", of_session), ("argument 1", traced(lambda: model.step(values)))):
    for answers in all_answers:
        first = answers.verdict()["sentences"][0]
        assert f"First, {name} is converted from float64 to float32." in first["text"], first
""",
        tmp_path,
    )


def test_a_loop_over_a_dataset_is_told_that_it_waits_for_tf_data(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + """
slow = tf.ones((300, 300))
def product(number):
    result = slow
    for _ in range(20):
        result = tf.matmul(result, slow) * 0.003
    return result[:8, :8] + tf.cast(number, tf.float32)
step = tf.function(lambda x: tf.reduce_sum(x))
for number, batch in enumerate(tf.data.Dataset.range(60).map(product)):
    step(batch)
    if number == 30:
        assert recorder.flush()
        recorder.request_traces(recorder.runs()[0]["id"], 6)
assert recorder.flush()
(run,) = recorder.runs()
assert run["steps"] == 60 and len(run["traces"]) == 6, run
found = []  # not in a step that itself was held up for long
for trace in run["traces"]:
    context = recorder.trace_context(trace["id"])
    assert 0.5 * context.between_steps_s < context.between_input_s <= context.between_steps_s, context
    sentences = Answers(recorder.trace_bytes(trace["id"]), context).verdict()["sentences"]
    found += [each for each in sentences if each["code"] == "between_steps"]
for between in found:
    assert "the loop waits for the next element of a tf.data dataset" in between["text"], between
    assert any(word in between["advice"] for word in ("prefetch", "no idle core")) and between["numbers"]["input_ns"] > 0, between
assert found, sentences
try:  # the end of a dataset reaches the script
    next(iter(tf.data.Dataset.range(0)))
except StopIteration:
    pass
else:
    raise AssertionError("no end")
""",
        tmp_path,
    )
