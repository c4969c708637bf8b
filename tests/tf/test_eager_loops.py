"""Loops without a compiled function: an optimizer that applies gradients ends a step. Their counts are those of the scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script
from tf.traced_scripts import run

pytestmark = pytest.mark.tf

LOOP = """
Adam, SGD = tf.keras.optimizers.Adam, tf.keras.optimizers.SGD
def dense(outputs=1):
    made = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(outputs)])
    made(np.ones((1, 8), np.float32))
    return made
x, y = tf.ones((4, 8)), tf.ones((4, 1))
def gradients(model, target=y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - target) ** 2)
    return tape.gradient(loss, model.trainable_variables)
def update(optimizer, model, grads=None):
    optimizer.apply_gradients(zip(gradients(model) if grads is None else grads, model.trainable_variables))
def counts():
    return {"loop(" + title.partition("(")[2]: found[0] for title, found in runs().items() if title.startswith("loop at")}
"""


def test_a_gradient_tape_without_a_function_is_counted_timed_and_traced(tmp_path: Path) -> None:
    run_eager_script(
        LOOP
        + """
from tftracer.trace.answers import Answers
model, optimizer = dense(), Adam()
def train(steps):
    for _ in range(steps):
        update(optimizer, model)
train(10)
assert counts() == {"loop(Adam)": 10}, runs()
(run,) = recorder.runs()
assert run["title"].startswith("loop at <string>:") and run["definition"] == "eager code", run
server.functions.traces.wait_s = 300.0
recorder.request_traces(run["id"], 3)
train(6)
((steps, traced),) = runs().values()
assert steps == 16 and traced == [12, 13, 14], (steps, traced)  # the step after the request had begun already
for record in recorder.runs()[0]["traces"]:
    answers = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"]))
    ops = [answers.trace.ops[code] for code in answers.trace.op[answers.trace.counted]]
    assert ops.count("MatMul") == 2 and "SquaredDifference" not in ops, ops  # forward and backward
    assert answers.trace.duration_ns <= record["duration_s"] * 1e9 + 1e6
recorder.request_traces(None, 1)
train(1)
recorder.request_traces(None, 0)
""",
        tmp_path,
    )


def test_accumulated_gradients_two_optimizers_and_a_gan(tmp_path: Path) -> None:
    """A step has all its optimizers. A critic that learns several times a turn has steps of its own."""
    run_eager_script(
        LOOP
        + """
model, optimizer = dense(), SGD()
for batch in range(24):
    parts = gradients(model)
    total = parts if batch % 4 == 0 else [a + b for a, b in zip(total, parts)]
    if batch % 4 == 3:
        update(optimizer, model, total)
assert counts() == {"loop(SGD)": 6}, runs()
wide, deep, adam, sgd = dense(), dense(), Adam(), SGD()
for _ in range(7):
    update(sgd, wide)
    update(adam, deep)
assert counts() == {"loop(SGD)": 6, "loop(SGD, Adam)": 7}, runs()
generator, critic, first, second = dense(8), dense(), Adam(), Adam()
for _ in range(5):
    first.apply_gradients(zip(gradients(critic), critic.trainable_variables))
    second.apply_gradients(zip(gradients(generator), generator.trainable_variables))
assert counts() == {"loop(SGD)": 6, "loop(SGD, Adam)": 7, "loop(Adam)": 5}, runs()
again = SGD()
for _ in range(3):  # another optimizer, the same line: the same loop, with a first turn of its own
    update(again, model)
assert counts()["loop(SGD)"] == 9, runs()
for _ in range(2):
    for _ in range(5):
        update(optimizer, model)
    update(adam, deep)
assert sum(counts().values()) == 21 + 10, runs()  # what came once in a turn of six is known when the next turn ends
""",
        tmp_path,
    )


def test_loops_that_take_turns_are_each_traced(tmp_path: Path) -> None:
    """A critic that learns several times a turn, and the generator's update with the critic's next one."""
    run_eager_script(
        LOOP
        + """
generator, critic, slow, fast = dense(), dense(), SGD(), Adam()
server.functions.traces.wait_s = 300.0
def turn(times):
    for _ in range(times):
        update(fast, critic)
    update(slow, generator)
for times in (2, 5):
    for _ in range(3):
        turn(times)
    for title in ("(Adam)", "(SGD, Adam)"):
        assert recorder.flush()
        run = next(run for run in recorder.runs() if run["title"].endswith(title))
        before = len(run["traces"])
        recorder.request_traces(run["id"], 2)
        for _ in range(4):
            turn(times)
        assert len(runs()[run["title"]][1]) == before + 2, (times, title, runs())
""",
        tmp_path,
    )


def test_optimizers_of_compat_v1_and_those_within_others_end_a_step_once(tmp_path: Path) -> None:
    run_eager_script(
        LOOP
        + """
weights = tf.Variable(tf.ones((8, 1)))
old = tf.compat.v1.train.GradientDescentOptimizer(0.1)
for _ in range(5):
    old.minimize(lambda: tf.reduce_mean((tf.matmul(x, weights) - y) ** 2), var_list=[weights])
assert counts() == {"loop(GradientDescentOptimizer)": 5}, runs()
scaled, model = tf.keras.mixed_precision.LossScaleOptimizer(SGD()), dense()
for _ in range(4):
    update(scaled, model)
found = counts()
found.pop("loop(GradientDescentOptimizer)")
assert list(found.values()) == [4], runs()
""",
        tmp_path,
    )


def test_keras_and_compiled_functions_have_their_steps_once(tmp_path: Path) -> None:
    """Their optimizers end none of an eager loop. What calls a compiled function and then an optimizer has steps of both."""
    run_eager_script(
        LOOP
        + """
compiled, eager = network(), network(run_eagerly=True)
compiled.fit(batches(5), verbose=0)
eager.fit(batches(4), verbose=0)
assert sorted(steps for steps, _ in runs().values()) == [4, 5], runs()
@tf.function
def whole(x):
    update(optimizer, model)
model, optimizer = dense(), Adam()
optimizer.build(model.trainable_variables)
for _ in range(3):
    whole(x)
assert sorted(steps for steps, _ in runs().values()) == [3, 4, 5], runs()
with server.step("mine"):
    update(SGD(), dense())
assert runs()["mine"] == (1, []) and len(runs()) == 4, runs()
forward = tf.function(lambda x: [part * 2.0 for part in gradients(model)])
other = Adam()
for _ in range(6):
    update(other, model, forward(x))
assert counts()["loop(Adam)"] == 6 and sorted(steps for steps, _ in runs().values())[-2:] == [6, 6], runs()
server.functions.traces.wait_s = 300.0
recorder.set_trace_all(True)  # the function's steps are traced, then, and no loop's around them
for _ in range(4):
    update(other, model, forward(x))
recorder.set_trace_all(False)
traced = {title.partition(" ")[0]: traced for title, (steps, traced) in runs().items() if traced}
assert list(traced) == ["<lambda>"] and len(traced["<lambda>"]) == 4, runs()
""",
        tmp_path,
    )


def test_an_optimizer_that_fails_ends_no_step_and_its_error_arrives(tmp_path: Path) -> None:
    run_eager_script(
        LOOP
        + """
model, optimizer = dense(), SGD()
for turn in range(6):
    try:
        update(optimizer, model, [tf.ones((3, 3))] * 2 if turn == 3 else None)
    except (ValueError, tf.errors.InvalidArgumentError):
        assert turn == 3
assert counts() == {"loop(SGD)": 5}, runs()
""",
        tmp_path,
    )


def test_under_tftracer_run_a_loop_is_listed_and_an_evaluation_is_said_to_be_none(tmp_path: Path) -> None:
    start = "import tensorflow as tf\nw = tf.Variable([[1.0]])\n"
    train = start + "s = tf.compat.v1.train.AdamOptimizer(0.1)\nfor _ in range(4):\n  s.apply_gradients([(tf.ones((1, 1)), w)])\n"
    traced = run(tmp_path, "--output", "s.tftrace", "-c", train)
    assert traced.code == 0 and "the session is in" in traced.errors, traced.errors
    evaluate = start + "for _ in range(4):\n  print(float(tf.reduce_sum(tf.matmul(w, w))))\n"
    traced = run(tmp_path, "-c", evaluate)
    ended = "no optimizer's step in eager code has ended: nothing was recorded"
    assert traced.code == 0 and ended in traced.errors, traced.errors
