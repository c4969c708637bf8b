"""Profiles as traces: every op event is a node, with its time, thread and type, and nothing else is."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import plain_protobuf
import pytest
from plain_protobuf import Event

from tftracer.importers.open_any import open_bytes
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.physical_devices import on_stream
from tftracer.trace.answers import Answers
from tftracer.trace.decode.formats import decode, is_xspace
from tftracer.trace.decode.profile_cut import steps
from tftracer.trace.decode.xplane_reader import plane_messages
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import DeviceKind, NodeKind, Trace, TraceContext

CPU = ["convnet_tf2.15.xplane.pb", "convnet_tf2.21.xplane.pb", "eager_tf2.21.xplane.pb", "xla_cpu_tf2.21.xplane.pb.gz"]
CPU += ["slow_map_mirrored_tf2.21.xplane.pb.gz", "tiny_ops_tf2.21.xplane.pb.gz"]
LARGE = ["transformer_tf2.21.xplane.pb.xz", "resnet50_tf2.21.xplane.pb.xz"]
GPU = ["gpu_v100_excerpt.xplane.pb.gz", "gpu_mi300_excerpt.xplane.pb.gz"]
STARTED, DONE = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"

#: (name, op type, thread, start, duration): times in ns, as the profile has them
Op = tuple[str, str, int, int, int]


@lru_cache(maxsize=2)
def trace_of(name: str) -> Trace:
    return decode_xspace(plain_protobuf.content(name))


@lru_cache(maxsize=2)
def planes_of(name: str) -> dict[str, plain_protobuf.PlainPlane]:
    return {plane.name: plane for plane in plain_protobuf.planes(plain_protobuf.content(name))}


def op_of(event: Event) -> tuple[str, str] | None:
    """What an event of the host's says of the op that it stands for, read from the profiler's conventions."""
    if event.name.startswith("EagerLocalExecute: ") and "__inference_" not in event.name:
        op = event.name.split(": ")[1]
        return op, op
    if "::" not in event.name and event.display_name and ":" in event.name:
        return tuple(event.name.rsplit(":", 1))  # type: ignore[return-value]
    return None


def plain_ops(name: str) -> Counter[Op]:
    """All ops of the host's threads; asynchronous ones from their start to the event that ended them."""
    events = planes_of(name)["/host:CPU"].events if "/host:CPU" in planes_of(name) else []
    ended = {event.stats["_c"]: event.start_ns for event in events if event.name == DONE}
    counts: Counter[Op] = Counter()
    for event in events:
        thread, op = event.thread & 0xFFFFFFFFFFFF, op_of(event)
        if op:
            counts[(*op, thread, event.start_ns, event.duration_ns)] += 1
        elif event.name == STARTED:
            kind = str(event.stats["name"]), str(event.stats["kernel_type"])
            end = ended.get(event.stats["_p"], event.start_ns + event.duration_ns)
            own = [other for other in events if other.name == ":".join(kind) and event.start_ns <= other.start_ns <= end]
            if not own:  # collectives and the ops of a GPU have events of their own, too
                counts[(*kind, thread, event.start_ns, end - event.start_ns)] += 1
    return counts


def decoded_ops(trace: Trace, origin: int) -> Counter[Op]:
    """The nodes of the host's own threads: not the stages of tf.data, not what XLA ran."""
    apart = [c for c, d in enumerate(trace.devices) if d.kind not in (DeviceKind.CPU, DeviceKind.GPU) or "XLA" in d.name]
    return Counter(
        (
            trace.names[trace.name[i]],
            trace.ops[trace.op[i]],
            int(trace.thread[i]),
            int(trace.start[i]) + origin,
            int(trace.end[i] - trace.start[i]),
        )
        for i in range(trace.n)
        if trace.device[i] not in apart and not trace.names[trace.name[i]].startswith("Iterator::")
    )


@pytest.mark.parametrize("name", [*CPU, *LARGE, *GPU])
def test_every_op_event_is_a_node_and_none_else(name: str) -> None:
    trace, expected = trace_of(name), plain_ops(name)
    shift = min((start for *_, start, _ in expected), default=0) - min(
        (start for *_, start, _ in decoded_ops(trace, 0)), default=0
    )
    assert decoded_ops(trace, shift) == expected
    assert bool(expected) == (name != GPU[1])  # JAX runs no ops of TensorFlow


@pytest.mark.parametrize("name", [*CPU[:2], CPU[3], *LARGE])
def test_every_stage_of_tf_data_is_a_node(name: str) -> None:
    trace = trace_of(name)
    stages = [event for event in planes_of(name)["/host:CPU"].events if event.name.startswith("Iterator::")]
    rows = [i for i in range(trace.n) if trace.names[trace.name[i]].startswith("Iterator::")]
    assert Counter((e.name, e.duration_ns) for e in stages) == Counter(
        (trace.names[trace.name[i]], int(trace.end[i] - trace.start[i])) for i in rows
    )
    assert {trace.devices[trace.device[i]].title for i in rows} == {"tf.data"}
    assert {int(trace.kind[i]) for i in rows} == {NodeKind.INPUT}


@pytest.mark.parametrize("name", GPU)
def test_every_event_of_a_device_is_a_node_on_its_line(name: str) -> None:
    trace = trace_of(name)
    expected: Counter[tuple[str, int]] = Counter()
    for plane in planes_of(name).values():
        for line, events in plane.lines.items() if plane.name.startswith("/device:") else ():
            stream = line.removeprefix("Stream #").replace("(", "<").replace(")", ">")
            device = f"{plane.name}/stream:{stream}" if line.startswith("Stream") else f"{plane.name}/{line}"
            expected.update((device, event.duration_ns) for event in events)
    rows = [i for i in range(trace.n) if trace.devices[trace.device[i]].kind not in (DeviceKind.CPU, DeviceKind.GPU)]
    assert Counter((trace.devices[trace.device[i]].name, int(trace.end[i] - trace.start[i])) for i in rows) == expected


def test_nested_stages_of_tf_data_count_their_time_once() -> None:
    """Root waits for Prefetch: together they take no longer than Root."""
    answers = Answers(plain_protobuf.content("convnet_tf2.21.xplane.pb"), TraceContext())
    trace = answers.trace
    root = next(i for i in range(trace.n) if trace.ops[trace.op[i]] == "Root")
    rows, length = {row["key"]: row["total_ns"] for row in answers.ops("type")["rows"]}, int(trace.end[root] - trace.start[root])
    assert 0 < rows["Root"] < length and rows["Root"] + rows["Prefetch"] <= length


def test_a_stage_of_tf_data_waits_for_the_stages_that_it_calls() -> None:
    """32 elements make a batch, which another thread made; IteratorGetNext waited for the outermost stage."""
    trace = trace_of("convnet_tf2.21.xplane.pb")
    waits = Counter(
        (trace.ops[trace.op[made]], trace.ops[trace.op[waiting]])
        for made, waiting in zip(*(e.tolist() for e in trace.known_edges))
    )
    assert waits == {
        ("Prefetch", "Root"): 1,
        ("Root", "IteratorGetNext"): 1,
        ("ShuffleAndRepeat", "BatchV2"): 32,
        ("TensorSlice", "ShuffleAndRepeat"): 32,
    }
    answers = Answers(plain_protobuf.content("convnet_tf2.21.xplane.pb"), TraceContext())
    root = next(i for i in range(trace.n) if trace.ops[trace.op[i]] == "Root")
    assert [ref["op"] for ref in answers.node(root)["inputs"]] == ["Prefetch"]
    assert [ref["op"] for ref in answers.node(root)["consumers"]] == ["IteratorGetNext"]
    prefetch = answers.node(next(i for i in range(trace.n) if trace.ops[trace.op[i]] == "Prefetch"))
    assert {"name": "buffer limit", "value": "2"} in prefetch["facts"]


def test_an_asynchronous_op_lasts_until_it_is_done() -> None:
    """IteratorGetNext has no event of its own on the thread that starts it."""
    trace = trace_of("convnet_tf2.21.xplane.pb")
    (row,) = [i for i in range(trace.n) if trace.ops[trace.op[i]] == "IteratorGetNext"]
    (done,) = [event for event in planes_of("convnet_tf2.21.xplane.pb")["/host:CPU"].events if event.name == DONE]
    assert int(trace.end[row] - trace.start[row]) == 382_786 - done.duration_ns  # its second part runs what reads it, or waits
    assert done.stats["name"] == trace.names[trace.name[row]]
    assert int(trace.kind[row]) == NodeKind.INPUT


def test_a_kernel_of_a_step_ends_when_its_event_does() -> None:
    """Of one step of several, where launches tell what belongs to it."""
    (_, raw), *_ = steps(plain_protobuf.content(GPU[1]))
    trace = decode_xspace(raw)
    (plane,) = [plane for plane in plain_protobuf.planes(raw) if plane.name == "/device:GPU:0"]
    lengths = Counter((trace.end - trace.start).tolist())
    assert lengths == Counter(event.duration_ns for event in plane.events)
    assert trace.launched_at is not None
    assert all(0 <= at <= start for at, start in zip(trace.launched_at.tolist(), trace.start.tolist()) if start)


def test_what_xla_runs_on_the_cpu() -> None:
    """A device for each module; an HLO op is named after the framework's op that it comes from."""
    name = "xla_cpu_tf2.21.xplane.pb.gz"
    trace = trace_of(name)
    (code,) = [c for c, d in enumerate(trace.devices) if d.title.startswith("CPU XLA")]
    assert trace.devices[code].title == "CPU XLA a_inference_one_step_on_data_1308__.28"
    named = [event for event in planes_of(name)["/host:CPU"].events if "hlo_op" in event.stats]
    rows = [i for i in range(trace.n) if trace.device[i] == code]
    assert Counter(trace.names[trace.name[i]].rpartition("/")[2] for i in rows) == Counter(e.stats["hlo_op"] for e in named)
    names = {trace.names[trace.name[i]] for i in rows}
    assert "sequential_1/max_pooling2d_1/MaxPool2d/wrapped_reduce-window" in names
    assert "convolution" in {trace.ops[trace.op[i]] for i in rows}


def test_an_hlo_op_shows_its_text_and_lies_in_the_frameworks_scopes() -> None:
    answers = Answers(plain_protobuf.content("xla_cpu_tf2.21.xplane.pb.gz"), TraceContext())
    trace = answers.trace
    pool = next(i for i in range(trace.n) if trace.names[trace.name[i]].endswith("/wrapped_reduce-window"))
    hlo = answers.node(pool)["hlo"]
    assert hlo.startswith(
        "%wrapped_reduce-window = f32[32,13,13,16] fusion(%broadcast_maximum_fusion.1, %MaxPool2d.4), kind=kLoop"
    )
    assert "ROOT %MaxPool2d.2 = f32[32,13,13,16] reduce-window(" in hlo
    assert answers.node(0)["hlo"] == ""
    scopes = {row["key"] for row in answers.ops("scope")["rows"]}
    assert {"sequential_1", "sequential_1/conv2d_1", "sequential_1/max_pooling2d_1/MaxPool2d"} <= scopes


def test_kernels_of_a_v100_find_the_ops_that_launched_them() -> None:
    """759 of 759 device events were launched by the host, 683 of them within an op (76 copies of constants were not)."""
    trace = trace_of("gpu_v100_excerpt.xplane.pb.gz")
    streams = on_stream(trace)
    assert int(streams.sum()) == 759
    assert trace.launched_at is not None
    assert int((trace.launched_at[streams] >= 0).sum()) == 759
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
        e
        for line, es in planes_of("gpu_v100_excerpt.xplane.pb.gz")["/device:GPU:4"].lines.items()
        if "Memcpy" in line
        for e in es
    ]
    sizes = sum(int(event.stats["memcpy_details"].split("size:")[1].split()[0]) for event in events)
    copies = (trace.kind == NodeKind.COPY) & trace.counted
    assert int(copies.sum()) == len(events) == 94
    assert int(trace.bytes_moved[copies].sum()) == sizes


def test_kernels_of_another_maker_are_named_after_their_hlo() -> None:
    trace = trace_of("gpu_mi300_excerpt.xplane.pb.gz")
    ops = {trace.ops[trace.op[i]] for i in range(trace.n) if trace.devices[trace.device[i]].kind is DeviceKind.STREAM}
    assert {"cudnn-conv", "input_transpose_fusion"} <= ops
    answers = Answers(plain_protobuf.content("gpu_mi300_excerpt.xplane.pb.gz"), TraceContext())
    conv = next(i for i in range(trace.n) if trace.ops[trace.op[i]] == "cudnn-conv")
    assert trace.names[trace.name[conv]] == "jit(forward_3d_conv)/conv_general_dilated/cudnn-conv.1"
    assert answers.node(conv)["hlo"].startswith("%cudnn-conv.1 = (bf16[")
    facts = {fact["name"]: fact["value"] for fact in answers.node(conv)["facts"]}
    assert (facts["grid"], facts["block"], facts["hlo module"]) == ("1024,1,1", "256,1,1", "jit_forward_3d_conv")


def union(events: list[Event]) -> set[int]:
    """The microseconds in which any of the events ran, for steps of some hundred milliseconds."""
    return {t for event in events for t in range(event.start_ns // 1000, -(-(event.start_ns + event.duration_ns) // 1000))}


def test_lanes_and_budget_of_a_v100_as_plain_reading_has_them() -> None:
    """Each lane's slices and busy time; on the GPU what its streams computed, what they copied beside it, and the rest."""
    name = "gpu_v100_excerpt.xplane.pb.gz"
    answers = Answers(plain_protobuf.content(name), TraceContext())
    lines = planes_of(name)["/device:GPU:4"].lines
    lanes = {lane["title"]: lane for lane in answers.timeline()["lanes"]}
    streams = {line: events for line, events in lines.items() if line.startswith("Stream")}
    assert len(streams) == 4
    for line, events in streams.items():
        lane = lanes[f"GPU:4 stream {line[len('Stream #') :].replace('(', ' (')}"]
        assert lane["slices"] == len(events)
        assert lane["busy_ns"] == pytest.approx(len(union(events)) * 1000, abs=2000 * len(events))
    (gpu,) = [device for device in answers.budget()["devices"] if "GPU:4" in device["device"]]
    computed = union(streams["Stream #134(Compute)"])
    copied = union([event for line, events in streams.items() if "Memcpy" in line for event in events]) - computed
    assert gpu["parts_ns"]["compute"] == pytest.approx(len(computed) * 1000, abs=2000 * 665)
    assert gpu["parts_ns"]["copies"] == pytest.approx(len(copied) * 1000, abs=2000 * 94)
    parts = [ns for part, ns in gpu["parts_ns"].items() if part != "hidden_communication" and ns is not None]
    assert sum(parts) == answers.budget()["step_ns"]


def test_kernel_details_are_readable() -> None:
    answers = Answers(plain_protobuf.content("gpu_v100_excerpt.xplane.pb.gz"), TraceContext())
    trace = answers.trace
    kernel = next(i for i in range(trace.n) if trace.devices[trace.device[i]].stream == "134")
    facts = {fact["name"]: fact["value"] for fact in answers.node(kernel)["facts"]}
    assert {"registers a thread", "shared memory, bytes", "grid", "block"} <= set(facts)
    copy = next(i for i in range(trace.n) if trace.devices[trace.device[i]].stream == "135")
    assert int({fact["name"]: fact["value"] for fact in answers.node(copy)["facts"]}["bytes"]) == int(trace.bytes_moved[copy])


@pytest.mark.parametrize("name", [*CPU, *GPU])
def test_every_analysis_answers(name: str) -> None:
    answers = Answers(plain_protobuf.content(name), TraceContext())
    step = answers.verdict()["step_ns"]
    assert step > 0
    assert sum(part or 0 for part in answers.budget()["whole"]["parts_ns"].values()) >= step * 0.99
    assert sum(row["count"] for row in answers.ops("type")["rows"]) > 0
    assert len(answers.memory()["tensors"]) == answers.memory()["tensors_total"]
    assert answers.scheduling()["known"] == 0
    for answer in (answers.timeline, answers.critical_path, answers.communication, answers.cost):
        assert isinstance(answer()["findings"], list)
    assert answers.node(0)["name"] == answers.trace.names[answers.trace.name[0]]


def test_the_two_kinds_of_bytes_are_told_apart() -> None:
    metadata = (plain_protobuf.DATA.parent / "conv_costgraph_tf2.21_cpu.pb").read_bytes()
    assert not is_xspace(metadata)
    assert decode(metadata).source == "run_metadata"
    assert all(is_xspace(plain_protobuf.content(name)) for name in [*CPU, *GPU])
    assert not is_xspace(b"")
    assert not is_xspace(plain_protobuf.content("function_library_convnet_tf2.15.pb"))
    others = plain_protobuf.DATA.parent / "foreign" / "others"
    assert not any(is_xspace(path.read_bytes()) for path in others.iterdir())


@pytest.mark.parametrize("first", [{}, {"stats": [{"metadata_id": 1}]}, {"lines": [b"\x08\x01"], "stat_metadata": [{"id": 1}]}])
def test_a_profile_whose_first_plane_has_no_name_is_one_wherever_it_is_asked(first: dict[str, Any]) -> None:
    space = plane_messages()["Space"](planes=[first])
    raw = space.SerializeToString() + plain_protobuf.content("convnet_tf2.21.xplane.pb")
    assert is_xspace(raw)
    assert decode(raw).n == trace_of("convnet_tf2.21.xplane.pb").n
    assert [run.title for run in open_bytes(raw, "host.xplane.pb").runs] == ["multi_step_on_iterator"]
