"""What compiled functions are called, and which of them are one run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script

pytestmark = pytest.mark.tf


def test_retracing_names_every_argument_that_changes(tmp_path: Path) -> None:
    run_eager_script(
        """
@tf.function
def train_step(x, mask, y):
    return tf.reduce_sum(x) + tf.reduce_sum(y)
for size in range(1, 9):
    train_step(tf.ones((size, 3)), tf.ones(4), tf.ones((size,)))
assert recorder.flush()
(problem,) = recorder.session()["problems"]
message = problem["message"]
assert "argument x is float32[8,3]" in message and "argument y is float32[8]" in message, problem
assert "argument mask" not in message, problem
problems = [problem["code"]]
""",
        tmp_path,
    )


def test_another_object_as_an_argument_is_named(tmp_path: Path) -> None:
    run_eager_script(
        """
class Options:
    rate = 2.0
@tf.function
def train_step(x, options, pair):
    return x * options.rate * pair[0].rate
usual = Options()
kept = [Options() for number in range(8)]
for each in kept:
    train_step(tf.ones(4), usual, (each, 1))
assert recorder.flush()
(problem,) = recorder.session()["problems"]
message = problem["message"]
assert "argument pair[0] is another object of Options." in message and "argument options" not in message, problem
problems = [problem["code"]]
""",
        tmp_path,
    )


def test_functions_of_a_saved_model_and_gradients_have_names_that_a_person_would_give(tmp_path: Path) -> None:
    run_eager_script(
        """
import tempfile
class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.ones((8, 8)))
    @tf.function
    def __call__(self, x):
        return tf.matmul(x, self.weights)
    @tf.function(input_signature=[tf.TensorSpec((None, 8))])
    def serve(self, x):
        return self(x)
net, x = Net(), tf.ones((4, 8))
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(net(x))
    tape.gradient(loss, net.weights)
folder = tempfile.mkdtemp()
tf.saved_model.save(net, folder, signatures={"serving_default": net.serve})
loaded = tf.saved_model.load(folder)
for _ in range(3):
    loaded.serve(x)
    loaded.signatures["serving_default"](x=x)
seen = runs()
names = {title.partition(" (")[0] for title in seen}
assert names == {"Net.__call__", "gradient of __call__", "serve"}, seen
assert sum(steps for title, (steps, _) in seen.items() if title.startswith("serve")) == 6, seen
assert the_run(next(title for title in seen if title.startswith("serve")))["definition"] in ("SavedModel", "tf.function")
""",
        tmp_path,
    )


def test_models_of_one_name_that_differ_are_two_runs_and_one_that_is_made_anew_goes_on(tmp_path: Path) -> None:
    run_eager_script(
        """
import gc
def train(units):
    tf.keras.backend.clear_session()
    gc.collect()
    model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(units), tf.keras.layers.Dense(1)], name="net")
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 8), np.float32), np.ones((8, 1), np.float32), batch_size=4, verbose=0)
    recorder.flush()
for units in (4, 16, 16):
    train(units)
    gc.collect()
steps = sorted(run["steps"] for run in recorder.runs() if run["title"].startswith("fit: net"))
assert steps == [2, 4], steps
""",
        tmp_path,
    )


def test_a_function_that_was_traced_before_the_server_says_what_changed(tmp_path: Path) -> None:
    """A judge read "it was called for the first time" of a function that the script had called before it made the server."""
    run_eager_script(
        """
from tftracer.capture.functions.retracing import Retracing
state = []
@tf.function
def scaled(x, level):
    if not state:
        state.append(tf.Variable(1.0))  # TensorFlow traces a function that makes variables twice
    return x * level * state[0]
x = tf.zeros((2, 3))
scaled(x, 1)
assert Retracing().add("scaled", scaled.get_concrete_function(x, 1), scaled) == ""
scaled(x, 2)
changed = Retracing().add("scaled", scaled.get_concrete_function(x, 2), scaled)
assert changed == "argument level is 2, and was traced before for 1", changed
""",
        tmp_path,
    )
