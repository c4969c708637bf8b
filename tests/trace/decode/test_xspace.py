"""Profiles as traces: every op event is a node, with its time, thread and type, and nothing else is."""

from __future__ import annotations

from collections import Counter

import plain_protobuf
import pytest

from tftracer.trace.analyses.physical_devices import launch_of, on_stream
from tftracer.trace.answers import Answers
from tftracer.trace.decode.formats import decode, is_xspace
from tftracer.trace.decode.xplane import with_graph
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import DeviceKind, NodeKind, Trace, TraceContext

CPU = ["convnet_tf2.15.xplane.pb", "convnet_tf2.21.xplane.pb", "eager_tf2.21.xplane.pb", "xla_cpu_tf2.21.xplane.pb.gz"]
GPU = ["gpu_v100_excerpt.xplane.pb.gz", "gpu_mi300_excerpt.xplane.pb.gz"]


def trace_of(name: str) -> Trace:
    return decode_xspace(plain_protobuf.content(name))


def plane_of(name: str, plane: str) -> plain_protobuf.PlainPlane:
    return next(one for one in plain_protobuf.planes(plain_protobuf.content(name)) if one.name == plane)


def op_of(event: plain_protobuf.Event) -> tuple[str, str] | None:
    """What an event of the host's says of the op that it stands for, read from the profiler's conventions."""
    if event.name.startswith("EagerLocalExecute: ") and "__inference_" not in event.name:
        op = event.name.split(": ")[1]
        return op, op
    if "::" not in event.name and event.display_name and ":" in event.name:
        return tuple(event.name.rsplit(":", 1))  # type: ignore[return-value]
    return None


@pytest.mark.parametrize("name", [*CPU, GPU[0]])
def test_every_op_event_is_a_node_and_none_else(name: str) -> None:
    trace = trace_of(name)
    expected = Counter(
        (*op, event.thread & 0xFFFFFFFFFFFF, event.start_ns, event.duration_ns)
        for event in plane_of(name, "/host:CPU").events
        if (op := op_of(event))
    )
    begun = min(event.start_ns for plane in plain_protobuf.planes(plain_protobuf.content(name)) for event in plane.events)
    hosts = [c for c, d in enumerate(trace.devices) if d.name == "/host:CPU" or d.kind is DeviceKind.GPU]
    rows = [i for i in range(trace.n) if trace.device[i] in hosts]
    origin = min(start for _, _, _, start, _ in expected) - min(int(trace.start[i]) for i in rows)
    found = Counter(
        (
            trace.names[trace.name[i]],
            trace.ops[trace.op[i]],
            int(trace.thread[i]),
            int(trace.start[i]) + origin,
            int(trace.end[i] - trace.start[i]),
        )
        for i in rows
    )
    assert found == expected
    assert begun <= origin


def test_stages_of_tf_data_are_a_device_of_their_own() -> None:
    trace = trace_of("convnet_tf2.21.xplane.pb")
    code = next(c for c, d in enumerate(trace.devices) if d.title == "tf.data")
    rows = [i for i in range(trace.n) if trace.device[i] == code]
    stages = [event for event in plane_of("convnet_tf2.21.xplane.pb", "/host:CPU").events if event.name.startswith("Iterator::")]
    assert len(rows) == len(stages) == 67
    assert {int(trace.kind[i]) for i in rows} == {NodeKind.INPUT}
    assert {trace.ops[trace.op[i]] for i in rows} == {"Root", "Prefetch", "BatchV2", "ShuffleAndRepeat", "TensorSlice"}


def test_what_xla_runs_on_the_cpu() -> None:
    trace = trace_of("xla_cpu_tf2.21.xplane.pb.gz")
    code = next(c for c, d in enumerate(trace.devices) if d.title == "CPU XLA")
    named = [event for event in plane_of("xla_cpu_tf2.21.xplane.pb.gz", "/host:CPU").events if "hlo_op" in event.stats]
    rows = [i for i in range(trace.n) if trace.device[i] == code]
    assert Counter(trace.names[trace.name[i]] for i in rows) == Counter(event.stats["hlo_op"] for event in named)
    assert "convolution" in {trace.ops[trace.op[i]] for i in rows}


def test_kernels_of_a_v100_find_the_ops_that_launched_them() -> None:
    """759 of 759 device events were launched by the host, 683 of them within an op (76 copies of constants were not)."""
    trace = trace_of("gpu_v100_excerpt.xplane.pb.gz")
    streams = on_stream(trace)
    assert int(streams.sum()) == 759
    launches = launch_of(trace)
    assert int((launches[streams] >= 0).sum()) == 683
    for i in range(trace.n):
        if streams[i] and launches[i] >= 0:
            assert trace.names[trace.name[launches[i]]] == trace.names[trace.name[i]]
            assert trace.start[launches[i]] <= trace.start[i]


def test_lines_of_a_device_that_repeat_its_streams_count_nothing() -> None:
    trace = trace_of("gpu_v100_excerpt.xplane.pb.gz")
    repeated = {d.title for d in trace.devices if d.repeats}
    assert repeated == {"GPU:4 TensorFlow Ops", "GPU:4 TensorFlow Name Scope", "GPU:4 Steps"}
    counted = {trace.devices[d].title for d in set(trace.device[trace.counted].tolist())}
    assert not repeated & counted


def test_copies_have_their_bytes() -> None:
    trace = trace_of("gpu_v100_excerpt.xplane.pb.gz")
    events = [
        e for line, es in plane_of("gpu_v100_excerpt.xplane.pb.gz", "/device:GPU:4").lines.items() if "Memcpy" in line for e in es
    ]
    sizes = sum(int(event.stats["memcpy_details"].split("size:")[1].split()[0]) for event in events)
    copies = (trace.kind == NodeKind.COPY) & trace.counted
    assert int(copies.sum()) == len(events) == 94
    assert int(trace.bytes_moved[copies].sum()) == sizes


def test_kernels_of_another_maker_are_named_after_their_hlo() -> None:
    trace = trace_of("gpu_mi300_excerpt.xplane.pb.gz")
    ops = {trace.ops[trace.op[i]] for i in range(trace.n) if trace.devices[trace.device[i]].kind is DeviceKind.STREAM}
    assert {"cudnn-conv", "input_transpose_fusion"} <= ops


@pytest.mark.parametrize("name", [*CPU, *GPU])
def test_every_analysis_answers(name: str) -> None:
    answers = Answers(plain_protobuf.content(name), TraceContext())
    step = answers.verdict()["step_ns"]
    assert step > 0
    assert sum(part or 0 for part in answers.budget()["whole"]["parts_ns"].values()) >= step * 0.99
    assert sum(row["count"] for row in answers.ops("type")["rows"]) > 0
    assert answers.memory()["tensors"] == []
    assert answers.scheduling()["known"] == 0
    for answer in (answers.timeline, answers.critical_path, answers.communication, answers.cost):
        assert isinstance(answer()["findings"], list)
    assert answers.node(0)["name"] == answers.trace.names[answers.trace.name[0]]


@pytest.mark.parametrize(("version", "joined"), [("2.15", 210), ("2.21", 236)])
def test_ops_find_their_inputs_in_the_functions_definition(version: str, joined: int) -> None:
    library = plain_protobuf.content(f"function_library_convnet_tf{version}.pb")
    root = {"2.15": "__inference_train_function_1014", "2.21": "__inference_multi_step_on_iterator_1363"}[version]
    answers = Answers(with_graph(plain_protobuf.content(f"convnet_tf{version}.xplane.pb"), root, library), TraceContext())
    graph = answers.graph
    assert graph.source == "function_graph"
    trace = answers.trace
    filters = [i for i in range(trace.n) if trace.ops[trace.op[i]].endswith("Conv2DBackpropFilterWithBias")]
    assert len(filters) == 2
    assert all(answers.node(i)["inputs"] for i in filters)
    assert joined <= int((trace.device == 0).sum())


def test_the_two_kinds_of_bytes_are_told_apart() -> None:
    metadata = (plain_protobuf.DATA.parent / "conv_costgraph_tf2.21_cpu.pb").read_bytes()
    assert not is_xspace(metadata)
    assert decode(metadata).source == "run_metadata"
    assert all(is_xspace(plain_protobuf.content(name)) for name in [*CPU, *GPU])
    assert not is_xspace(b"")
    assert not is_xspace(plain_protobuf.content("function_library_convnet_tf2.15.pb"))
