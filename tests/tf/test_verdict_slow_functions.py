"""Compiled functions and Keras steps made slow on purpose, each by one thing: the verdict's first sentence must name that thing.

They run under ``hook_inject()`` and are traced through the recorder, as the page does. What slows them takes many times as long
as the rest; where a busy machine can still hide it, the fastest of several steps is judged.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script

pytestmark = pytest.mark.tf

HELPERS = """
import time
from tftracer.trace.answers import Answers
def verdicts(train, wanted=4, at_a_time=4):
    '''Traces steps of the run that ``train(steps)`` trains; [(ns, first sentence)], the fastest first. What a verdict says of a
    busy machine is left out: tests run on such, too.'''
    before = {trace["id"] for run in recorder.runs() for trace in run["traces"]}
    train(4)
    assert recorder.flush()
    run = max(recorder.runs(), key=lambda run: run["last_run_at"])
    recorder.request_traces(run["id"], wanted)
    traced = []
    while len(traced) < wanted:
        train(at_a_time)
        assert recorder.flush()
        traced = [trace for run in recorder.runs() for trace in run["traces"] if trace["id"] not in before]
    answers = [Answers(recorder.trace_bytes(trace["id"]), recorder.trace_context(trace["id"])) for trace in traced]
    for one in answers:
        one.context.cpu_use.clear()
    return sorted(((one.trace.duration_ns, one.verdict()["sentences"][0]) for one in answers), key=lambda pair: pair[0])
def check(train, code, *words, wanted=4):
    '''The first sentence of most steps has the code. Some name the cause: others began when it was at work already.'''
    for _ in range(5):
        found = verdicts(train, wanted)
        firsts = [first for _, first in found if first["code"] == code]
        named = [first for first in firsts if all(word in first["text"] for word in words)]
        if named:
            break
    assert named and 2 * len(firsts) > len(found), found
    assert all(first in named for first in firsts if "that holds it up is" in first["text"]), found
def function(body):
    step = tf.function(body)
    def train(steps):
        for _ in range(steps):
            step(tf.ones((32, 64)))
    return train
weights = [tf.Variable(tf.random.normal((64, 64)) * 0.1) for _ in range(4)]
def layers(x):
    for weight in weights:
        x = tf.tanh(tf.matmul(x, weight))
    return tf.reduce_sum(x)
def slow(value):
    time.sleep(0.1)
    return value
"""
#: Slow steps make problems of their own: stacks that are left out, functions that are traced again and again.
ANY_PROBLEMS = """
problems = [problem["code"] for problem in recorder.session()["problems"]]
"""


def test_a_step_of_fit_that_waits_for_its_input(tmp_path: Path) -> None:
    """Each stage of tf.data that is slow is named, with where it lies."""
    run_eager_script(
        HELPERS
        + """
x, y = np.ones((32, 8), np.float32), np.ones((32, 1), np.float32)
def data(steps):
    return tf.data.Dataset.from_tensors((x, y)).repeat(steps)
def in_python(x, y):
    return tf.ensure_shape(tf.numpy_function(slow, [x], tf.float32), (32, 8)), y
def in_tensorflow(x, y):
    product = tf.random.uniform((1000, 1000))
    for _ in range(4):
        product = tf.matmul(product, product) * 1e-3
    return x + 0 * product[0, 0], y
def generated(steps):
    def batches():
        for _ in range(steps):
            yield slow(x), y
    return tf.data.Dataset.from_generator(batches, output_signature=(tf.TensorSpec((32, 8)), tf.TensorSpec((32, 1))))
model = network(jit_compile=False)
def fit(make):
    return lambda steps: model.fit(make(2 * steps), verbose=0)
check(fit(lambda steps: data(steps).map(in_python).prefetch(2)), "input_bound", "Map (Root > Prefetch > Map)")
check(fit(lambda steps: data(steps).map(in_tensorflow).prefetch(2)), "input_bound", "Map (Root > Prefetch > Map)")
parallel = lambda steps: data(steps).map(in_python, num_parallel_calls=2).shuffle(2).prefetch(1)
check(fit(parallel), "input_bound", "ParallelMap", "Shuffle > ParallelMap")
check(fit(generated), "input_bound", "FlatMap")
"""
        + ANY_PROBLEMS,
        tmp_path,
    )


def test_functions_that_are_slow_by_what_runs_in_them(tmp_path: Path) -> None:
    run_eager_script(
        HELPERS
        + """
def with_python(x):
    return layers(tf.ensure_shape(tf.py_function(slow, [tf.tanh(x)], tf.float32), (32, 64)))
def with_numpy(x):
    return layers(tf.ensure_shape(tf.numpy_function(slow, [tf.tanh(x)], tf.float32), (32, 64)))
check(function(with_python), "python_function", "EagerPyFunc")
check(function(with_numpy), "python_function", "PyFunc")
large = tf.Variable(tf.random.normal((1500, 1500)))
def with_huge_matmul(x):
    return layers(x) + tf.matmul(large, large, name="huge")[0, 0]
check(function(with_huge_matmul), "one_op", "huge (", "MatMul")
wide = [tf.Variable(tf.random.normal((512, 512)) * 0.05) for _ in range(16)]
def balanced(x):
    y = tf.random.uniform((512, 512))
    for weight in wide:
        y = tf.tanh(tf.matmul(y, weight))
    return tf.reduce_sum(y)
train = function(balanced)
for _ in range(20):  # until a busy machine left one of the steps alone
    found = verdicts(train)
    if found[0][1]["code"] == "balanced":
        break
assert found[0][1]["code"] == "balanced", found
"""
        + ANY_PROBLEMS,
        tmp_path,
    )


def test_thousands_of_tiny_ops(tmp_path: Path) -> None:
    """In a row, and in a loop, when each has run 300 times: TensorFlow has found these ops to be cheap by then."""
    run_eager_script(
        HELPERS
        + """
def in_a_row(x):
    y = x[0, 0]
    for _ in range(1500):
        y = tf.sin(y) * x[0, 1]
    return y
def in_a_loop(x):
    def turn(i, y):
        return i + 1, tf.sin(y) * x[0, 1]
    return tf.while_loop(lambda i, y: i < 1500, turn, (0, x[0, 0]))[1]
for body in in_a_row, in_a_loop:
    train = function(body)
    train(300)
    for _ in range(20):  # a busy machine takes most of a step away from the process: until one of them was left alone
        found = verdicts(train, at_a_time=10)  # the first call behind a request comes late
        if any(first["code"] == "tiny_ops" for _, first in found):
            break
    assert any(first["code"] == "tiny_ops" for _, first in found), found
"""
        + ANY_PROBLEMS,
        tmp_path,
    )


def test_an_update_of_many_small_variables_is_many_tiny_ops(tmp_path: Path) -> None:
    """When the function has run 300 times: TensorFlow has found most of its ops to be cheap by then."""
    run_eager_script(
        HELPERS
        + """
variables = [tf.Variable(tf.ones((4,))) for _ in range(120)]
optimizer = tf.keras.optimizers.Adam()
optimizer.build(variables)
@tf.function
def adam():
    with tf.GradientTape() as tape:
        loss = tf.add_n([tf.reduce_sum(variable * variable) for variable in variables])
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss
def train(steps):
    for _ in range(steps):
        adam()
train(300)
for _ in range(20):  # until a busy machine left one of the steps alone
    found = verdicts(train, at_a_time=10)
    tiny = [first for _, first in found if first["code"] == "tiny_ops"]
    if tiny:
        break
assert tiny and tiny[0]["numbers"]["ops"] > 3_000 and "optimizers" in tiny[0]["advice"], found
"""
        + ANY_PROBLEMS,
        tmp_path,
    )


def test_functions_that_are_slow_before_they_run(tmp_path: Path) -> None:
    """Traced anew at each call, and compiled by XLA for each shape."""
    run_eager_script(
        HELPERS
        + """
sizes = iter(range(1, 1000))
retraced = tf.function(layers)
def shapes(steps):
    for _ in range(steps):
        retraced(tf.ones((next(sizes), 64)))
check(shapes, "retraced", "layers was traced anew in this call", "argument x is float32[")
scaled = tf.function(lambda x, factor: layers(x) * factor)
def numbers(steps):
    for _ in range(steps):
        scaled(tf.ones((32, 64)), float(next(sizes)))
check(numbers, "retraced", "traced anew in this call", "argument factor is ", ", and was traced before for ")
compiled = tf.function(layers, jit_compile=True, input_signature=[tf.TensorSpec((None, 64))])
def programs(steps):
    for _ in range(steps):
        compiled(tf.ones((next(sizes), 64)))
check(programs, "compiling", "programs of layers")
assert sum(problem["code"].startswith("retracing") for problem in recorder.session()["problems"]) == 2
"""
        + ANY_PROBLEMS,
        tmp_path,
    )
