"""The hook in real training loops."""

from __future__ import annotations

import collections
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.debug.wrappers import hooks as tfdbg

from tftracer.capture.hook import HookMethods, make_hook
from tftracer.errors import UnsupportedError
from tftracer.session.live import Recorder

pytestmark = pytest.mark.tf


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(keep_traces=3, spool_dir=tmp_path / "spool").start()
    yield recorder
    recorder.close()
    assert [problem for problem in recorder.session()["problems"] if problem["code"] != "tfdbg_watches"] == []


def model() -> tuple[Any, Any, Any]:
    """(input, train op, loss) of a small model."""
    inputs = tf.placeholder(tf.float32, [None, 8], name="x")
    weights = tf.get_variable("w", [8, 8])
    loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights)), name="loss")
    step = tf.train.get_or_create_global_step()
    return inputs, tf.train.GradientDescentOptimizer(0.1).minimize(loss, step, name="train"), loss


def batch() -> Any:
    return np.ones((4, 8), np.float32)


def runs(recorder: Recorder) -> dict[str, Any]:
    assert recorder.flush()
    return {run["title"]: run for run in recorder.runs()}


def test_what_it_costs_is_found_out_without_a_step_of_the_scripts(recorder: Recorder) -> None:
    make_hook(recorder)
    assert runs(recorder) == {} and recorder.queue.finished_steps() == {}
    assert recorder.session()["hook_cost_s"] > 0


def test_the_step_that_meets_the_end_of_the_input_has_ended(recorder: Recorder) -> None:
    element = tf.data.make_one_shot_iterator(tf.data.Dataset.range(5)).get_next()
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        while not session.should_stop():
            session.run(element)
    assert recorder.queue.under_way and max(recorder.queue.under_way.values()) < 0


def test_new_arrays_each_step_make_one_run(recorder: Recorder) -> None:
    inputs, train, loss = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        for _ in range(10_000):
            session.run([train, loss], {inputs: batch()})
    (run,) = runs(recorder).values()
    assert run["title"] == "train, loss (feeding x)"
    assert (run["fetches"], run["feeds"], run["steps"]) == (["train", "loss:0"], ["x:0"], 10_000)
    assert 0 < run["min_s"] <= run["p50_s"] <= run["p95_s"] <= run["max_s"]
    assert recorder.session()["steps_lost"] == 0


Pair = collections.namedtuple("Pair", "a b")


def test_containers_do_not_matter_names_do(recorder: Recorder) -> None:
    inputs, train, loss = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        for fetches in (
            [train, loss],
            (train, loss),
            {"a": train, "b": loss},
            Pair(train, [loss]),
            [{"x": train}, (loss,)],
            ["train", "loss:0"],
            collections.OrderedDict(a=train, b=loss),
        ):
            session.run(fetches, {inputs: batch()})
            session.run(fetches, {"x:0": batch()})
        session.run(loss, {inputs: batch()})
        session.run("loss:0", {inputs: batch()})
        assert session.run("x:0", {inputs: batch()}).shape == (4, 8)
    assert {title: run["steps"] for title, run in runs(recorder).items()} == {
        "train, loss (feeding x)": 14,
        "loss (feeding x)": 2,
        "x (feeding x)": 1,
    }


def test_options_tell_runs_apart(recorder: Recorder) -> None:
    inputs, _, loss = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        session.run(loss, {inputs: batch()})
        session.run(loss, {inputs: batch()}, options=tf.RunOptions(timeout_in_ms=60_000))
        session.run(loss, {inputs: batch()}, options=tf.RunOptions(timeout_in_ms=60_000))
    assert {title: run["steps"] for title, run in runs(recorder).items()} == {
        "loss (feeding x)": 1,
        "loss (feeding x) [timeout_in_ms: 60000]": 2,
    }


def test_trace_the_next_steps(recorder: Recorder) -> None:
    inputs, train, loss = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        for _ in range(5):
            session.run([train, loss], {inputs: batch()})
        session.run(loss, {inputs: batch()})
        run = runs(recorder)["train, loss (feeding x)"]
        recorder.request_traces(run["id"], 2)
        assert recorder.run(run["id"])["pending_traces"] == 2
        for _ in range(5):
            session.run(loss, {inputs: batch()})
            session.run([train, loss], {inputs: batch()})
    run = runs(recorder)["train, loss (feeding x)"]
    assert [trace["step"] for trace in run["traces"]] == [6, 7]
    assert run["pending_traces"] == 0 and run["traced_overhead_s"] is not None
    for trace in run["traces"]:
        metadata = tf.RunMetadata.FromString(recorder.trace_bytes(trace["id"]))
        assert metadata.step_stats.dev_stats and metadata.partition_graphs
        assert trace["nodes"] == sum(len(device.node_stats) for device in metadata.step_stats.dev_stats)
        assert trace["asked_by"] == "user" and trace["median_s"] > 0 and trace["state"] == "ready"
        context = recorder.trace_context(trace["id"])
        assert (context.trace_level, context.gpus, context.partition_graphs_asked) == ("SOFTWARE_TRACE", 0, True)
        assert context.cpu_use["wall_s"] >= trace["duration_s"] and context.cpu_use["cpu_s"] > 0 and context.cpu_use["cpus"] > 0
    assert runs(recorder)["loss (feeding x)"]["traces"] == []


def test_whichever_run_comes_next(recorder: Recorder) -> None:
    inputs, _, loss = model()
    recorder.request_traces(None, 1)
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        for _ in range(3):
            session.run(loss, {inputs: batch()})
    assert [trace["step"] for trace in runs(recorder)["loss (feeding x)"]["traces"]] == [1]


def test_a_request_can_be_taken_back(recorder: Recorder) -> None:
    inputs, _, loss = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        session.run(loss, {inputs: batch()})
        run = runs(recorder)["loss (feeding x)"]
        recorder.request_traces(run["id"], 5)
        recorder.request_traces(run["id"], 0)
        session.run(loss, {inputs: batch()})
    assert runs(recorder)["loss (feeding x)"]["traces"] == []


def test_global_tracing_keeps_the_newest_of_each_run(recorder: Recorder) -> None:
    inputs, train, loss = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        recorder.set_trace_all(True)
        for _ in range(6):
            session.run(loss, {inputs: batch()})
            session.run(train, {inputs: batch()})
            recorder.flush()
        recorder.set_trace_all(False)
        session.run(loss, {inputs: batch()})
    for run in runs(recorder).values():
        first, *newest = [(trace["step"], trace["duration_s"]) for trace in run["traces"]]
        assert [step for step, _ in newest] == [5, 6]
        assert first[0] == 4 or first[1] > max(seconds for _, seconds in newest)  # the newest, or one that took far longer
        assert {trace["asked_by"] for trace in run["traces"]} == {"global"}


def test_the_scripts_own_metadata_is_kept_and_its_options_stay_as_they_were(recorder: Recorder) -> None:
    inputs, _, loss = model()
    own, metadata = tf.RunOptions(timeout_in_ms=60_000), tf.RunMetadata()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        session.run(loss, {inputs: batch()}, options=tf.RunOptions(trace_level=3), run_metadata=metadata)
        kept = metadata.SerializeToString()
        session.run(loss, {inputs: batch()}, run_metadata=metadata)
        (run,) = runs(recorder).values()
        assert [(trace["asked_by"], trace["step"]) for trace in run["traces"]] == [("script", 1)]
        assert recorder.trace_bytes(run["traces"][0]["id"]) == kept
        recorder.request_traces(None, 1)
        for _ in range(3):
            session.run(loss, {inputs: batch()}, options=own, run_metadata=metadata)
        assert (own.trace_level, own.output_partition_graphs) == (0, False)
    run = runs(recorder)["loss (feeding x) [timeout_in_ms: 60000]"]
    assert [trace["step"] for trace in run["traces"]] == [1]


def test_a_metadata_that_the_script_fills_again_and_again_is_kept_each_time(recorder: Recorder) -> None:
    inputs, _, loss = model()
    full, metadata, kept = tf.RunOptions(trace_level=3), tf.RunMetadata(), []
    with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
        for _ in range(3):
            session.run(loss, {inputs: batch()}, options=full, run_metadata=metadata)
            kept.append(metadata.SerializeToString())
        metadata.Clear()
    (run,) = runs(recorder).values()
    assert [recorder.trace_bytes(trace["id"]) for trace in run["traces"]] == kept


def test_an_untraced_step_does_not_take_the_slow_path(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps a step cheap, here shown to be so on this TensorFlow and Python."""
    slow_steps = []
    monkeypatch.setattr(HookMethods, "slow_after_run", lambda *step: slow_steps.append(step))
    inputs, train, _ = model()
    with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
        for _ in range(50):
            session.run(train, {inputs: batch()})
    assert slow_steps == []
    (run,) = runs(recorder).values()
    assert run["steps"] == 50


def test_a_trace_of_the_script_is_kept_whose_metadata_it_does_not_pass(recorder: Recorder) -> None:
    inputs, _, loss = model()
    with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
        for level in (0, 1, 0, 3):
            session.run(loss, {inputs: batch()}, options=tf.RunOptions(trace_level=level))
    kept = [(trace["asked_by"], trace["step"]) for run in runs(recorder).values() for trace in run["traces"]]
    assert len(kept) == 2 and {asked for asked, _ in kept} == {"script"}
    assert recorder.queue.backlog.is_empty


def test_a_profiler_hooks_traces_are_kept(recorder: Recorder, tmp_path: Path) -> None:
    inputs, train, _ = model()
    profiler = tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    with tf.train.MonitoredSession(hooks=[make_hook(recorder), profiler]) as session:
        for _ in range(4):
            session.run(train, {inputs: batch()})
    (run,) = runs(recorder).values()
    assert run["steps"] == 4 and run["traces"] and {trace["asked_by"] for trace in run["traces"]} == {"script"}


def test_the_hook_twice_and_two_recorders(recorder: Recorder, tmp_path: Path) -> None:
    inputs, _, loss = model()
    other = Recorder(spool_dir=tmp_path / "other").start()
    hook = make_hook(recorder)
    with tf.train.MonitoredSession(hooks=[hook, hook, make_hook(recorder), make_hook(other)]) as session:
        recorder.request_traces(None, 1)
        for _ in range(3):
            session.run(loss, {inputs: batch()})
    for each in (recorder, other):
        (run,) = runs(each).values()
        assert run["steps"] == 3
    (trace,) = runs(recorder)["loss (feeding x)"]["traces"]
    assert trace["asked_by"] == "user" and runs(recorder)["loss (feeding x)"]["pending_traces"] == 0
    assert recorder.queue.backlog.is_empty and other.queue.backlog.is_empty
    other.close()


def test_the_hook_twice_beside_a_profiler(recorder: Recorder, tmp_path: Path) -> None:
    inputs, train, _ = model()
    profiler = tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    with tf.train.MonitoredSession(hooks=[make_hook(recorder), make_hook(recorder), profiler]) as session:
        for _ in range(6):
            session.run(train, {inputs: batch()})
    (run,) = runs(recorder).values()
    assert run["steps"] == 6 and run["traces"]
    assert recorder.queue.backlog.is_empty


def test_nested_sessions_and_one_after_another(recorder: Recorder) -> None:
    inputs, _, loss = model()
    hook = make_hook(recorder)

    class Evaluate(tf.train.SessionRunHook):
        """Runs a session of its own within each step of another."""

        def before_run(self, run_context: Any) -> None:
            inner.run("loss:0", {"x:0": batch()})

    with tf.train.MonitoredSession(hooks=[hook]) as inner:
        with tf.train.MonitoredSession(hooks=[hook, Evaluate()]) as outer:
            recorder.flush()
            assert recorder.session()["active"]
            for _ in range(3):
                outer.run([loss], {inputs: batch()})
        recorder.flush()
        assert recorder.session()["active"]
    (run,) = runs(recorder).values()
    assert run["steps"] == 6 and not recorder.session()["active"]


def test_sessions_in_threads(recorder: Recorder) -> None:
    hook = make_hook(recorder)
    recorder.request_traces(None, 2)

    def train(name: str) -> None:
        with tf.Graph().as_default():
            value = tf.add(1.0, 2.0, name=name)
            with tf.train.MonitoredSession(hooks=[hook]) as session:
                for _ in range(50):
                    session.run(value)

    threads = [threading.Thread(target=train, args=(f"value{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_title = runs(recorder)
    assert {title: run["steps"] for title, run in by_title.items()} == {f"value{i}": 50 for i in range(4)}
    assert sum(len(run["traces"]) for run in by_title.values()) == 2


def test_an_interrupted_step_passes_through_and_gives_its_request_back(recorder: Recorder) -> None:
    inputs, _, loss = model()

    class Interrupt(tf.train.SessionRunHook):
        on = False

        def before_run(self, run_context: Any) -> None:
            if self.on:
                raise KeyboardInterrupt

    interrupt = Interrupt()
    with tf.train.MonitoredSession(hooks=[make_hook(recorder), interrupt]) as session:
        session.run(loss, {inputs: batch()})
        recorder.request_traces(None, 1)
        interrupt.on = True
        with pytest.raises(KeyboardInterrupt):
            session.run(loss, {inputs: batch()})
        interrupt.on = False
        with pytest.raises(ValueError, match="Cannot feed"):  # the step itself fails
            session.run(loss, {inputs: np.ones((4, 9), np.float32)})
        gc.collect()
        assert recorder.flush()
        session.run(loss, {inputs: batch()})
    (run,) = runs(recorder).values()
    assert [trace["step"] for trace in run["traces"]] == [2]


@pytest.mark.parametrize("feeds", [np.ones(2, np.float32), 5, "x:0"], ids=["array", "number", "name"])
@pytest.mark.parametrize("traced", [False, True])
def test_a_mistyped_feed_is_the_scripts_to_hear_of_and_no_more(recorder: Recorder, feeds: Any, traced: bool) -> None:
    inputs, _, loss = model()
    with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
        recorder.request_traces(None, int(traced))
        with pytest.raises((TypeError, ValueError)):
            session.run(loss, feeds)
        gc.collect()
        assert recorder.flush()
        session.run(loss, {inputs: batch()})
    (run,) = runs(recorder).values()
    assert run["steps"] == 1 and len(run["traces"]) == traced and not recorder.queue.off


def test_options_of_a_step_that_failed_while_it_was_traced_stay_as_they_were(recorder: Recorder) -> None:
    inputs, _, loss = model()
    own = tf.RunOptions(timeout_in_ms=60_000)
    with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
        recorder.request_traces(None, 1)
        with pytest.raises(ValueError, match="Cannot feed"):
            session.run(loss, {inputs: np.ones((4, 9), np.float32)}, options=own)
        gc.collect()
        assert (own.trace_level, own.output_partition_graphs) == (0, False)
        assert recorder.flush()
        for _ in range(3):
            session.run(loss, {inputs: batch()}, options=own)
    (run,) = runs(recorder).values()
    assert [(trace["asked_by"], trace["step"]) for trace in run["traces"]] == [("user", 1)]


def test_options_that_a_later_hook_adds(recorder: Recorder) -> None:
    inputs, _, loss = model()

    class Timeout(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(None, options=tf.RunOptions(timeout_in_ms=60_000))

    with tf.train.MonitoredSession(hooks=[make_hook(recorder), Timeout()]) as session:
        session.run(loss, {inputs: batch()})
        (run,) = runs(recorder).values()
        recorder.request_traces(run["id"], 1)
        session.run(loss, {inputs: batch()})
    (run,) = runs(recorder).values()
    assert run["title"] == "loss (feeding x) [timeout_in_ms: 60000]" and [trace["step"] for trace in run["traces"]] == [2]


def test_fetches_that_the_script_changes_between_steps(recorder: Recorder) -> None:
    inputs, train, loss = model()
    with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
        for fetches in ([loss], {"loss": loss}, collections.OrderedDict(loss=loss)):
            for _ in range(5):
                session.run(fetches, {inputs: batch()})
                fetches.append(train) if isinstance(fetches, list) else fetches.update(train=train)
                session.run(fetches, {inputs: batch()})
                fetches.pop() if isinstance(fetches, list) else fetches.pop("train")
    assert {title: run["steps"] for title, run in runs(recorder).items()} == {
        "loss (feeding x)": 15,
        "loss, train (feeding x)": 15,
    }


def test_a_loop_that_ends_in_an_error_is_no_longer_active(recorder: Recorder) -> None:
    model()
    with pytest.raises(ValueError, match="on purpose"), tf.train.MonitoredSession(hooks=[make_hook(recorder)]):
        assert recorder.flush() and recorder.session()["active"]
        raise ValueError("on purpose")
    assert recorder.flush() and not recorder.session()["active"]


def test_no_graph_is_kept_alive(recorder: Recorder) -> None:
    hook = make_hook(recorder)

    def train() -> weakref.ref[Any]:
        graph = tf.Graph()
        with graph.as_default():
            value = tf.add(1.0, 2.0)
            with tf.train.MonitoredSession(hooks=[hook]) as session:
                for _ in range(3):
                    session.run([value])
        return weakref.ref(graph)

    graphs = [train() for _ in range(3)]
    assert recorder.flush()
    gc.collect()
    assert [graph() for graph in graphs] == [None] * 3
    (run,) = runs(recorder).values()
    assert run["steps"] == 9


@pytest.mark.parametrize("first", [True, False])
def test_a_step_that_tfdbg_watches_is_not_traced(first: bool, recorder: Recorder, tmp_path: Path) -> None:
    """tfdbg's hook may come after ours, and add its watches when ours has been asked already."""
    inputs, train, loss = model()
    debug, hook = tfdbg.DumpingDebugHook(str(tmp_path / "dumps")), make_hook(recorder)
    recorder.set_trace_all(True)
    with tf.train.MonitoredSession(hooks=[hook, debug] if first else [debug, hook]) as session:
        for _ in range(3):
            session.run([train, loss], {inputs: batch()})
    (run,) = [run for run in runs(recorder).values() if run["feeds"]]
    assert run["title"].endswith("[tfdbg watches]") and run["steps"] == 3 and not run["traces"]
    assert [problem["code"] for problem in recorder.session()["problems"]] == ["tfdbg_watches"]
    with pytest.raises(UnsupportedError, match="tfdbg"):
        recorder.request_traces(run["id"], 1)
