from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wire_messages as wire
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tftracer.errors import FormatError, TruncatedError
from tftracer.trace.decode import message_spans, run_metadata
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.valid_times import LATEST_NS, MAX_NS
from tftracer.trace.model import UNKNOWN_TIME, NodeKind, Trace, TraceContext
from tftracer.trace.verdict.incomplete_trace import findings_of

DATA = Path(__file__).parents[2] / "data"
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
EPOCH = wire.EPOCH_US * 1000
LARGEST = (1 << 63) - 1


@pytest.fixture(autouse=True, params=[1 << 12, 0], ids=["small messages by hand", "candidates"])
def both_ways_to_find_nodes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_spans, "SMALL", request.param)


def start_of(node: Any) -> int:
    if node.all_start_nanos:
        return int(node.all_start_nanos)
    return in_ns(node.all_start_micros)


def in_ns(micros: int) -> int:
    return micros * 1000 if 0 <= micros <= LARGEST // 1000 - 1 else -1


def expected(raw: bytes) -> tuple[int, list[tuple[Any, ...]]]:
    """What protobuf reads, by the rules of run_metadata.py, one node at a time: (origin, rows)."""
    step = message_class("RunMetadata").FromString(raw).step_stats
    nodes = [(entry.device, node) for entry in step.dev_stats for node in entry.node_stats]
    starts = [start_of(node) for _, node in nodes]
    least = 10**15 if starts and max(starts) >= 10**15 else 0
    timed = [start for start in starts if start >= least]
    if timed and max(timed) - min(timed) > MAX_NS:
        clock = [start for start in timed if start <= LATEST_NS]
        middle = int(np.median(np.array(clock, np.int64))) if clock else 0
        timed = [start for start in clock if abs(start - middle) <= MAX_NS // 2]
    origin = min(timed, default=0)
    ends = {i: end_of(node) for i, (_, node) in enumerate(nodes) if start_of(node) in timed}
    duration = max(ends.values(), default=0) - origin
    rows = []
    for i, (device, node) in enumerate(nodes):
        times = times_of(node, ends[i], origin, duration) if i in ends else (UNKNOWN_TIME,) * 5
        rows.append((device, node.node_name, node.timeline_label, node.thread_id, *times))
    return origin, rows


def end_of(node: Any) -> int:
    start = start_of(node)
    length = node.all_end_rel_nanos or in_ns(node.all_end_rel_micros)
    return start + (length if 0 <= length <= MAX_NS else 0)


def times_of(node: Any, end: int, origin: int, duration: int) -> tuple[int, ...]:
    start = start_of(node)
    op_start = node.op_start_rel_nanos or in_ns(node.op_start_rel_micros)
    op_end = node.op_end_rel_nanos or in_ns(node.op_end_rel_micros)
    op = (start + op_start - origin, start + op_end - origin)
    if not (0 <= op_start <= op_end <= end - start and op_end):
        op = (UNKNOWN_TIME, UNKNOWN_TIME)
    return (start - origin, end - origin, *op, scheduled_of(node, start, origin, duration))


def scheduled_of(node: Any, start: int, origin: int, duration: int) -> int:
    recorded = node.scheduled_nanos or in_ns(node.scheduled_micros)
    undone = recorded % 2**64 // 8 * pow(125, -1, 2**61) % 2**61  # up to 2.19: ns * 1000 modulo 2^64
    for scheduled in (recorded, undone):
        if scheduled > 0 and 0 <= start - scheduled <= duration:
            return max(scheduled - origin, 0)
    return UNKNOWN_TIME


def decoded(raw: bytes) -> tuple[int, list[tuple[Any, ...]]]:
    trace = run_metadata.decode_run_metadata(raw)
    return trace.origin_ns, rows_of(trace)


def rows_of(trace: Trace) -> list[tuple[Any, ...]]:
    times = zip(*(c.tolist() for c in (trace.start, trace.end, trace.op_start, trace.op_end, trace.scheduled)))
    return [
        (trace.devices[d].name, trace.names[n], trace.labels[text], thread, *row)
        for d, n, text, thread, row in zip(trace.device, trace.name, trace.label, trace.thread.tolist(), times)
    ]


quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(wire.run_metadatas)
@example(b"")
@example(wire.message(1, b""))
@example(wire.run_metadata([(CPU, [b""])]))
@example(wire.run_metadata([(CPU, [wire.node("a", "a = A()", t13=EPOCH)] * 3), (CPU, [wire.node("b", t2=5)])]))
def test_any_message_reads_as_protobuf_reads_it(raw: bytes) -> None:
    assert decoded(raw) == expected(raw)


@quick
@given(wire.run_metadatas, st.data())
def test_a_damaged_message_is_refused_or_reads_as_protobuf_reads_it(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4)) if raw else 0):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))] if data.draw(st.booleans()) else damaged)
    try:
        want = expected(cut)
    except Exception:  # protobuf's DecodeError: tftracer refuses it too, or reads what protobuf is stricter about
        try:
            decoded(cut)
        except FormatError as error:
            assert "yte" in str(error)
    else:
        assert decoded(cut) == want


@quick
@given(st.binary(max_size=300))
def test_noise_is_refused_or_reads_as_protobuf_reads_it(raw: bytes) -> None:
    try:
        want = expected(raw)
    except Exception:
        want = None
    try:
        assert decoded(raw) == want or want is None
    except FormatError:
        assert want is None


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.name)
def test_real_traces_read_as_protobuf_reads_them(path: Path) -> None:
    raw = path.read_bytes()
    assert decoded(raw) == expected(raw)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.name)
def test_every_node_is_found_in_the_raw_bytes(path: Path) -> None:
    trace = run_metadata.decode_run_metadata(path.read_bytes())
    for i in range(0, trace.n, max(1, trace.n // 50)):
        node = message_class("NodeExecStats").FromString(trace.raw[trace.offset[i] : trace.offset[i] + trace.size[i]])
        assert node.node_name == trace.names[trace.name[i]]


def test_entries_of_one_device_are_merged() -> None:
    trace = run_metadata.decode_run_metadata((DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes())
    assert sorted(device.title for device in trace.devices) == ["ps/0 CPU:0", "worker/0 CPU:0"]
    assert np.bincount(trace.device).sum() == 370


def test_what_a_received_tensor_moved_is_read_from_its_label() -> None:
    trace = run_metadata.decode_run_metadata((DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes())
    received = trace.kind == NodeKind.COMMUNICATION
    assert {trace.ops[op] for op in trace.op[received]} == {"RecvTensor"}
    by_protobuf = [
        node.output[0].tensor_description.allocation_description.requested_bytes
        for entry in message_class("RunMetadata").FromString(trace.raw).step_stats.dev_stats
        for node in entry.node_stats
        if node.node_name == "RecvTensor"
    ]
    assert trace.bytes_moved[received].tolist() == by_protobuf
    assert not trace.bytes_moved[~received].any()


def test_kernels_are_named_as_tensorflow_names_them() -> None:
    stream = [
        wire.node("layer/MatMul:MatMul", "kernel details", t2=wire.EPOCH_US, t5=7),
        wire.node("whatever", "0 (x) @@loss/Mul:Mul#id=3#", t2=wire.EPOCH_US + 9, t5=2),
        wire.node("edge_1_x:MEMCPYHtoD", "MEMCPYHtoD 4096 bytes (Pageable to Device)", t2=wire.EPOCH_US + 20, t5=2),
    ]
    trace = run_metadata.decode_run_metadata(
        wire.run_metadata([("/device:GPU:0/stream:12", stream), ("/device:GPU:0/stream:all", stream)])
    )
    named = [(trace.names[n], trace.ops[o]) for n, o in zip(trace.name, trace.op)]
    assert named == [("layer/MatMul", "MatMul"), ("loss/Mul", "Mul"), ("edge_1_x", "MEMCPYHtoD")] * 2
    assert trace.kind.tolist() == [NodeKind.COMPUTE, NodeKind.COMPUTE, NodeKind.COPY] + [NodeKind.REPEAT] * 3
    assert trace.bytes_moved.tolist() == [0, 0, 4096] * 2
    assert (trace.end - trace.start).tolist() == [7000, 2000, 2000] * 2


def test_ops_come_from_the_labels() -> None:
    labels = ["a = MatMul(x, y)", "[cpu 1.3MB 1.3MB] a/b = Add(a, ^c)", "no label", "", "x = (y)", "p = q = NoOp()"]
    raw = wire.run_metadata([(CPU, [wire.node(str(i), label, t13=EPOCH) for i, label in enumerate(labels)])])
    trace = run_metadata.decode_run_metadata(raw)
    assert [trace.ops[op] for op in trace.op] == ["MatMul", "Add", "", "", "", "NoOp"]


def overflowed(ns: int) -> int:
    """As TensorFlow up to 2.19 writes a time: multiplied by 1000 in an int64."""
    return (ns * 1000 + 2**63) % 2**64 - 2**63


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=9), st.integers(0, 1 << 58))
def test_overflowed_scheduling_times_are_restored_exactly(times: list[tuple[int, int]], later: int) -> None:
    first = EPOCH + later
    nodes = [wire.node("step", t13=first, t16=10**6, t17=overflowed(first))]
    nodes += [wire.node("a", t13=first + max(pair), t16=1, t17=overflowed(first + min(pair))) for pair in times]
    trace = run_metadata.decode_run_metadata(wire.run_metadata([(CPU, nodes)]))
    assert trace.scheduled.tolist() == [0, *(min(pair) for pair in times)]


def test_processes_of_one_step_may_run_different_versions() -> None:
    node: dict[str, Any] = {"t13": EPOCH + 10, "t16": 100}
    new, old = wire.node("new", **node, t17=EPOCH + 4), wire.node("old", **node, t17=overflowed(EPOCH + 7))
    trace = run_metadata.decode_run_metadata(wire.run_metadata([(CPU, [wire.node("first", t13=EPOCH), new, old])]))
    assert trace.scheduled.tolist() == [UNKNOWN_TIME, 4, 7]


RECORDED = sorted({*DATA.glob("*_tf2*.pb"), DATA / "foreign" / "step.pb"})


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_every_scheduling_time_of_every_version_lies_before_its_start(path: Path) -> None:
    raw = path.read_bytes()
    step = message_class("RunMetadata").FromString(raw).step_stats
    recorded = [node.scheduled_nanos != 0 for entry in step.dev_stats for node in entry.node_stats]
    trace = run_metadata.decode_run_metadata(raw)
    assert (trace.scheduled != UNKNOWN_TIME).tolist() == recorded
    delay = (trace.start - trace.scheduled)[recorded]
    assert delay.min() >= 0
    assert 300 <= np.median(delay) <= 25_000


def test_a_scheduling_time_that_no_reading_explains_is_unknown() -> None:
    first = wire.node("a", t13=EPOCH, t16=1_000_000, t17=EPOCH - 3)
    garbage = wire.node("b", t13=EPOCH + 10, t16=5, t9=5906019220604542)
    early = wire.node("c", t13=EPOCH + 10, t16=5, t17=EPOCH - 10_000_000)
    trace = run_metadata.decode_run_metadata(wire.run_metadata([(CPU, [first, garbage, early])]))
    assert trace.scheduled.tolist() == [0, UNKNOWN_TIME, UNKNOWN_TIME]


def test_a_node_without_a_time_is_kept_and_noted() -> None:
    trace = run_metadata.decode_run_metadata(wire.run_metadata([(CPU, [wire.node("a", t13=EPOCH, t16=5), wire.node("b")])]))
    assert (trace.start.tolist(), trace.end.tolist()) == ([0, UNKNOWN_TIME], [5, UNKNOWN_TIME])
    assert trace.notes == ["bad_times"]


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_trace_is_refused_with_the_byte(keep: float) -> None:
    raw = (DATA / "dense500_tf2.15_cpu.pb").read_bytes()
    with pytest.raises(TruncatedError, match=r"Byte \d+: .*trace the step again"):
        run_metadata.decode_run_metadata(raw[: int(len(raw) * keep)])


def test_other_formats_are_refused() -> None:
    for raw in (b"\x80\x04\x95 a pickle", b"PK\x03\x04 zip", b'{"traceEvents": []}', b"\xff" * 64):
        with pytest.raises(FormatError, match="Byte"):
            run_metadata.decode_run_metadata(raw)


def test_text_that_is_no_utf8_is_taken_as_it_is() -> None:
    node = wire.message(wire.NAME, b"caf\xe9") + wire.number(13, EPOCH)
    trace = run_metadata.decode_run_metadata(wire.run_metadata([(CPU, [node])]))
    assert trace.names[trace.name[0]] == "caf\ufffd"


def test_look_alikes_of_nodes_inside_of_nodes_are_not_taken_for_nodes() -> None:
    inner = wire.message(2, wire.node("inner", "i = I()", t14=5))
    nodes = [wire.message(wire.NAME, b"n" * i + inner) + wire.number(13, EPOCH + i) for i in range(300)]
    nodes.append(wire.node("", "unnamed = NoOp()", t13=EPOCH))
    raw = wire.run_metadata([(CPU, nodes)])
    assert decoded(raw) == expected(raw)
    assert len(decoded(raw)[1]) == 301


def test_the_users_own_communication_ops() -> None:
    raw = wire.run_metadata([(CPU, [wire.node("a/push", "a/push = MyPush(x)", t13=EPOCH)])])
    assert run_metadata.decode_run_metadata(raw).kind.tolist() == [NodeKind.COMPUTE]
    assert run_metadata.decode_run_metadata(raw, "^MyPush$").kind.tolist() == [NodeKind.COMMUNICATION]


def test_a_pattern_that_cannot_be_used_leaves_the_trace_readable() -> None:
    raw = wire.run_metadata([(CPU, [wire.node("a/push", "a/push = MyPush(x)", t13=EPOCH)])])
    for pattern in ("(", "(?=MyPush)", "a" * 2000):
        trace = run_metadata.decode_run_metadata(raw, pattern)
        assert trace.kind.tolist() == [NodeKind.COMPUTE]
        assert next(finding["code"] for finding in findings_of(trace, TraceContext())) == "communication_ops_unused"


def test_a_field_of_number_0_in_an_unknown_group_passes_as_with_protobuf() -> None:
    raw = wire.group(6, b"\x00\x1a")
    assert decoded(raw) == expected(raw)


def test_hostile_messages_are_refused_before_they_grow() -> None:
    empty_nodes = wire.run_metadata([(CPU, [b""] * 70_000)])
    empty_devices = wire.message(1, wire.message(1, b"") * 70_000)
    many_fields = wire.run_metadata([(CPU, [wire.number(30, 1) * 70_000])])
    deep_groups = wire.run_metadata([(CPU, [b"\x0b" * 200])])
    endless = wire.run_metadata([(CPU, [b"\x10" + b"\xff" * 11])])
    for raw in (empty_nodes, empty_devices, many_fields, deep_groups, endless):
        with pytest.raises(FormatError, match=r"Byte \d+"):
            run_metadata.decode_run_metadata(raw)
