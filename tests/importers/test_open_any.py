"""Other people's files open; broken, hostile and unknown ones are refused by a clear error, in little time and memory."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format, text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from tftracer.errors import FormatError, StorageError, TracerError, TruncatedError
from tftracer.importers import legacy_pickles, run_metadata, tfevents, timeline_json
from tftracer.importers import open_any as opening
from tftracer.importers.imported import Imported
from tftracer.importers.open_any import open_any, open_bytes
from tftracer.trace.decode.descriptors import message_class

DATA = Path(__file__).parents[1] / "data"
FOREIGN = DATA / "foreign"
STEP = (FOREIGN / "step.pb").read_bytes()


def parsed(raw: bytes) -> Any:
    return message_class("RunMetadata").FromString(raw)


def only(imported: Imported) -> Any:
    (run,) = imported.runs
    (trace,) = run.traces
    return parsed(trace.raw)


def ops(message: Any) -> list[tuple[str, str, int, int]]:
    """(device, name, start, duration) of every node, in microseconds."""
    return [
        (device.device, node.node_name, node.all_start_micros, node.all_end_rel_micros)
        for device in message.step_stats.dev_stats
        for node in device.node_stats
    ]


def codes(imported: Imported) -> list[str]:
    return [finding["code"] for run in imported.runs for trace in run.traces for finding in trace.findings]


# --------------------------------------------------------------------------------------------------------- run metadata


@pytest.mark.parametrize("name", ["step.pb", "step.pb.gz"])
def test_run_metadata_is_taken_as_it_is(name: str) -> None:
    assert open_any(FOREIGN / name).runs[0].traces[0].raw == STEP


def test_run_metadata_in_text() -> None:
    assert only(open_any(FOREIGN / "step.pbtxt")) == parsed(STEP)


def test_text_with_fields_that_are_newer() -> None:
    text = "# a comment\nstep_stats { dev_stats { device: 'a' from_the_future: 7 node_stats { node_name: 'b' } } }"
    assert ops(only(open_bytes(text.encode()))) == [("a", "b", 0, 0)]


def test_what_is_no_known_format() -> None:
    for data in (b"hello, world", b"\x00" * 50, b"\x89PNG\r\n", b"%PDF-1.7", bytes(range(256))):
        with pytest.raises(FormatError, match=r"tftracer cannot open 'a.bin'\. It opens"):
            open_bytes(data, "a.bin")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("checkpoint", "list of a folder's checkpoints"),
        ("graph.pb", "it is a GraphDef; it holds a graph and no times"),
        ("model.index", "index of a checkpoint"),
        ("model.meta", "it is a MetaGraphDef"),
        ("saved_model.pb", "it is a SavedModel"),
        ("tfprof_log.pb", "it is tfprof's op log"),
        ("tfprof_operations.pb", "it is a view of tfprof"),
        ("tfprof_profile.pb", "it is a profile of tfprof"),
        ("tfprof_scopes.pb", "it is a view of tfprof"),
    ],
)
def test_what_holds_no_trace_is_told_by_its_name(name: str, kind: str) -> None:
    with pytest.raises(FormatError, match=kind):
        open_any(FOREIGN / "others" / name)


def test_a_perfetto_trace_and_an_archive_are_told_by_their_names() -> None:
    event = protos.TrackEvent(type=protos.TrackEvent.TYPE_SLICE_BEGIN, track_uuid=1, name="MatMul")
    packet = protos.TracePacket(timestamp=1, trusted_packet_sequence_id=1, track_event=event)
    with pytest.raises(FormatError, match=r"Perfetto trace; ui\.perfetto\.dev"):
        open_bytes(protos.Trace(packet=[packet] * 3).SerializeToString())
    with pytest.raises(FormatError, match="zip archive"):
        open_bytes(b"PK\x03\x04zip")


def test_step_stats_alone() -> None:
    """As ``run_metadata.step_stats`` is kept: serialized or in text."""
    stats = parsed(STEP).step_stats
    for data in (stats.SerializeToString(), text_format.MessageToString(stats).encode()):
        trace = only(open_bytes(data))
        assert trace.step_stats == stats and not trace.partition_graphs
    text = b"# of a step\ndev_stats { device: 'a' node_stats { node_name: 'b' } }"
    assert ops(only(open_bytes(text))) == [("a", "b", 0, 0)]


@pytest.mark.parametrize("proto_names", [False, True])
def test_run_metadata_as_json(proto_names: bool) -> None:
    whole, stats = (
        json_format.MessageToJson(message, preserving_proto_field_name=proto_names)
        for message in (parsed(STEP), parsed(STEP).step_stats)
    )
    assert only(open_bytes(whole.encode())) == parsed(STEP)
    assert only(open_bytes(stats.encode())).step_stats == parsed(STEP).step_stats
    (run,) = open_bytes(f"[{whole}, {whole}]".encode()).runs
    assert [parsed(trace.raw) for trace in run.traces] == [parsed(STEP)] * 2


@pytest.mark.parametrize(
    "text", ['{"stepStats": 7}', '{"stepStats": {"devStats": [{"device": 3}]}}', '[{"stepStats": {}}, 1]', '{"costGraph":']
)
def test_json_that_is_no_run_metadata(text: str) -> None:
    with pytest.raises(FormatError, match="RunMetadata"):
        open_bytes(text.encode())


def test_a_pickled_list_of_run_metadata() -> None:
    entry = legacy_pickles.pickled(STEP)[2:-1]  # without PROTO and STOP
    (run,) = open_bytes(b"\x80\x04](" + entry + entry + b"e.").runs
    assert [trace.raw for trace in run.traces] == [STEP, STEP]
    with pytest.raises(FormatError, match="nor a list of RunMetadata"):
        open_bytes(pickle.dumps([1, 2], protocol=2))


# --------------------------------------------------------------------------------------------------------- Timeline JSON


@pytest.mark.parametrize("name", ["timeline-2.json", "timeline-3.json"])
def test_profiler_hook_s_timeline(name: str) -> None:
    events = json.loads((FOREIGN / name).read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    imported = open_any(FOREIGN / name)
    trace = only(imported)
    expected = [(event["args"]["name"], event["ts"], event["dur"]) for event in slices]
    assert sorted(entry[1:] for entry in ops(trace)) == sorted(expected)
    assert "timeline_json" in codes(imported)
    labels = {node.timeline_label for node in trace.step_stats.dev_stats[0].node_stats}
    assert labels == {label_of(event["args"]) for event in slices}
    assert any(", " in label for label in labels)


def label_of(args: dict[str, str]) -> str:
    inputs = [args[f"input{i}"] for i in range(len(args) - 2)]
    return f"{args['name']} = {args['op']}({', '.join(inputs)})"


def test_a_gpu_timeline_of_tensorflow_1() -> None:
    trace = only(open_any(DATA / "gpu_timeline_tf1.json"))
    counts = {device.device: len(device.node_stats) for device in trace.step_stats.dev_stats}
    assert counts["/gpu:0/stream:all"] == 38
    assert counts["/job:localhost/replica:0/task:0/gpu:0"] == 80
    kernels = next(device for device in trace.step_stats.dev_stats if device.device == "/gpu:0/stream:12")
    assert all(":" in node.node_name for node in kernels.node_stats)


def test_the_same_json_gzipped(tmp_path: Path) -> None:
    (tmp_path / "t.json.gz").write_bytes(gzip.compress((FOREIGN / "timeline-2.json").read_bytes()))
    assert only(open_any(tmp_path / "t.json.gz")) == only(open_any(FOREIGN / "timeline-2.json"))


def slice_(**changes: Any) -> dict[str, Any]:
    return {"ph": "X", "ts": 10, "dur": 5, "pid": 1, "tid": 0, "name": "Op", "args": {"name": "a", "op": "Op"}, **changes}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([slice_()]),
        json.dumps({"traceEvents": [slice_()]}),
        json.dumps({"metadata": {"a": [1, {"b": None}]}, "traceEvents": [slice_()], "rest": [1, 2]}),
        "\ufeff" + json.dumps([slice_()]),
        json.dumps([slice_()])[:-1],  # Chrome allows the end to be missing
        json.dumps([slice_(), slice_()])[:-20],
        json.dumps([slice_(ts=10.0, dur=5.0)]),
        json.dumps([slice_(), slice_(ts=-1), slice_(ts="x"), slice_(dur=1e300), slice_(pid=[]), 5, None]),
    ],
)
def test_other_shapes_of_the_json(text: str) -> None:
    assert ops(only(open_bytes(text.encode()))) == [("process 1", "a", 10, 5)]


def test_fractions_of_a_microsecond_are_nanoseconds() -> None:
    trace = only(open_bytes(json.dumps([slice_(ts=1_700_000_000_000_000.25, dur=0.5)]).encode()))
    node = trace.step_stats.dev_stats[0].node_stats[0]
    assert (node.all_start_nanos, node.all_end_rel_nanos) == (1_700_000_000_000_000_250, 500)


def test_what_was_left_out_is_said() -> None:
    assert "bad_events" in codes(open_bytes(json.dumps([slice_(), slice_(ts=-1)]).encode()))
    assert "trace_cut" in codes(open_bytes(json.dumps([slice_(), slice_()])[:-20].encode()))
    assert "trace_cut" not in codes(open_bytes(json.dumps([slice_()]).encode()))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "traceEvents"),
        ("[]", "no slices"),
        ('{"traceEvents": 5}', "traceEvents"),
        ('{"traceEvents": [tru]}', "not JSON"),
        ('[{"ph": NaN}, 1]', "NaN"),
        ('[{"ts": ' + "9" * 1_000_000 + "}, 1]", "20 digits"),
        ("[" * 200_000, "deep"),
        ('{"a":' * 200_000, "deep"),
        ('[{"ph": "X" "ts": 1}, 2]', "not JSON"),
        ('{"a" 5, "traceEvents": []}', "traceEvents"),
    ],
)
def test_json_that_is_no_timeline(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        open_bytes(text.encode())


def test_half_a_surrogate_pair_in_a_name() -> None:
    trace = only(open_bytes(b'[{"ph":"X","ts":1,"dur":1,"pid":1,"name":"a\\ud800b"}]'))
    assert ops(trace)[0][1] == "a?b"


# ------------------------------------------------------------------------------------------------------------ event files


def test_an_event_file() -> None:
    imported = open_any(FOREIGN / "events.out.tfevents.small")
    assert [(run.title, [(trace.title, trace.step) for trace in run.traces]) for run in imported.runs] == [
        ("Run metadata", [("step_7", 7), ("step_8", 8)]),
        ("eval", [("eval", 8)]),
    ]
    assert all(trace.raw == STEP for run in imported.runs for trace in run.traces)
    assert all(trace.started_at > 1e9 for run in imported.runs for trace in run.traces)
    assert not imported.findings


def record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    checks = [struct.pack("<I", tfevents.masked_crc(part)) for part in (length, payload)]
    return length + checks[0] + payload + checks[1]


def event(raw: bytes, tag: bytes = b"a") -> bytes:
    tagged = b"\x0a" + bytes([len(tag)]) + tag + b"\x12" + varint(len(raw)) + raw
    return b"\x10\x05\x42" + varint(len(tagged)) + tagged


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def test_an_event_file_that_ends_in_a_record() -> None:
    data = record(event(STEP)) + record(event(STEP))
    for cut in (1, 4, 5, 100, len(STEP)):
        imported = open_bytes(data[:-cut])
        assert len(imported.runs[0].traces) == 1
        assert [finding["code"] for finding in imported.findings] == ["file_cut"]


def test_a_damaged_event_file() -> None:
    data = bytearray(record(event(STEP)))
    data[500] ^= 1
    with pytest.raises(FormatError, match="checksum"):
        open_bytes(bytes(data))
    with pytest.raises(FormatError, match="a record of"):
        open_bytes(record(event(STEP)) + b"\xff" * 100)
    with pytest.raises(FormatError, match="no RunMetadata"):
        open_bytes(record(b"\x10\x05"))


def slow_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [0, 1, 3, 4, 63, 4095, 4096, 4097, 10_001, 65_536])
def test_the_checksum_is_crc_32c(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert tfevents.crc32c(data) == slow_crc(data)
    assert tfevents.crc32c(b"123456789") == 0xE3069283


# ---------------------------------------------------------------------------------------------------------------- limits


def test_a_decompression_bomb() -> None:
    bomb = gzip.compress(bytes(200 << 20), 9)
    assert len(bomb) < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="grows past"):
            open_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < opening.FREE_INFLATE + (8 << 20)
    finally:
        tracemalloc.stop()


def test_many_gzip_members_count_together() -> None:
    member = gzip.compress(bytes(1 << 20), 9)
    with pytest.raises(FormatError, match="grows past"):
        open_bytes(member * 300)


def test_gzip_that_is_cut_or_broken() -> None:
    whole = (FOREIGN / "step.pb.gz").read_bytes()
    with pytest.raises(TruncatedError, match="cut short"):
        open_bytes(whole[:-20])
    with pytest.raises(FormatError, match="broken"):
        open_bytes(whole[:100] + b"\xff" * 50 + whole[150:])
    two = gzip.compress(STEP[:1000]) + gzip.compress(STEP[1000:])
    assert open_bytes(two).runs[0].traces[0].raw == STEP


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(opening.MAX_BYTES + 1)  # sparse
    with pytest.raises(FormatError, match="bytes"):
        open_any(tmp_path / "a")
    monkeypatch.setattr(opening, "MAX_TEXT", 10)
    with pytest.raises(FormatError, match="are not parsed"):
        open_bytes(json.dumps([slice_()]).encode())


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Check the path"):
        open_any(tmp_path / "none")
    with pytest.raises(FormatError, match="a folder without a profile"):
        open_any(tmp_path)


def test_more_fields_than_any_run_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_metadata, "MAX_FIELDS", 10)
    with pytest.raises(FormatError, match="cannot open"):
        open_bytes(b"\x0a\x00" * 11)


# ----------------------------------------------------------------------------------------------------------- changed files

SAMPLES = [
    "foreign/step.pb",
    "foreign/step.pb.gz",
    "foreign/step.pbtxt",
    "foreign/timeline-2.json",
    "foreign/events.out.tfevents.small",
    "legacy/session.pickle",
]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 1 << 20), st.binary(max_size=6), st.integers(0, 40))
def test_a_changed_file_opens_or_is_refused(name: str, place: int, put: bytes, gone: int) -> None:
    """Nothing but the package's own errors, whatever is in the file; what opens is RunMetadata or is refused as such."""
    whole = (DATA / name).read_bytes()
    at = place % len(whole)
    try:
        for run in open_bytes(whole[:at] + put + whole[at + gone :]).runs:
            assert all(isinstance(trace.raw, bytes) for trace in run.traces)
    except TracerError as error:
        assert len(str(error)) > 20


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"\x1f\x8b\x08", b"{", b"[", b"\x80\x04", b"step_stats {", b"\x0a"]))
def test_noise_is_refused_or_opened(noise: bytes, head: bytes) -> None:
    try:
        open_bytes(head + noise)
    except TracerError as error:
        assert len(str(error)) > 20


def test_numbers_of_all_widths() -> None:
    assert timeline_json.nanoseconds(1.5) == 1500
    assert timeline_json.nanoseconds(7) == 7000
    assert np.iinfo(np.int64).max > opening.MAX_BYTES > zlib.MAX_WBITS


def test_a_file_with_several_timelines_opens_as_several_traces() -> None:
    """As a loop that appends each step's Timeline to one file writes it, in objects with fields on both sides, or in lists."""
    event = '{"ph": "X", "pid": 1, "tid": 0, "ts": 10, "dur": 5, "name": "MatMul", "args": {"name": "dense", "op": "MatMul"}}'
    one = f'{{"a": [1], "traceEvents": [{event}], "otherData": {{"x": "}}"}}, "n": 2}}'
    for text, count in ((one * 3, 3), (f"{one}\n[{event}]\n{one}\n", 3), (f"[{event}][]{one}", 2), (one, 1)):
        opened = open_bytes(text.encode())
        assert [len(run.traces) for run in opened.runs] == [count] and not opened.cut
    cut = open_bytes((one + one[: one.index('], "otherData')]).encode())
    assert len(cut.runs[0].traces) == 2 and "ends early" in cut.cut
    other = open_bytes((one + one + '{"loss": 0.5}').encode())
    assert len(other.runs[0].traces) == 2 and other.cut == "The content after trace 2 in the file is no trace: it was left out."


def test_a_file_with_several_run_metadata_as_json_opens_as_several_traces() -> None:
    message = message_class("RunMetadata").FromString((DATA / "dense500_tf2.15_cpu.pb").read_bytes())
    text = json_format.MessageToJson(message)
    for separator in ("", "\n"):
        assert len(open_bytes(f"{text}{separator}{text}\n".encode()).runs[0].traces) == 2
