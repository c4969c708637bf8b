"""Equal to TensorFlow's own timeline.Timeline: every op, time and device of fresh traces of the installed TensorFlow.

Deliberate differences: TensorFlow says `unknown` for an op that the label does not tell, tftracer ""; TensorFlow draws whole
microseconds, tftracer nanoseconds where there are any.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.client import timeline
from tf.extract_descriptors import extract

from tftracer.trace.analyses.dependencies import dependencies
from tftracer.trace.decode.descriptors import file_descriptor_set, message_class
from tftracer.trace.decode.outputs_and_memory import decode_resources
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.model import Trace
from tftracer.trace.timeline_lanes import lay_out

v1 = tf.compat.v1


def traced(fetch: Any, devices: int = 1) -> Any:
    config = v1.ConfigProto(device_count={"CPU": devices})
    options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE, output_partition_graphs=True)
    metadata = v1.RunMetadata()
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        session.run(fetch, options=options, run_metadata=metadata)
    return metadata


def of_tensorflow(metadata: Any) -> Counter[tuple[str, str, str, int, int]]:
    """(device, name, op, start, duration) of each op that TensorFlow's Timeline draws, in microseconds."""
    events = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    devices = {
        event["pid"]: event["args"]["name"].removesuffix(" Compute")
        for event in events
        if event["name"] == "process_name" and event["args"]["name"].endswith(" Compute")
    }
    return Counter((devices[e["pid"]], e["args"]["name"], e["args"]["op"], e["ts"], e["dur"]) for e in events if e["ph"] == "X")


def of_tftracer(trace: Trace) -> Counter[tuple[str, str, str, int, int]]:
    stats = message_class("RunMetadata").FromString(trace.raw).step_stats
    micros = [(node.all_start_micros, node.all_end_rel_micros) for entry in stats.dev_stats for node in entry.node_stats]
    start = (trace.start + trace.origin_ns) // 1000
    duration = trace.end - trace.start
    assert start.tolist() == [a for a, _ in micros]
    assert all(abs(ns - us * 1000) < 1000 for ns, (_, us) in zip(duration.tolist(), micros))
    return Counter(
        (trace.devices[trace.device[i]].name, trace.names[trace.name[i]], trace.ops[trace.op[i]] or "unknown", *micros[i])
        for i in range(trace.n)
    )


def check(metadata: Any) -> Trace:
    trace = decode_run_metadata(metadata.SerializeToString())
    assert of_tftracer(trace) == of_tensorflow(metadata)
    layout = lay_out(trace)
    assert len(layout.order) == trace.n == sum(len(entry.node_stats) for entry in metadata.step_stats.dev_stats)
    assert len(decode_resources(trace)[0].node) == sum(
        len(node.output) for entry in metadata.step_stats.dev_stats for node in entry.node_stats
    )
    return trace


def test_a_training_step() -> None:
    x = v1.random_uniform([8, 4])
    w = v1.get_variable("w", [4, 4], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    check(traced(v1.train.GradientDescentOptimizer(0.1).minimize(loss)))


def test_a_loop() -> None:
    v1.disable_control_flow_v2()
    try:
        result = v1.while_loop(lambda i: i < 50, lambda i: i + 1, [v1.constant(0)])
    finally:
        v1.enable_control_flow_v2()
    trace = check(traced(result))
    graph = dependencies(trace)
    assert graph.source == "partition_graph"
    assert (trace.start[graph.producer] <= trace.start[graph.consumer]).all()
    merges = [i for i in range(trace.n) if trace.ops[trace.op[i]] == "Merge"]
    assert len(merges) == 51
    assert all(len(graph.inputs_of(i)) == 1 for i in merges)


def test_two_devices() -> None:
    with tf.device("/cpu:0"):
        a = tf.random.uniform([10, 10])
    with tf.device("/cpu:1"):
        b = tf.matmul(a, a)
    with tf.device("/cpu:0"):
        c = tf.reduce_sum(b)
    trace = check(traced(c, devices=2))
    graph = dependencies(trace)
    ops = [
        (trace.ops[trace.op[p]], trace.ops[trace.op[q]])
        for p, q in zip(graph.producer[graph.transfer], graph.consumer[graph.transfer])
    ]
    assert len(ops) == 2
    assert {ops[0][0], ops[1][0]} >= {"RandomUniform"}
    assert len(np.unique(trace.device)) == 2


def test_the_shipped_descriptors_read_what_this_tensorflow_writes() -> None:
    """Every field of RunMetadata's messages that this TensorFlow knows has the same number and type in the shipped ones."""
    shipped = fields_of(file_descriptor_set())
    for key, value in fields_of(type(file_descriptor_set()).FromString(extract())).items():
        if key[0] in {
            "NodeExecStats",
            "DeviceStepStats",
            "StepStats",
            "NodeOutput",
            "TensorDescription",
            "AllocationDescription",
        }:
            assert shipped[key] == value


def fields_of(files: Any) -> dict[tuple[str, str], tuple[int, int]]:
    return {
        (message.name, field.name): (field.number, field.type)
        for file in files.file
        for message in file.message_type
        for field in message.field
    }
