"""Compiled functions and Keras: each step is listed, counted and timed, and traced when asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import run_eager_script

pytestmark = pytest.mark.tf


def test_fit_evaluate_predict_and_train_on_batch_are_runs_of_their_own(tmp_path: Path) -> None:
    run_eager_script(
        """
model = network()
model.fit(batches(4), epochs=2, verbose=0)
model.evaluate(batches(3), verbose=0)
model.predict(batches(2).map(lambda x, y: x), verbose=0)
seen = runs()
assert seen["fit: net"] == (8, []), seen
assert seen["evaluate: net"] == (3, []), seen
assert seen["predict: net"] == (2, []), seen
model.train_on_batch(np.ones((4, 8), np.float32), np.ones((4, 1), np.float32))
assert sum(steps for steps, _ in runs().values()) == 14, runs()
assert the_run("fit: net")["mean_s"] > 0
""",
        tmp_path,
    )


def test_a_function_with_two_signatures_is_two_runs(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def train_step(x, scale):
    return tf.reduce_sum(x) * scale
for size in (4, 8, 4, 4):
    train_step(tf.ones((size, 3)), tf.constant(2.0))
assert runs() == {"train_step (4,3)": (3, []), "train_step (8,3)": (1, [])}, runs()
run = the_run("train_step (4,3)")
assert run["feeds"] == ["x: float32[4,3]", "scale: float32[]"], run["feeds"]
assert run["fetches"] == ["train_step at <string>:28"] or run["fetches"][0].startswith("train_step at"), run["fetches"]
""",
        tmp_path,
    )


def test_what_runs_inside_a_step_is_no_step(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def inner(x):
    return x + 1.0
@tf.function
def outer(x):
    return inner(inner(x))
for _ in range(3):
    outer(tf.constant(1.0))
with tf.Graph().as_default():
    inner(tf.constant(1.0))
list(tf.data.Dataset.range(3).map(lambda value: inner(tf.cast(value, tf.float32))))
assert runs() == {"outer": (3, [])}, runs()
""",
        tmp_path,
    )


def test_the_ways_to_run_a_step(tmp_path: Path) -> None:
    run_eager_script(
        """
network(jit_compile=True).fit(batches(3), verbose=0)
assert runs().pop("fit: net") == (3, [])
network(steps_per_execution=4).fit(batches(8), verbose=0)
assert (2, []) in runs().values(), runs()  # two calls of four steps
strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
@tf.function
def distributed():
    return strategy.run(lambda: tf.constant(1.0))
for _ in range(3):
    distributed()
assert runs()["distributed"] == (3, []), runs()
concrete = distributed.get_concrete_function()
concrete()
assert sum(steps for steps, _ in runs().values()) == 3 + 2 + 3 + 1, runs()
""",
        tmp_path,
    )


def test_a_step_of_fit_is_traced_with_its_ops_and_edges(tmp_path: Path) -> None:
    run_eager_script(
        """
from tftracer.trace.answers import Answers
model = network()
model.fit(batches(4), verbose=0)
recorder.request_traces(the_run("fit: net")["id"], 1)
model.fit(batches(10), verbose=0)
steps, traced = runs()["fit: net"]
assert (steps, traced) == (14, [5]), (steps, traced)
(record,) = the_run("fit: net")["traces"]
answers = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"]))
trace = answers.trace
assert trace.source == "xspace"
assert any(op.endswith("MatMul") for op in trace.ops), list(trace.ops)
assert {device.title for device in trace.devices} >= {"CPU", "tf.data"}, trace.devices
assert trace.duration_ns <= record["duration_s"] * 1e9 + 1e6
assert answers.graph.source == "function_graph"
product = next(i for i in range(trace.n) if trace.ops[trace.op[i]].endswith("MatMul"))
assert answers.node(product)["inputs"]
""",
        tmp_path,
    )


def test_the_scripts_own_profiler_wins(tmp_path: Path) -> None:
    run_eager_script(
        """
import tempfile, glob
@tf.function
def step(x):
    return x * 2.0
for _ in range(3):
    step(tf.constant(1.0))
folder = tempfile.mkdtemp()
tf.profiler.experimental.start(folder)
recorder.request_traces(the_run("step")["id"], 1)
step(tf.constant(1.0))  # cannot be traced: waits
tf.profiler.experimental.stop()
assert runs()["step"] == (4, []), runs()
assert glob.glob(folder + "/plugins/profile/*/*.xplane.pb")
step(tf.constant(1.0))  # traced now
tf.profiler.experimental.start(tempfile.mkdtemp())  # while ours is being collected, maybe
tf.profiler.experimental.stop()
assert runs()["step"] == (5, [5]), runs()
assert step(tf.constant(3.0)) == 6.0
""",
        tmp_path,
    )


def test_a_step_that_fails_is_none_and_its_request_stands(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def step(x):
    tf.debugging.assert_positive(x)
    return x * 2.0
step(tf.constant(1.0))
recorder.request_traces(the_run("step")["id"], 1)
for _ in range(2):
    try:
        step(tf.constant(-1.0))
    except tf.errors.InvalidArgumentError as error:
        assert "assert" in str(error) or "Condition" in str(error)
    else:
        raise AssertionError("the script's own error was swallowed")
assert runs()["step"] == (1, []), runs()
step(tf.constant(1.0))
assert runs()["step"] == (2, [2]), runs()
""",
        tmp_path,
    )


def test_a_function_called_from_threads(tmp_path: Path) -> None:
    run_eager_script(
        """
import threading
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(1.0))
recorder.request_traces(the_run("step")["id"], 3)
def work():
    for _ in range(50):
        assert step(tf.constant(1.0)) == 2.0
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
steps, traced = runs()["step"]
assert steps == 201 and traced, (steps, traced)
""",
        tmp_path,
    )


def test_steps_of_a_loop_of_ones_own(tmp_path: Path) -> None:
    run_eager_script(
        """
from tftracer.trace.answers import Answers
@tf.function
def inner(x):
    return x * 2.0
@server.trace
def validate(x):
    return inner(x)
for _ in range(4):
    with server.step("train"):
        inner(tf.matmul(tf.ones((8, 8)), tf.ones((8, 8))))
assert validate(tf.constant(1.0)) == 2.0
assert runs() == {"train": (4, []), "validate": (1, [])}, runs()
recorder.request_traces(the_run("train")["id"], 1)
with server.step("train"):
    inner(tf.matmul(tf.ones((8, 8)), tf.ones((8, 8))))
assert runs()["train"] == (5, [5]), runs()
(record,) = the_run("train")["traces"]
trace = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"])).trace
assert "MatMul" in list(trace.ops), list(trace.ops)
try:
    with server.step("train"):
        raise ValueError("of the script")
except ValueError:
    pass
assert runs()["train"][0] == 5
""",
        tmp_path,
    )


def test_retracing_is_told_with_the_argument_that_changes(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def train_step(x):
    return tf.reduce_sum(x)
for size in range(1, 9):
    train_step(tf.ones((size, 3)))
assert recorder.flush()
(problem,) = recorder.session()["problems"]
assert "train_step" in problem["message"] and "argument 1 changed" in problem["message"], problem
problems = [problem["code"]]
""",
        tmp_path,
    )


def test_functions_that_keep_their_signature_are_not_blamed(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def step(x):
    return x * 2.0
for size in (1, 2, 3, 4):
    for _ in range(20):
        step(tf.ones((size,)))
assert len(runs()) == 4, runs()
""",
        tmp_path,
    )


def test_a_tracer_that_is_off_leaves_functions_alone(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(1.0))
assert runs()["step"][0] == 1
server.close()
assert step(tf.constant(2.0)) == 4.0
assert not hasattr(type(step).__call__, "__wrapped__") or step(tf.constant(2.0)) == 4.0
""",
        tmp_path,
    )


def test_no_fault_of_the_tracer_reaches_a_function(tmp_path: Path) -> None:
    """Each function of the modules that watch compiled functions fails in turn, but for the two wrappers and their guard."""
    run_eager_script(
        """
import inspect, logging
from tftracer.capture import function_identity, function_runs, functions, profiler
from tftracer.errors import TracerError
logging.getLogger("tftracer").setLevel(logging.CRITICAL)
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(1.0))
def broken(*arguments, **named):
    raise OSError("injected")
targets = []
for module in (function_identity, function_runs, functions, profiler):
    holders = [module, *(kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__)]
    for holder in holders:
        for name, function in list(vars(holder).items()):
            ours = inspect.isfunction(function) and function.__module__ == module.__name__
            if ours and not name.startswith("__") and name not in ("_quietly", "_call", "_flat", "watch", "_wrap"):
                targets.append((holder, name, function))
assert len(targets) > 30, targets
watching = server.functions
on_the_writers_thread = ("settle", "_settle_all", "_capture", "_handle", "_new_handle", "_retracing", "identify", "changed")
for holder, name, function in targets:
    watching.calls.off = False
    setattr(holder, name, broken)
    try:
        for _ in range(2):
            assert step(tf.constant(2.0)) == 4.0, name
            try:
                recorder.queue.requests.request(None, 1)
                assert step(tf.constant(3.0)) == 6.0, name
                watching.settle()
            except OSError:
                assert name in on_the_writers_thread or holder is function_identity, name
    finally:
        setattr(holder, name, function)
assert step(tf.constant(4.0)) == 8.0
server.close()
recorder.session()["problems"].clear()
problems = [problem["code"] for problem in recorder.session()["problems"]]
""",
        tmp_path,
    )
