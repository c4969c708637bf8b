"""hook_inject lists every call of every session, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_script

pytestmark = pytest.mark.tf


def test_monitored_sessions_with_their_init_ops(tmp_path: Path) -> None:
    run_script(
        """
for make in (tf.train.MonitoredSession, tf.train.SingularMonitoredSession):
    with make() as session:
        for _ in range(5):
            session.run(y, {x: batch()})
            session.run(y, feed_dict={x: batch()})
tf.train.get_or_create_global_step()
with tf.train.MonitoredTrainingSession(hooks=(server.hook,)) as session:
    recorder.flush()
    assert recorder.session()["active"]
    recorder.request_traces(run_id("y (feeding x)"), 1)
    session.run(y, {x: batch()})
seen = runs()
assert seen.pop("y (feeding x)") == (21, [21]), seen
assert "group_deps" in seen and all(steps == 3 for steps, _ in seen.values()), seen
""",
        tmp_path,
    )


def test_what_hooks_fetch_makes_no_other_run(tmp_path: Path) -> None:
    run_script(
        """
class Fetching(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step())
tf.train.get_or_create_global_step()
with tf.train.MonitoredSession(hooks=[Fetching(), server.hook]) as session:
    for _ in range(3):
        assert session.run(y, {x: batch()}) == 2
assert runs()["y (feeding x)"] == (3, [])
""",
        tmp_path,
    )


def test_plain_sessions(tmp_path: Path) -> None:
    run_script(
        """
with tf.Session() as session:
    for _ in range(5):
        session.run([y], {x: batch()})
    own, metadata = tf.RunOptions(timeout_in_ms=60000), tf.RunMetadata()
    recorder.request_traces(None, 1)
    assert session.run(y, {x: batch()}, own) == 2
    assert own.trace_level == 0
    session.run(y, {x: batch()}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    assert metadata.step_stats.dev_stats
    recorder.flush()
    assert recorder.session()["active"]
session = tf.InteractiveSession()
try:
    session.run(y, batch())
except (TypeError, ValueError):
    pass
assert y.eval({x: batch()}) == 2
session.close()
try:
    session.run(y)
except RuntimeError:
    pass
assert runs() == {"y (feeding x)": (7, [6]), "y (feeding x) [timeout_in_ms: 60000]": (1, [1])}, runs()
recorder.flush()
assert not recorder.session()["active"]
""",
        tmp_path,
    )


def test_supervisor_and_session_manager(tmp_path: Path) -> None:
    """slim.learning.train is a loop under a Supervisor."""
    run_script(
        """
tf.train.get_or_create_global_step()
init = tf.global_variables_initializer()
supervisor = tf.train.Supervisor(logdir=None)
with supervisor.managed_session() as session:
    for step in range(4):
        recorder.request_traces(run_id("y (feeding x)"), 1) if step == 3 else None
        session.run(y, {x: batch()})
with tf.train.SessionManager().prepare_session("", init_op=init) as session:
    session.run(y, {x: batch()})
assert runs()["y (feeding x)"] == (5, [4]), runs()
assert any("init" in title or "group_deps" in title for title in runs()), runs()
""",
        tmp_path,
    )


def test_callables(tmp_path: Path) -> None:
    run_script(
        """
z = tf.constant(3.0, name="z")
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
with tf.Session() as session:
    fetch, feed = session.make_callable(z), session.make_callable([y], [x])
    with_options = session.make_callable({"z": z}, accept_options=True)
    operation = session.make_callable(z.op)
    for _ in range(3):
        assert fetch() == 3 and feed(batch()) == [2] and operation() is None
    recorder.flush()
    for title in ("z", "y (feeding x)"):
        recorder.request_traces(run_id(title), 1)
    assert fetch() == 3 and feed(batch()) == [2]
    metadata = tf.RunMetadata()
    assert with_options(options=options, run_metadata=metadata) == {"z": 3.0} and metadata.step_stats.dev_stats
    assert with_options() == {"z": 3.0}
    from tensorflow.core.protobuf import config_pb2
    asked = config_pb2.CallableOptions(feed=["x:0"], fetch=["y:0"])
    low = session._make_callable_from_options(asked)
    recorder.request_traces(run_id("y (feeding x)"), 1)
    assert low(batch()) == [2] and low(batch()) == [2]
    own = tf.RunMetadata()
    assert low(batch(), run_metadata=own) == [2]
seen = runs()
assert seen == {"z": (6, [4, 5]), "z (2)": (3, []), "y (feeding x)": (7, [4, 5])}, seen
""",
        tmp_path,
    )


def test_queue_runners_callables_are_listed(tmp_path: Path) -> None:
    run_script(
        """
queue = tf.FIFOQueue(2, [tf.float32], name="queue")
enqueue, taken = queue.enqueue([1.0], name="enqueue"), queue.dequeue(name="taken")
tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
with tf.Session() as session:
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    for _ in range(5):
        assert session.run(taken) == 1.0
    coordinator.request_stop()
    session.run(queue.close(cancel_pending_enqueues=True))
    coordinator.join(threads, stop_grace_period_secs=30)
seen = runs()
assert seen["taken"] == (5, []) and seen["queue_enqueue" if "queue_enqueue" in seen else "enqueue"][0] >= 5, seen
""",
        tmp_path,
    )


def test_partial_run_is_listed_and_says_why_it_is_not_traced(tmp_path: Path) -> None:
    run_script(
        """
z = tf.multiply(y, 2.0, name="z")
with tf.Session() as session:
    recorder.set_trace_all(True)
    for _ in range(2):
        handle = session.partial_run_setup([y, z], [x])
        assert session.partial_run(handle, y, {x: batch()}) == 2
        assert session.partial_run(handle, z) == 4
    recorder.set_trace_all(False)
assert runs() == {"y (feeding x) [partial_run]": (2, []), "z [partial_run]": (2, [])}, runs()
from tftracer.errors import UnsupportedError
try:
    recorder.request_traces(run_id("z [partial_run]"), 1)
except UnsupportedError as refused:
    assert "partial_run" in str(refused)
else:
    raise AssertionError("it was not refused")
problems = ["partial_run"]
""",
        tmp_path,
    )


def test_a_step_that_tfdbg_watches_is_not_traced_and_the_page_says_why(tmp_path: Path) -> None:
    run_script(
        f"""
from tensorflow.python.debug.wrappers import hooks as tfdbg
tf.train.get_or_create_global_step()
for wrapped in (False, True):
    recorder.set_trace_all(True)
    def watched(step):
        options = tf.RunOptions(output_partition_graphs=True)
        options.debug_options.debug_tensor_watch_opts.add(
            node_name="x", debug_ops=["DebugIdentity"], debug_urls=["file://{tmp_path}/%d" % step])
        return options
    hooks = [tfdbg.DumpingDebugHook({str(tmp_path / "dumps")!r})] if wrapped else []
    with tf.train.MonitoredSession(hooks=hooks) as session:
        for step in range(3):
            session.run(y, {{x: batch()}}, **({{}} if wrapped else {{"options": watched(step)}}))
    recorder.set_trace_all(False)
seen = runs()
assert seen["y (feeding x) [tfdbg watches]"] == (6, []), seen
problems = ["tfdbg_watches"]
""",
        tmp_path,
    )


def test_a_broken_tracer_lets_scripts_run(tmp_path: Path) -> None:
    run_script(
        """
from tftracer.capture.hook import HookMethods
def broken(*args): raise ValueError("on purpose")
HookMethods.before_run = HookMethods.after_run = HookMethods.session_opened = HookMethods.record_untraced_step = broken
with tf.Session() as session:
    assert session.run(y, {x: batch()}) == 2
    assert session.make_callable(y, [x])(batch()) == 2
    assert session.make_callable(tf.constant(3.0))() == 3
    handle = session.partial_run_setup([y], [x])
    assert session.partial_run(handle, y, {x: batch()}) == 2
with tf.train.MonitoredSession() as session:
    assert session.run(y, {x: batch()}) == 2
""",
        tmp_path,
    )
