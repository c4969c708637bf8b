"""Compiled functions under tf.distribute: whose threads and devices ever run them, each step is listed once and traced."""

from __future__ import annotations

from pathlib import Path

import pytest
from free_ports import free_ports
from tf.scripts import run_eager_script

pytestmark = pytest.mark.tf

TRACED_OPS = """
from tftracer.trace.answers import Answers
def traced_ops(title):
    (record,) = the_run(title)["traces"]
    trace = Answers(recorder.trace_bytes(record["id"]), recorder.trace_context(record["id"])).trace
    return {op.removeprefix("_Mkl") for op in trace.ops}
"""


def test_several_replicas(tmp_path: Path) -> None:
    run_eager_script(
        TRACED_OPS
        + """
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weight = tf.Variable(tf.ones((8, 8)))
def replica(x):
    return tf.distribute.get_replica_context().all_reduce("sum", tf.matmul(x, weight))
@tf.function
def step(x):
    return strategy.run(replica, args=(x,))
batch = tf.ones((8, 8))
for _ in range(3):
    step(batch)
assert runs() == {"step (8,8)": (3, [])}, runs()
recorder.request_traces(the_run("step (8,8)")["id"], 1)
step(batch)
assert runs() == {"step (8,8)": (4, [4])}, runs()
assert {"MatMul", "CollectiveReduceV2"} <= traced_ops("step (8,8)"), traced_ops("step (8,8)")
strategy.run(tf.function(replica), args=(batch,))
strategy.run(replica, args=(batch,))  # eager: no step
assert runs().pop("replica (8,8)") == (1, []), runs()
for options in ({}, {"run_eagerly": True}):
    with strategy.scope():
        model = network(**options)
    model.fit(batches(3), verbose=0)
assert runs()["fit: net"] == (3, []) and runs()["fit: net (2)"] == (3, []) and len(runs()) == 4, runs()
""",
        tmp_path,
    )


def test_a_coordinator_with_parameter_servers(tmp_path: Path) -> None:
    """Servers of the same process, so that the profile holds what they ran, too."""
    run_eager_script(
        TRACED_OPS
        + f"ports = {free_ports(2)}"
        + """
cluster = tf.train.ClusterSpec({"worker": [f"localhost:{ports[0]}"], "ps": [f"localhost:{ports[1]}"]})
servers = [tf.distribute.Server(cluster, job_name=job, task_index=0, protocol="grpc", start=True) for job in ("worker", "ps")]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    there = tf.Variable(tf.ones((8, 8)))
@tf.function
def remote(x):
    return tf.reduce_sum(tf.matmul(x, there))
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
def schedule(steps):
    for _ in range(steps):
        coordinator.schedule(remote, args=(tf.ones((8, 8)),))
    coordinator.join()
schedule(4)
assert runs() == {"remote (8,8)": (4, [])}, runs()
recorder.request_traces(the_run("remote (8,8)")["id"], 1)
schedule(1)
assert runs() == {"remote (8,8)": (5, [5])}, runs()
assert traced_ops("remote (8,8)"), traced_ops("remote (8,8)")
""",
        tmp_path,
    )
