"""A traced step has every op that it ran, also after hundreds of steps. ``make test-whole`` runs this on other TensorFlows."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from tf.scripts import run_eager_script
from tf.traced_scripts import RUN, SCRIPTS, Page, start

from tftracer.session.files.saved import open_session
from tftracer.trace.answers import Answers
from tftracer.trace.decode.executed_graph import ran_and_left_out
from tftracer.trace.decode.profile_graph import partition_graphs
from tftracer.trace.decode.xplane_reader import PARTITIONS_PLANE, read_space

#: ResNet takes minutes on a busy machine with few cores.
pytestmark = [pytest.mark.tf, pytest.mark.timeout(1800)]

#: (model, loop, whether the script has a server of its own)
TRAININGS = [
    ("convnet", "fit", False),
    ("convnet", "custom", True),
    ("convnet", "fit", True),
    ("convnet", "custom", False),
    ("transformer", "fit", False),
    ("transformer", "custom", True),
    ("resnet50", "fit", True),
    ("resnet50", "custom", False),
    ("lstm", "fit", False),
    ("lstm", "custom", True),
]


@pytest.mark.parametrize(("model", "loop", "own_server"), TRAININGS)
def test_after_300_steps_a_trace_has_98_of_100_ops_of_the_graph_that_ran(
    model: str, loop: str, own_server: bool, tmp_path: Path
) -> None:
    answers, errors = traced(tmp_path, model, loop, own_server)
    trace = answers.trace
    plane = read_space(trace.raw).plane(PARTITIONS_PLANE)
    assert plane is not None
    recorded = Counter(trace.names.texts(trace.name[trace.counted]))
    ran, left_out = ran_and_left_out(partition_graphs(plane), set(recorded))
    print(f"{len(ran)} of {len(ran) + len(left_out)} ops, {trace.n} nodes; left out: {sorted(left_out)[:5]}")
    assert len(ran) > 100, ran
    assert len(ran) >= 0.98 * (len(ran) + len(left_out)), left_out
    assert recorded["IteratorGetNext"] == (loop == "fit"), "an asynchronous op is one node"
    assert "cheap_ops_left_out" not in {finding["code"] for finding in answers.findings()}
    assert "tracer_level" not in errors, errors


def traced(folder: Path, model: str, loop: str, own_server: bool) -> tuple[Answers, str]:
    """(a step of a training that is warm, as the page gets it, and what the script wrote to stderr)."""
    arguments = ["warm.py", model, loop]
    run = [sys.executable, *arguments, "server"] if own_server else [*RUN, *arguments]
    script = start(folder, run, SCRIPTS, TF_CPP_MIN_LOG_LEVEL="0")
    assert script.stdin is not None and script.stdout is not None
    page = Page.of(script, script.stdout.readline() if own_server else "")
    assert script.stdout.readline() == "trained\n"
    while not (runs := [run for run in page.runs().values() if run["steps"] >= 300]):
        pass  # they are counted ten times a second
    (run,) = runs
    page(f"api/runs/{run['id']}/trace", {"steps": 1})
    script.stdin.write("again\n")
    _, errors = script.communicate()
    assert script.returncode == 0, errors
    (file,) = (folder / "spool").glob("*.tftrace")
    session = open_session(str(file))
    traces = next(found["traces"] for found in session.runs() if found["id"] == run["id"])
    (record,) = [trace for trace in traces if trace["asked_by"] == "user"]  # others were expected to be slow
    return Answers(session.trace_bytes(record["id"]), session.trace_context(record["id"])), errors


def test_training_is_the_same_to_the_bit_with_traced_steps(tmp_path: Path) -> None:
    run_eager_script(
        """
tf.config.experimental.enable_op_determinism()
server.functions.traces.wait_s = recorder.queue.backlog.wait_s = 300.0
def trained(traces):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    parts = [layers.Input((16, 16, 3)), layers.Conv2D(8, 3, activation="relu"), layers.Dropout(0.5), layers.Flatten()]
    model = tf.keras.Sequential([*parts, layers.Dense(32, activation="relu"), layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(1).random((400, 16, 16, 3), np.float32), np.arange(400) % 10
    for part in range(5):
        if traces:
            recorder.request_traces(None, 2)
        model.fit(x[80 * part : 80 * part + 80], y[80 * part : 80 * part + 80], batch_size=8, verbose=0)
    return [weight.tobytes() for weight in model.get_weights()]
plain = trained(False)
assert trained(True) == plain
assert recorder.flush()
asked_by = [trace["asked_by"] for run in recorder.runs() for trace in run["traces"]]
assert asked_by.count("user") == 10, asked_by  # others may have been expected to be slow
assert sum(run["steps"] for run in recorder.runs()) == 100
""",
        tmp_path,
    )


REFUSING = """
from tftracer.capture.traces import shared_profiles
from tftracer.trace.answers import Answers
original = shared_profiles.bindings()
class Bindings:
    def __getattr__(self, name):
        return getattr(original, name)
    class ProfilerSession:
        def __init__(self):
            self.real = original.ProfilerSession()
        def start(self, folder, options):
            refuse(options)
            # What is left of the options where TensorFlow takes their values for bools.
            self.real.start(folder, {})
        def export_to_tb(self):
            self.real.export_to_tb()
        def stop(self):
            return self.real.stop()
shared_profiles.bindings = Bindings
@tf.function
def step(x):
    for _ in range(50):
        x = x * 2.0 - x
    large = tf.random.uniform((500, 500))
    return x + 0.0 * tf.matmul(large, large)[0, 0]
for _ in range(300):
    step(tf.ones((2,)))
recorder.request_traces(the_run("step (2)")["id"], 1)
"""


def test_a_binding_that_refuses_the_level_gets_what_it_takes_and_the_trace_says_what_it_lacks(tmp_path: Path) -> None:
    """As TensorFlow 2.21 would have it, if it took no int for a level."""
    run_eager_script(
        """
def refuse(options):
    for value in options.values():
        if type(value) is not int:
            raise TypeError("an int, please")
"""
        + REFUSING
        + """
assert step(tf.ones((2,)))[0] == 1.0
(record,) = the_run("step (2)")["traces"]
answers = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"]))
(lacks,) = [finding for finding in answers.findings() if finding["code"] == "cheap_ops_left_out"]
recorded, total = (int(word) for word in lacks["message"].rpartition("(")[2].split()[0:3:2])
assert 0 < recorded < 50 and 100 <= total < 120, lacks
assert lacks["message"].endswith("of the executor's time)"), lacks
assert record["headline"].startswith(f"{recorded} of {total} ops recorded, "), record
""",
        tmp_path,
    )


def test_a_binding_that_starts_nothing_leaves_the_step_untraced(tmp_path: Path) -> None:
    run_eager_script(
        """
def refuse(options):
    raise TypeError("no options at all")
"""
        + REFUSING
        + """
assert step(tf.ones((2,)))[0] == 1.0
assert runs()["step (2)"] == (301, []), runs()
(problem,) = recorder.session()["problems"]
assert "no options at all" in problem["message"], problem
problems = [problem["code"]]
recorder.request_traces(the_run("step (2)")["id"], 0)
""",
        tmp_path,
    )


def test_a_thread_that_starts_its_own_profile_in_a_traced_step_gets_it(tmp_path: Path) -> None:
    run_eager_script(
        """
import glob, tempfile, threading
folder, waits, goes_on = tempfile.mkdtemp(), threading.Event(), threading.Event()
def wait(waiting):
    if waiting:
        waits.set()
        assert goes_on.wait(60)
@tf.function
def step(x, waiting):
    tf.py_function(wait, [waiting], [])
    return x * 2.0
step(tf.constant(1.0), tf.constant(False))
def profile():
    waits.wait(60)
    tf.profiler.experimental.start(folder)
    goes_on.set()
thread = threading.Thread(target=profile)
thread.start()
recorder.request_traces(the_run("step")["id"], 1)
assert step(tf.constant(1.0), tf.constant(True)) == 2.0  # ours is dropped
thread.join()
tf.profiler.experimental.stop()
assert glob.glob(folder + "/plugins/profile/*/*.xplane.pb")
assert runs()["step"] == (2, []), runs()
assert step(tf.constant(1.0), tf.constant(False)) == 2.0
assert runs()["step"] == (3, [3]), runs()
""",
        tmp_path,
    )
