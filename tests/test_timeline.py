"""Timeline: the original's numbers in seconds, independent sums, files there and back, exports, bad input."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from html_page import Page

import tftracer.timeline
from tftracer.errors import FormatError, MissingTensorFlowError, StorageError, UnsafePickleError, UnsupportedError
from tftracer.timeline import Timeline
from tftracer.trace.decode.descriptors import message_class

DATA = Path(__file__).parent / "data"
RECORDED = json.loads((DATA / "legacy" / "times.json").read_text())
METHODS = ("step_time", "computation_time", "communication_time", "communication_elapsed_time")


def metadata(name: str) -> Any:
    return message_class("RunMetadata").FromString((DATA / name).read_bytes())


def cases() -> list[tuple[str, str | None, str | None, str | None]]:
    result = []
    for key in RECORDED:
        name, op, device, exclude = (None if part == "None" else part for part in key.split("|"))
        result.append((name or "", op, device, exclude))
    return result


@pytest.fixture(scope="module")
def timelines() -> dict[tuple[str, str | None], Timeline]:
    return {(name, op): Timeline(metadata(name), comm_op_name=op) for name, op, _, _ in cases()}


def test_the_recorded_numbers_are_enough() -> None:
    assert len(RECORDED) >= 80
    assert {key.split("|")[0] for key in RECORDED} >= {
        "dense500_tf2.15_cpu.pb",
        "ps_worker0_tf2.21_cpu.pb",
        "horovod_rank0_tf2.15_cpu.pb",
    }


@pytest.mark.parametrize(("name", "op", "device", "exclude"), cases())
def test_equal_to_the_original_in_seconds(
    timelines: dict[tuple[str, str | None], Timeline], name: str, op: str | None, device: str | None, exclude: str | None
) -> None:
    """data/legacy/record.py asked the original 1.1.0, which returns microseconds (and documents seconds)."""
    timeline = timelines[name, op]
    expected = RECORDED[f"{name}|{op}|{device}|{exclude}"]
    assert round(timeline.step_time(device) * 1e6) == expected["step_time"]
    assert timeline.iteration_time(device) == timeline.step_time(device)
    for method in METHODS[1:]:
        assert round(getattr(timeline, method)(device, exclude) * 1e6) == expected[method], method


def microseconds(name: str, wanted: Any) -> set[int]:
    """Every microsecond in which an op that is wanted ran: the obvious way to a union."""
    busy: set[int] = set()
    for device in metadata(name).step_stats.dev_stats:
        for node in device.node_stats:
            if wanted(device.device, node):
                busy.update(range(node.all_start_micros, node.all_start_micros + node.all_end_rel_micros))
    return busy


def test_equal_to_counting_microseconds() -> None:
    name = "ps_worker0_tf2.21_cpu.pb"
    timeline = Timeline(metadata(name))
    received = microseconds(name, lambda device, node: "worker" in device and node.node_name == "RecvTensor")
    assert round(timeline.communication_time("worker") * 1e6) == len(received)
    assert round(timeline.communication_elapsed_time("worker") * 1e6) == max(received) + 1 - min(received)
    computed = microseconds(name, lambda device, node: "edge_" not in node.timeline_label)
    assert round(timeline.computation_time(exclude_pattern="edge_") * 1e6) == len(computed)


def test_horovod_as_tfvis_had_it() -> None:
    """horovod=True: nothing but allreduce; False: nothing but the named op; None: both."""
    name = "horovod_rank0_tf2.15_cpu.pb"
    reduced = microseconds(name, lambda device, node: " = HorovodAllreduce(" in node.timeline_label)
    named = microseconds(name, lambda device, node: node.node_name == "RecvTensor")
    assert reduced
    assert round(Timeline(metadata(name), horovod=True).communication_time() * 1e6) == len(reduced)
    assert round(Timeline(metadata(name), horovod=False).communication_time() * 1e6) == len(named)
    assert round(Timeline(metadata(name)).communication_time() * 1e6) == len(reduced | named)


def test_a_pattern_that_no_name_contains_is_a_regular_expression() -> None:
    timeline = Timeline(metadata("ps_worker0_tf2.21_cpu.pb"))
    assert timeline.step_time("job:(worker|none)") == timeline.step_time("worker") > 0
    assert timeline.step_time("job:(worker") == 0.0  # neither contained nor an expression
    assert timeline.step_time("no such device") == 0.0


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.glob("*.pb")))
@pytest.mark.parametrize("options", [{}, {"show_dataflow": False}, {"show_memory": True}])
def test_chrome_json_of_a_message_is_that_of_its_bytes(name: str, options: dict[str, Any]) -> None:
    """Also where only the nodes of the message are serialized, without the graphs' insides."""
    message = metadata(name)
    for graphs in (True, False):
        if not graphs:
            del message.partition_graphs[:]
            message.ClearField("cost_graph")
        exported = Timeline(message).to_chrome_trace(**options)
        assert exported == Timeline(message.SerializeToString()).to_chrome_trace(**options)


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.glob("*.pb")))
@pytest.mark.parametrize("more", ["nothing", "function graphs", "an unknown field"])
def test_a_message_is_saved_whole(name: str, more: str, tmp_path: Path) -> None:
    message = metadata(name)
    if more == "function graphs":
        message.function_graphs.add().partition_graphs.add().node.add(name="inner", op="NoOp")
    elif more == "an unknown field":
        message.MergeFromString(b"\x9a\x06\x03abc")
    Timeline(message).save(tmp_path / "step.pb")
    saved = (tmp_path / "step.pb").read_bytes()
    assert len(saved) == message.ByteSize()
    assert type(message).FromString(saved) == message
    assert saved.endswith(b"abc") is (more == "an unknown field")


def test_an_empty_step() -> None:
    timeline = Timeline(message_class("RunMetadata")())
    assert [getattr(timeline, method)() for method in METHODS] == [0.0] * 4
    assert "tftracer-data" in (timeline.visualize() or "")
    assert json.loads(timeline.to_chrome_trace() or "")["traceEvents"] is not None


def test_before_anything_was_traced() -> None:
    timeline = Timeline()
    for call in (timeline.step_time, timeline.visualize, timeline.to_chrome_trace, lambda: timeline.kwargs):
        with pytest.raises(UnsupportedError, match="with"):
            call()
    assert timeline.run_metadata is None
    assert timeline.options is None
    assert timeline.wall_clock_elapsed == 0.0


def test_without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorflow", "tensorflow.compat"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingTensorFlowError, match=r"Timeline\.load"), Timeline():
        pass


# ------------------------------------------------------------------------------------------------------------------ files


def test_a_pickle_there_and_back(tmp_path: Path) -> None:
    timeline = Timeline(metadata("horovod_rank0_tf2.15_cpu.pb"))
    timeline.to_pickle(tmp_path / "a.pickle")
    again = Timeline.from_pickle(tmp_path / "a.pickle", horovod=True)
    assert again.communication_time() == timeline.communication_time() > 0


def test_a_pickle_of_the_original() -> None:
    assert Timeline.from_pickle(DATA / "legacy" / "run_metadata_protocol3.pickle").step_time() > 0


def test_a_hostile_pickle(tmp_path: Path) -> None:
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(print))
    for read in (Timeline.from_pickle, Timeline.load):
        with pytest.raises(UnsafePickleError, match=r"builtins\.print"):
            read(tmp_path / "a.pickle")


@pytest.mark.parametrize("name", ["a.pb", "a.pb.gz"])
def test_saved_and_loaded(tmp_path: Path, name: str) -> None:
    raw = (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()
    Timeline(raw).save(tmp_path / name)
    written = (tmp_path / name).read_bytes()
    assert (gzip.decompress(written) if name.endswith(".gz") else written) == raw
    assert Timeline.load(tmp_path / name).step_time() == Timeline(raw).step_time()
    assert [path.name for path in tmp_path.iterdir()] == [name]


LOADABLE = [
    "foreign/step.pb",
    "foreign/step.pb.gz",
    "foreign/step.pbtxt",
    "foreign/timeline-2.json",
    "foreign/events.out.tfevents.small",
    "gpu_timeline_tf1.json",
    "legacy/session.pickle",
    "legacy/session.pickle.gz",
    "legacy/run_metadata_protocol4.pickle",
]


@pytest.mark.parametrize("name", LOADABLE)
def test_whatever_holds_a_trace_is_loaded(name: str) -> None:
    assert Timeline.load(DATA / name).step_time() > 0


def test_a_session_file(tmp_path: Path) -> None:
    from tftracer.session.files.saved import open_session

    open_session(str(DATA / "legacy" / "session.pickle")).save(str(tmp_path / "a.tftrace"))
    assert Timeline.load(tmp_path / "a.tftrace").step_time() == Timeline.load(DATA / "legacy" / "session.pickle").step_time()


def test_what_a_format_lacks_is_a_finding_of_every_answer() -> None:
    page = Page(Timeline.load(DATA / "gpu_timeline_tf1.json").visualize() or "")
    for answer in (page.answer("timeline"), page.answer("verdict")):
        assert "timeline_json" in [finding["code"] for finding in answer["findings"]]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nothing here"):
        Timeline.load(tmp_path / "nothing here")
    with pytest.raises(StorageError, match="folder"):
        Timeline(metadata("foreign/step.pb")).save(tmp_path / "no folder" / "a.pb")
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(FormatError, match="empty"):
        Timeline.load(tmp_path / "a")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StorageError, match="No space left"):
        Timeline(metadata("foreign/step.pb")).save(path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.pb"]


# ---------------------------------------------------------------------------------------------------------------- exports


def test_names_as_long_as_the_file_system_takes_them_and_longer_ones(tmp_path: Path) -> None:
    timeline = Timeline.load(DATA / "conv_costgraph_tf2.21_cpu.pb")
    most = os.pathconf(tmp_path, "PC_NAME_MAX")
    timeline.save(tmp_path / "a.pb".rjust(most, "a"))
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [(DATA / "conv_costgraph_tf2.21_cpu.pb").stat().st_size]
    with pytest.raises(StorageError, match="File name too long"):
        timeline.save(tmp_path / "a.pb".rjust(most + 1, "a"))
    assert len(list(tmp_path.iterdir())) == 1


def test_visualize_writes_or_returns_the_same_page(tmp_path: Path) -> None:
    timeline = Timeline(metadata("foreign/step.pb"))
    assert timeline.visualize(tmp_path / "a.html") is None
    page = timeline.visualize()
    assert page is not None
    assert (tmp_path / "a.html").read_text(encoding="utf-8")[:100] == page[:100]
    assert page.startswith("<!doctype html>")


def test_a_device_pattern_that_hides_is_a_finding() -> None:
    timeline = Timeline(metadata("ps_worker0_tf2.21_cpu.pb"))
    answer = Page(timeline.visualize(device_pattern="worker") or "").answer("timeline")
    assert {lane["device"] for lane in answer["lanes"]} == {"/job:worker/replica:0/task:0/device:CPU:0"}
    assert "devices_hidden" in [finding["code"] for finding in answer["findings"]]
    with pytest.raises(UnsupportedError, match="regular expression"):
        timeline.visualize(device_pattern="(")


def test_exports_to_files(tmp_path: Path) -> None:
    timeline = Timeline(metadata("foreign/step.pb"))
    assert timeline.to_chrome_trace(tmp_path / "a.json.gz", show_memory=True) is None
    assert json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))["traceEvents"]
    timeline.to_perfetto(tmp_path / "b.json")
    events = json.loads((tmp_path / "b.json").read_bytes())["traceEvents"]
    assert {"X", "C"} <= {event["ph"] for event in events}, "slices and counters"


def test_the_answers_follow_the_run_metadata() -> None:
    message = metadata("foreign/step.pb")
    timeline = Timeline(message)
    before = timeline.step_time()
    message.step_stats.dev_stats[0].node_stats[0].all_end_rel_micros += 5_000_000
    message.step_stats.dev_stats[0].node_stats[0].all_end_rel_nanos += 5_000_000_000
    assert timeline.step_time() > before + 4


def test_the_user_s_own_op_is_communication_everywhere() -> None:
    page = Page(Timeline(metadata("foreign/step.pb"), comm_op_name="product").visualize() or "")
    assert "communication" in [lane["kind"] for lane in page.answer("timeline")["lanes"]]
    assert tftracer.timeline.RECEIVE == "RecvTensor"


def test_unknown_arguments_are_ignored_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="Timeline ignores arguments that it does not know: verbose"):
        tftracer.Timeline(verbose=True)
