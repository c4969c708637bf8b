"""Whatever breaks in what watches compiled functions, they run as without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script

pytestmark = pytest.mark.tf


def test_no_fault_of_the_tracer_reaches_a_function(tmp_path: Path) -> None:
    """Each function of the modules that watch compiled functions fails in turn, but for the wrappers and their guard.

    Half of them raise and the others answer with garbage; on TensorFlow 2.15 and 2.21 the other way round.
    """
    run_eager_script(
        """
import gc, inspect, logging, time, zlib
from tftracer.capture import function_runs
from tftracer.capture.functions import function_titles as function_identity
from tftracer.capture.functions import function_definitions as function_library
from tftracer.capture.functions import profiled_calls
from tftracer.capture.functions import function_calls as functions
from tftracer.capture.traces import shared_profiles
from tftracer.capture.loops import eager_steps
from tftracer.capture.loops import keras_steps
from tftracer.capture.functions import partition_graphs
from tftracer.capture.steps import queue as step_queue
from tftracer.capture.traces import requests as trace_requests
logging.getLogger("tftracer").setLevel(logging.CRITICAL)
@tf.function
def step(x):
    return x * 2.0
step(tf.constant(1.0))
model = network()
eager = network(run_eagerly=True)
x, y = np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
data = batches(2)
optimizer, weights = tf.keras.optimizers.SGD(), tf.Variable(tf.ones((2,)))
model.fit(data, verbose=0)
runs()
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.recorded_steps import Capture
entries = {"watch", "wrap", "_wrap_call", "_wrap_call_flat", "step", "begin_step", "end_step", "record", "run_safely"}
entries |= {"named_step", "failed", "switch_off", "is_within_step_or_off", "_wrap_run", "_wrap_on_batch", "_wrap_switch"}
entries |= {"make_eager_check", "wrap_call_flat", "wrap_apply", "_try_action"}
targets = []
modules = (function_identity, function_runs, profiled_calls, functions, shared_profiles, keras_steps, partition_graphs)
modules += (step_queue, trace_requests, eager_steps, function_library)
for module in modules:
    holders = [module, *(kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__)]
    for holder in holders:
        for name, function in list(vars(holder).items()):
            ours = inspect.isfunction(function) and function.__module__ == module.__name__
            if ours and not name.startswith("__") and name not in entries:
                targets.append((holder, name, function))
assert len(targets) > 60, targets
called = set()
def injected(name, kind):
    def broken(*arguments, **named):
        called.add(name)
        if kind == "raise":
            raise OSError("injected")
        return object()
    return broken
def as_the_writer_does(queue):
    # What fails there is not for the training to see.
    try:
        queue.count_steps()
        for counted in queue.counted:
            if isinstance(counted[5], Capture):
                counted[5].read()
                queue.backlog.remove(counted[5])
    except Exception:
        pass
def end_its_profile(watching):
    try:
        watching.traces.profiler.wait(0.1)
    except Exception:
        pass
def assert_the_profiler_is_free(name):
    # There is one for all: what still runs refuses the next one. An eager step that is under way holds it for a while.
    until = time.monotonic() + 60
    while True:
        session = shared_profiles.bindings().ProfilerSession()
        try:
            session.start("ram://unused", {})
        except tf.errors.AlreadyExistsError:
            assert time.monotonic() < until, name
            time.sleep(0.02)
        else:
            session.stop()
            return
server.close()
profiled_calls.COLLECT_S = shared_profiles.MAX_SHARED_CPU_S = shared_profiles.MAX_SHARED_S = shared_profiles.LONG_S = 0.2
eager_steps.LIMIT_S = eager_steps.LIMIT_TIMES = 0.2
original = type(step).__call__
is_older = tuple(int(part) for part in tf.__version__.split(".")[:2]) <= (2, 15)
kinds = set()
for holder, name, function in targets:
    kind = ("raise", "garbage")[(zlib.crc32(f"{holder.__name__}.{name}".encode()) + is_older) % 2]
    kinds.add(kind)
    queue = StepQueue()
    queue.backlog.wait_s = 0.0
    watching = function_runs.FunctionRuns(queue)
    watching.watch()
    step(tf.constant(1.0))
    queue.count_steps()
    places = [holder, *(module for module in modules if module is not holder and vars(module).get(name) is function)]
    for place in places:
        setattr(place, name, injected(name, kind))
    try:
        assert tf.function(lambda x: x - 1.0)(tf.constant(3.0)) == 2.0, name  # a first call
        for _ in range(2):
            queue.requests.trace_all = queue.requests.slow_path = True
            for family in queue.runs.families():
                try:
                    watching.request_graph(family.plain)
                except Exception:
                    pass  # what fails there is told to the page
            assert step(tf.constant(3.0)) == 6.0, name
            with watching.calls.step(watching.named_step("train")):
                assert step(tf.constant(1.0)) == 2.0, name
            assert np.isfinite(eager.train_on_batch(x, y)), name
            try:
                step(tf.constant("text"))
            except (ValueError, TypeError):
                pass
            else:
                raise AssertionError("the error of the script was swallowed")
            assert np.isfinite(model.train_on_batch(x, y)), name
            for _ in range(3):
                optimizer.apply_gradients([(tf.ones((2,)), weights)])
            as_the_writer_does(queue)
        end_its_profile(watching)
    finally:
        for place in places:
            setattr(place, name, function)
        end_its_profile(watching)
        watching.stop()
    del queue, watching
    gc.collect()  # a profile that was never collected ends with its object
    assert_the_profiler_is_free(name)
assert len(kinds) == 2 and type(step).__call__ is original
model.fit(data, verbose=0)
missing = {"begin", "end", "claim_families", "finish", "start", "collect", "abandon", "identify", "count_steps"} - called
missing |= {"_find_or_add_family", "_begin", "_export", "_end", "_keep", "_step_of_model", "keras_step_title"} - called
missing |= {"request_graph", "request", "_force_rebuild", "_remove_request", "first_stateful_op"} - called
assert not missing, missing
assert len(called) > 35, called
""",
        tmp_path,
    )
