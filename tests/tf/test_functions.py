"""Compiled functions and Keras: each step is listed, counted and timed, and traced when asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script

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
x, y = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
for _ in range(3):
    model.train_on_batch(x, y)
model.test_on_batch(x, y)
model.predict_on_batch(x)
model.train_on_batch(x[:2], y[:2])
model.fit(batches(1), verbose=0)
seen = {}
for title, (steps, _) in runs().items():
    name = title.partition(" (")[0]  # in Keras 3 the smaller batch is another signature
    seen[name] = seen.get(name, 0) + steps
trained = {"fit: net": 9, "evaluate: net": 3, "predict: net": 2}
assert seen == {**trained, "train_on_batch: net": 4, "test_on_batch: net": 1, "predict_on_batch: net": 1}, seen
assert the_run("fit: net")["mean_s"] > 0 and the_run("train_on_batch: net")["definition"] == "Keras"
assert recorder.session()["call_cost_s"] > 0
""",
        tmp_path,
    )


def test_train_on_batch_has_the_traces_that_were_asked_for_and_other_functions_keep_their_names(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def counted(x):
    return x + 1.0
class Own(tf.keras.Sequential):
    fails = False
    def reset_metrics(self):
        counted(tf.constant(1.0))
        if self.fails:
            raise KeyError("the script's")
        super().reset_metrics()
model = Own([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(1)], name="own")
model.compile("sgd", "mse")
x, y = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
model.fit(x, y, batch_size=4, verbose=0)
model.train_on_batch(x, y)
Own.fails = True
try:
    model.train_on_batch(x, y)
except KeyError:
    Own.fails = False
assert not Own.fails
recorder.request_traces(the_run("train_on_batch: own")["id"], 1)
model.fit(x, y, batch_size=4, verbose=0)
model.train_on_batch(x, y)
with server.step("one"):
    model.train_on_batch(x, y)
seen = runs()
resets, _ = seen.pop("counted")
assert resets >= 4 and seen == {"fit: own": (2, []), "train_on_batch: own": (2, [2]), "one": (1, [])}, (resets, seen)
owner = next(kind for kind in Own.__mro__ if "train_on_batch" in vars(kind))
assert hasattr(owner.train_on_batch, "__wrapped__")
server.functions.stop()
assert not hasattr(owner.train_on_batch, "__wrapped__")
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


def test_keras_that_runs_eagerly_has_steps_too(tmp_path: Path) -> None:
    run_eager_script(
        """
from tftracer.trace.answers import Answers
model = network(run_eagerly=True)
model.fit(batches(4), epochs=2, verbose=0, validation_data=batches(2))
model.predict(batches(2).map(lambda x, y: x), verbose=0)
x, y = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
model.train_on_batch(x, y)
model.test_on_batch(x, y)
model.predict_on_batch(x)
trained = {"fit: net": (8, []), "evaluate: net": (4, []), "predict: net": (2, [])}
on_batch = {f"{method}_on_batch: net": (1, []) for method in ("train", "test", "predict")}
assert runs() == {**trained, **on_batch}, runs()
class Own(tf.keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.layer = tf.keras.layers.Dense(1)
        self.doubled = tf.function(lambda x: x * 2.0)
    def call(self, x):
        return self.layer(x)
    def train_step(self, data):
        return {"loss": tf.reduce_mean(self.doubled(self(data[0])))}
own = Own()
own.compile("sgd", run_eagerly=True)
own.fit(batches(3), verbose=0)
assert runs().pop("fit: own") == (3, []) and len(runs()) == 7, runs()  # its compiled function is a part of the step
try:
    model.fit(batches(2).map(lambda x, y: (x[:, :3], y)), verbose=0)
except ValueError:
    pass
else:
    raise AssertionError("the error of the script was swallowed")
recorder.request_traces(the_run("fit: net")["id"], 1)
model.fit(batches(2), verbose=0)
assert runs()["fit: net"] == (10, [9]), runs()
(record,) = the_run("fit: net")["traces"]
trace = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"])).trace
assert {"MatMul", "ReluGrad"} & set(trace.ops), list(trace.ops)
network().fit(batches(2), verbose=0)
assert runs()["fit: net (2)"] == (2, []), runs()  # compiled: each step once
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
assert "train_step" in problem["message"] and "argument x is float32[" in problem["message"], problem
problems = [problem["code"]]
""",
        tmp_path,
    )


def test_a_function_that_is_traced_at_each_call_fills_no_table(tmp_path: Path) -> None:
    run_eager_script(
        """
import gc
from tftracer.capture.steps import run_registry
run_registry.MAX_RUNS, calls = 20, 150
def made():
    return tf.function(lambda value: tf.constant(value))
def traced_anew():
    step = made()
    for value in range(calls):
        step(value)
    assert runs()["everything after the first 20 runs"] == (calls - 20, []), runs()
    return server.functions.table_sizes()
while_it_lives = traced_anew()
assert while_it_lives["runs"] == 21 and while_it_lives["places"] == 1, while_it_lives
gc.collect()
afterwards = server.functions.table_sizes()
assert afterwards["functions"] == 0 and afterwards["concrete functions"] <= 1, (while_it_lives, afterwards)
assert len(runs()) == 21 and afterwards["runs by identity"] == 20, afterwards
for _ in range(5):
    made()(calls)
    runs()
    gc.collect()
assert runs()["<lambda>"] == (6, []), runs()  # a function that is made anew goes on with the run of one that is gone
assert runs()["everything after the first 20 runs"] == (calls - 20, []), runs()
problems = [problem["code"] for problem in recorder.session()["problems"]]
assert len(problems) == 1, problems
""",
        tmp_path,
    )


def test_the_graph_of_a_first_call_beside_eager_ops_of_another_thread_is_kept(tmp_path: Path) -> None:
    run_eager_script(
        """
import threading
stopping = threading.Event()
def other_thread():
    while not stopping.is_set():
        tf.constant(1.0) + 1.0
threading.Thread(target=other_thread).start()
kept = []
try:
    for size in range(1, 21):
        @tf.function
        def step(x):
            for _ in range(200):
                x = tf.sin(x) * 2.0
            return x
        kept.append(step)
        step(tf.ones((size,)))
finally:
    stopping.set()
assert recorder.flush()
assert server.functions.table_sizes()["partition graphs"] == 20, server.functions.table_sizes()
problems = [problem["code"] for problem in recorder.session()["problems"]]  # one line defines many functions
""",
        tmp_path,
    )


def test_graphs_of_functions_that_are_gone_are_not_kept(tmp_path: Path) -> None:
    run_eager_script(
        """
import gc, time
def objects():
    gc.collect()
    assert recorder.flush()
    of_graphs = ("tftracer.capture.functions.partition_graphs", "tftracer.capture.function", "tensorflow.core")
    kinds = [type(one) for one in gc.get_objects()]
    return sum(str(kind.__module__).startswith(of_graphs) or kind.__name__ == "ConcreteFunction" for kind in kinds)
def retraced(times):
    for number in range(times):
        assert tf.function(lambda x: x * 2.0 + 1.0)(tf.constant(1.0)) == 3.0
        if number % 40 == 0:
            assert recorder.flush()  # so that no graph is left out because too many wait
    gc.collect()
    assert recorder.flush()
def once_gone():
    # sizes of the tables, once no thread looks at one of the last functions any more
    for _ in range(600):
        gc.collect()
        assert recorder.flush()
        sizes = server.functions.table_sizes()
        of_graphs = [sizes[table] for table in ("partition graphs", "called functions")]
        if of_graphs == [1, 1]:
            break
        time.sleep(0.1)
    return of_graphs
@tf.function
def kept(x):
    return x * 2.0
kept(tf.constant(1.0))
retraced(20)
before, counted = once_gone(), objects()
assert before == [1, 1], before
retraced(300)
after = once_gone()
assert after == [1, 1], after
assert objects() <= counted + 5, (counted, objects())
problems = [problem["code"] for problem in recorder.session()["problems"]]
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
