"""Traced steps of compiled functions: which are, what is in them, what keeps one from being traced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script

pytestmark = pytest.mark.tf


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
assert answers.graph.source == "partition_graph"
assert answers.context.cpu_use["wall_s"] > 0 and answers.context.cpu_use["cpu_s"] > 0, answers.context.cpu_use
product = next(i for i in range(trace.n) if trace.ops[trace.op[i]].endswith("MatMul"))
assert answers.node(product)["inputs"]
""",
        tmp_path,
    )


RESNET50 = """
inputs = np.zeros((6, 32, 32, 3), np.float32)
model = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10)
"""
TRANSFORMER = """
layers = tf.keras.layers
inputs = np.zeros((6, 16), np.int32)
words = tf.keras.Input((16,), dtype="int32")
state = layers.Embedding(50, 32)(words)
for _ in range(6):
    state = layers.LayerNormalization()(layers.Add()([state, layers.MultiHeadAttention(4, 8)(state, state)]))
    state = layers.LayerNormalization()(layers.Add()([state, layers.Dense(32)(layers.Dense(64, "relu")(state))]))
model = tf.keras.Model(words, layers.Dense(10, "softmax")(layers.GlobalAveragePooling1D()(state)))
"""


@pytest.mark.parametrize("model", [RESNET50, TRANSFORMER], ids=["resnet50", "transformer"])
def test_ops_of_real_models_are_joined_to_their_graphs(model: str, tmp_path: Path) -> None:
    """At least 98% of the ops that the profile has find their node in the graph that the step ran; so do shapes of matrix ops,
    and 95% of the ops of the backward pass and of the optimizer, whose names tell no variable, find their layer.
    """
    run_eager_script(
        """
from tftracer.trace.analyses.layer_of_each_op import PHASES
from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class
"""
        + model
        + """
labels = np.arange(6, dtype=np.int32)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(inputs, labels, batch_size=2, verbose=0)
assert recorder.flush()
(run,) = recorder.runs()
recorder.request_traces(run["id"], 1)
model.fit(inputs, labels, batch_size=2, verbose=0)
(record,) = the_run(run["title"])["traces"]
answers = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"]))
trace = answers.trace
graph = {node.name for node in message_class("GraphDef").FromString(trace.load_graph()).node}
ops = [i for i in np.flatnonzero(trace.counted).tolist() if trace.devices[trace.device[i]].title == "CPU"]
joined = [i for i in ops if trace.names[trace.name[i]] in graph]
print(len(joined), "of", len(ops), "ops are joined")
flops = answers.arithmetic.flops[answers.arithmetic.is_matrix & trace.counted]
assert len(flops) > 20 and np.isnan(flops).mean() <= 0.02, (len(flops), np.isnan(flops).sum())
assert (flops[~np.isnan(flops)] > 0).all(), flops
assert len(ops) > 100 and len(joined) >= 0.98 * len(ops), (len(joined), len(ops))
assert answers.graph.source == "partition_graph"
placed = answers.layers_of_ops
trained = (placed.phase == PHASES.index("backward")) | (placed.phase == PHASES.index("optimizer"))
in_layer = (placed.layer[trained] > 0).mean()
print(in_layer, "of", trained.sum(), "ops of the training are in a layer")
assert trained.sum() > 100 and in_layer >= 0.95, in_layer
""",
        tmp_path,
    )


SOURCES = """
from tftracer.trace.answers import Answers
def source(title):
    (record,) = the_run(title)["traces"]
    trace = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"])).trace
    assert trace.load_graph is not None and trace.load_graph()
    return "definition" if trace.has_definitions else "partition graphs"
"""


def test_a_step_is_joined_to_the_graphs_that_ran_and_else_to_its_definition(tmp_path: Path) -> None:
    run_eager_script(
        SOURCES
        + """
from tftracer.capture.functions import partition_graphs
server.functions.stop()
step = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)), autograph=False)
step.__name__ = "early"
step(tf.ones((4, 4)))
server.watch_functions()  # attached later
@tf.function
def late(x):
    return tf.reduce_sum(tf.matmul(x, x))
partition_graphs.MAX_CONSTANTS = 4 << 20
@tf.function
def large(x):
    return tf.reduce_sum(x * tf.constant(np.ones(2 << 20, np.float32)))
@tf.function
def calls_large(x):
    return tf.cond(x > 0.0, lambda: large(x), lambda: x)
for _ in range(2):
    recorder.set_trace_all(_ == 1)
    for function in (step, late):
        assert function(tf.ones((4, 4))) == 64.0
    for function in (large, calls_large):
        assert function(tf.constant(1.0)) == float(2 << 20)
    assert recorder.flush()
recorder.set_trace_all(False)
sources = {run["title"].partition(" ")[0]: source(run["title"]) for run in recorder.runs()}
assert sources.pop("late") == "partition graphs" and set(sources.values()) == {"definition"}, sources
assert len(sources) == 3 and server.functions.table_sizes()["partition graphs"] == 1, sources
""",
        tmp_path,
    )


def test_the_scripts_own_collection_of_graphs_wins(tmp_path: Path) -> None:
    run_eager_script(
        SOURCES
        + """
import glob, tempfile
from tensorflow.python.eager import context
theirs = context.context()
@tf.function
def before(x):
    return x * 2.0
@tf.function
def during(x):
    return x * 3.0
@tf.function
def starts(x):
    tf.py_function(theirs.enable_graph_collection, [], [])
    return x * 4.0
before(tf.constant(1.0))
folder = tempfile.mkdtemp()
writer = tf.summary.create_file_writer(folder)
with writer.as_default():
    tf.summary.trace_on(graph=True, profiler=False)
    during(tf.constant(1.0))
    tf.summary.trace_export("theirs", step=0)
writer.close()
written = b"".join(open(path, "rb").read() for path in glob.glob(folder + "/*"))
assert b"theirs" in written and b"Mul" in written
starts(tf.constant(1.0))  # in the middle of ours
kept = theirs.export_run_metadata()  # ours has ended, theirs goes on
assert kept.function_graphs, kept
theirs.disable_graph_collection()
recorder.set_trace_all(True)
for function in (before, during, starts):
    function(tf.constant(1.0))
    assert recorder.flush()
recorder.set_trace_all(False)
theirs.disable_graph_collection()
sources = {title: source(title) for title in ("before", "during", "starts")}
assert sources == {"before": "partition graphs", "during": "definition", "starts": "definition"}, sources
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
assert runs()["step"] == (4, []), runs()
(problem,) = recorder.session()["problems"]
assert problem["message"].startswith("Steps that are to be traced wait: the script, or another tool, is profiling"), problem
tf.profiler.experimental.stop()
assert glob.glob(folder + "/plugins/profile/*/*.xplane.pb")
step(tf.constant(1.0))  # traced now
tf.profiler.experimental.start(tempfile.mkdtemp())  # while ours is being collected, maybe
tf.profiler.experimental.stop()
assert runs()["step"] == (5, [5]), runs()
assert recorder.session()["problems"] == []
recorder.request_traces(the_run("step")["id"], 1)
theirs = []
@tf.function
def starts_its_own(x):
    tf.py_function(lambda: theirs.append(tf.profiler.experimental.start(folder + "/during")), [], [])
    return x * 2.0
recorder.request_traces(None, 1)
starts_its_own(tf.constant(1.0))  # during a step of ours, which is dropped
assert runs()["starts_its_own"] == (1, []) and recorder.session()["problems"], runs()
tf.profiler.experimental.stop()
assert glob.glob(folder + "/during/plugins/profile/*/*.xplane.pb")
assert step(tf.constant(3.0)) == 6.0
assert runs()["step"] == (6, [5, 6]), runs()
assert recorder.session()["problems"] == []
recorder.request_traces(None, 0)
""",
        tmp_path,
    )


def test_steps_one_after_another_are_all_traced(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def step(x):
    return x * 2.0
for size in (1, 2):
    step(tf.ones((size,)))
recorder.request_traces(the_run("step (1)")["id"], 5)
for _ in range(6):
    assert step(tf.ones((2,)))[0] == 2.0  # another signature: the requests wait
    assert step(tf.ones((1,)))[0] == 2.0
assert runs() == {"step (1)": (7, [2, 3, 4, 5, 6]), "step (2)": (7, [])}, runs()
assert the_run("step (1)")["pending_traces"] == 0
recorder.set_trace_all(True)
for _ in range(3):
    step(tf.ones((2,)))
recorder.set_trace_all(False)
assert runs()["step (2)"] == (10, [8, 9, 10]), runs()
""",
        tmp_path,
    )


def test_steps_in_a_row_share_a_profile_and_each_has_its_own_ops(tmp_path: Path) -> None:
    """Also where others come in between, or one fails: these are no part of it."""
    run_eager_script(
        """
from tftracer.capture.traces.shared_profiles import Profile
from tftracer.trace.answers import Answers
begun, start = [], Profile.start
def counted(profile):
    begun.append(profile)
    start(profile)
Profile.start = counted
server.functions.traces.wait_s = 300.0
@tf.function
def step(x):
    tf.debugging.assert_positive(x)
    return x * 2.0
@tf.function
def other(x):
    return tf.matmul(x, x)
step(tf.constant(1.0))
other(tf.ones((2, 2)))
recorder.request_traces(the_run("step")["id"], 12)
for number in range(6):
    assert step(tf.constant(1.0)) == 2.0
    other(tf.ones((2, 2)))
try:
    step(tf.constant(-1.0))
except tf.errors.InvalidArgumentError:
    pass
for number in range(7):
    assert step(tf.constant(1.0)) == 2.0
assert runs()["step"] == (14, list(range(2, 14))), runs()
assert 1 <= len(begun) < 12, len(begun)  # a busy machine may take longer than a profile lasts
ops = []
for record in the_run("step")["traces"][-5:]:
    trace = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"])).trace
    ops.append(sorted(trace.ops[code] for code in trace.op[trace.counted]))
    assert trace.duration_ns <= record["duration_s"] * 1e9 + 1e6, record
assert ops[0].count("Mul") == 1 and not any("MatMul" in one for one in ops), ops
assert all(one == ops[0] for one in ops), ops
""",
        tmp_path,
    )


def test_no_traced_step_waits_until_another_thread_gets_a_cpu(tmp_path: Path) -> None:
    """``Thread.start`` does: on a busy machine it held training for up to 0.3 s."""
    run_eager_script(
        """
import threading
start, started = threading.Thread.start, []
def noted(thread):
    started.append((threading.current_thread().name, thread.name))
    start(thread)
@tf.function
def step(x):
    return x * 2.0
weight, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD()
def eager_step():
    optimizer.apply_gradients([(tf.constant(0.1), weight)])
step(tf.constant(1.0))
for _ in range(3):
    eager_step()
(loop,) = [run for run in runs() if run.startswith("loop at")]
threading.Thread.start = noted
recorder.request_traces(the_run("step")["id"], 3)
for _ in range(3):
    step(tf.constant(1.0))
assert server.functions.traces.profiler.wait(60.0)
recorder.request_traces(the_run(loop)["id"], 1)
for _ in range(3):
    eager_step()
assert len(the_run("step")["traces"]) == 3 and len(the_run(loop)["traces"]) == 1, (runs(), started)
here = {name for starter, name in started if starter == "MainThread"}
assert here <= {"tftracer-helper-start"}, started  # by the request, which is the server's thread in life
""",
        tmp_path,
    )


def test_a_process_that_gets_little_cpu_has_longer_rows(tmp_path: Path) -> None:
    """They cost as much memory; between two of them a step has no trace."""
    run_eager_script(
        """
from tftracer.capture.traces.shared_profiles import MAX_SHARED_CPU_S, MAX_SHARED_S, Profile
profile = Profile(0)
assert profile.used_share() < 1
profile.started_at -= 2 * MAX_SHARED_CPU_S  # in which this process got no CPU
assert profile.used_share() < 1
profile.started_at -= MAX_SHARED_S
assert profile.used_share() > 1
""",
        tmp_path,
    )


def test_a_row_of_steps_ends_by_itself_when_no_more_come(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(1.0))
recorder.request_traces(the_run("step")["id"], 5)
for _ in range(2):
    step(tf.constant(1.0))
assert runs()["step"] == (3, [2, 3]), runs()
import tempfile
tf.profiler.experimental.start(tempfile.mkdtemp())
tf.profiler.experimental.stop()
step(tf.constant(1.0))
tf.profiler.experimental.start(tempfile.mkdtemp())  # between two steps: the one before keeps its trace
step(tf.constant(1.0))
tf.profiler.experimental.stop()
step(tf.constant(1.0))
assert runs()["step"] == (6, [2, 3, 4, 6]), runs()
recorder.request_traces(the_run("step")["id"], 0)
""",
        tmp_path,
    )


def test_a_profile_that_is_not_collected_in_time_delays_a_request_and_is_told_of_every_step(tmp_path: Path) -> None:
    run_eager_script(
        """
import threading
from tftracer.capture.traces import shared_profiles
from tftracer.capture.traces.shared_profiles import Profile
shared_profiles.MAX_SHARED_CPU_S = shared_profiles.MAX_SHARED_S = 1e-9  # a profile for each step
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(1.0))
recorder.request_traces(the_run("step")["id"], 2)
go_on, collect = threading.Event(), Profile.collect
def slowly(profile):
    assert go_on.wait(60)
    collect(profile)
Profile.collect = slowly
server.functions.traces.wait_s = 0.0
def let_it_be_collected():
    go_on.set()
    assert server.functions.traces.profiler.wait(60.0)
    go_on.clear()
for _ in range(3):
    step(tf.constant(1.0))
let_it_be_collected()
assert runs()["step"] == (4, [2]) and recorder.session()["problems"] == [], runs()
step(tf.constant(1.0))
let_it_be_collected()
assert runs()["step"] == (5, [2, 5]) and recorder.session()["problems"] == [], runs()
recorder.set_trace_all(True)
for _ in range(3):
    step(tf.constant(1.0))
let_it_be_collected()
assert recorder.flush()
(problem,) = recorder.session()["problems"]
why = "because TensorFlow's profiler was still collecting the profile of the previous step: 'step', steps 7-8."
assert problem["message"] == "2 traces are missing, " + why, problem
recorder.set_trace_all(False)
assert runs()["step"] == (8, [2, 5, 6]), runs()
problems = ["missing_traces"]
""",
        tmp_path,
    )


def test_a_job_may_ask_for_one_certain_step(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def step(x):
    return x * 2.0
for size in (1, 2):
    step(tf.ones((size,)))
assert recorder.finished_steps() == {"step (1)": 1, "step (2)": 1}, recorder.finished_steps()
assert not recorder.request_trace_at("step (1)", 2)  # it may be under way
assert recorder.request_trace_at("step (1)", 4)
assert recorder.request_trace_at("step (2)", 3)
for _ in range(5):
    step(tf.ones((2,)))
    step(tf.ones((1,)))
assert runs() == {"step (1)": (6, [4]), "step (2)": (6, [3])}, runs()
assert not recorder.queue.requests.slow_path
""",
        tmp_path,
    )


def test_the_callback_notes_the_epoch_and_leaves_keras_as_it_is(tmp_path: Path) -> None:
    run_eager_script(
        """
callback = server.callback
assert isinstance(callback, tf.keras.callbacks.Callback)
for name in ("train", "test", "predict"):
    for method in (f"on_{name}_batch_begin", f"on_{name}_batch_end", "on_batch_end"):
        assert method not in vars(type(callback)), method  # Keras 3 would wait for it at each batch
def modes(callbacks):
    made = tf.keras.callbacks.CallbackList(callbacks, model=model)
    return {name: value for name, value in vars(made).items() if name.startswith(("_async", "_should_call"))}
for options in ({}, {"run_eagerly": True}):
    model = network(**options)
    assert modes([callback]) == modes([]) != {}, modes([callback])
    recorder.set_trace_all(True)
    model.fit(batches(1), epochs=3, verbose=0, callbacks=[callback])
    model.fit(batches(1), verbose=0)
    recorder.set_trace_all(False)
    run = the_run("fit: net (2)" if options else "fit: net")
    assert [trace["note"] for trace in run["traces"]] == ["epoch 1", "epoch 2", "epoch 3", ""], run
assert len(runs()) == 2, runs()
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


REQUESTED = (
    SOURCES
    + """
from tftracer.errors import UnsupportedError
def refusal(run):
    try:
        recorder.request_traces(run["id"], 1, with_graph=True)
    except UnsupportedError as error:
        return str(error)
    return ""
def executed(title):
    (record,) = the_run(title)["traces"]
    answers = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"]))
    return record["step"], source(title), {finding["code"] for finding in answers.findings()}
"""
)


def test_a_graph_that_is_requested_comes_with_the_next_trace_and_the_training_is_the_same_to_the_bit(tmp_path: Path) -> None:
    run_eager_script(
        REQUESTED
        + """
tf.config.experimental.enable_op_determinism()
def trained(observed):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((8,)), layers.Dense(16, activation="relu"), layers.Dense(1)])
    optimizer, noise = tf.keras.optimizers.Adam(), tf.random.Generator.from_seed(7)
    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x + noise.normal((4, 8)), training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    server.functions.stop()  # the function is called before the tracer comes
    train_step(tf.ones((4, 8)))
    server.watch_functions()
    for step in range(10):
        train_step(tf.ones((4, 8)))
        if observed and step == 4:
            run = the_run("train_step (4,8)")
            assert run["graph_on_request"] and refusal(run) == "", run
            assert the_run("train_step (4,8)")["pending_traces"] == 1
    return [weight.tobytes() for weight in model.get_weights()]
assert trained(True) == trained(False)
step, kind, findings = executed("train_step (4,8)")
assert (step, kind) == (7, "partition graphs"), (step, kind)
assert "cheap_ops_left_out" not in findings
assert not next(run for run in recorder.runs() if run["traces"])["graph_on_request"]
""",
        tmp_path,
    )


def test_a_graph_whose_kernels_keep_a_state_is_never_built_anew(tmp_path: Path) -> None:
    run_eager_script(
        REQUESTED
        + """
tf.random.set_seed(1)
server.functions.stop()
@tf.function
def inner(x):
    return tf.cond(x > 0.0, lambda: tf.random.uniform(()), lambda: x)
@tf.function
def random(x):
    return inner(x) + x
@tf.function
def plain(x):
    return x * 2.0
for function in (random, plain):
    function(tf.constant(1.0))
server.watch_functions()
for function in (random, plain):
    function(tf.constant(1.0))
with server.step("named"):
    plain(tf.constant(1.0))
assert "RandomUniform) may keep a state of its own" in refusal(the_run("random")), refusal(the_run("random"))
assert refusal(the_run("named")).startswith("Only compiled functions"), refusal(the_run("named"))
assert not the_run("named")["graph_on_request"] and the_run("random")["pending_traces"] == 0
assert refusal(the_run("plain")) == ""
recorder.request_traces(the_run("plain")["id"], 0)  # taken back: nothing is built
plain(tf.constant(1.0))
assert runs()["plain"][1] == [] and the_run("plain")["graph_on_request"]
assert server.functions.table_sizes()["partition graphs"] == 0
assert refusal(the_run("plain")) == ""
tf.summary.trace_on(graph=True, profiler=False)
plain(tf.constant(1.0))  # the script collects graphs itself
tf.summary.trace_off()
plain(tf.constant(1.0))
assert executed("plain")[1] == "definition"
""",
        tmp_path,
    )
