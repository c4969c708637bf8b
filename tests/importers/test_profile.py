"""Profiles of several steps: each step a trace of its own."""

from __future__ import annotations

import os
from pathlib import Path

import plain_protobuf
import pytest
from wire_messages import number as number_field

from tftracer.errors import FormatError
from tftracer.importers import profile
from tftracer.session.files.saved import open_session
from tftracer.trace.answers import Answers
from tftracer.trace.decode import xplane_reader
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import TraceContext
from tftracer.trace.verdict.verdict import headline


def test_a_profile_of_one_step_keeps_its_bytes() -> None:
    raw = plain_protobuf.content("convnet_tf2.21.xplane.pb")
    (run,) = profile.read(raw).runs
    (trace,) = run.traces
    assert (run.title, trace.raw) == ("multi_step_on_iterator", raw)
    assert trace.duration_s == pytest.approx(0.017268088)


def test_a_profile_that_marks_no_steps_tells_no_time_of_one_nor_how_many_there_were() -> None:
    (run,) = profile.read(plain_protobuf.content("gpu_v100_excerpt.xplane.pb.gz")).runs
    (trace,) = run.traces
    assert (run.title, run.steps, trace.duration_s) == ("profile", 0, None)


def test_calls_of_jax_are_steps_and_their_kernels_go_with_them() -> None:
    raw = plain_protobuf.content("gpu_mi300_excerpt.xplane.pb.gz")
    (run,) = profile.read(raw).runs
    assert (run.title, len(run.traces)) == ("forward_3d_conv", 5)
    nodes = [decode_xspace(trace.raw).n for trace in run.traces]
    assert sum(nodes) <= decode_xspace(raw).n
    assert min(nodes) > 0


def marked(steps: list[tuple[int, int, int]]) -> bytes:
    """A profile with step markers (number, start and duration in us) and an op in each."""
    space = xplane_reader.plane_messages()["Space"]()
    plane = space.planes.add(name=b"/host:CPU")
    for number, name, display in ((1, b"train", b""), (2, b"dense/MatMul:MatMul", b"MatMul")):
        entry = plane.event_metadata.add(id=number)
        entry.value.name, entry.value.display_name = name, display
    plane.stat_metadata.add(id=7).value.name = b"step_num"
    line = xplane_reader.plane_messages()["Line"](id=1, name=b"python")
    for number, start, duration in steps:
        stat = b"\x22\x04\x08\x07\x20" + bytes([number])
        line.events.append(b"\x08\x01" + number_field(2, start * 10**6) + number_field(3, duration * 10**6) + stat)
        line.events.append(b"\x08\x02" + number_field(2, (start + 1) * 10**6) + number_field(3, 10**6))
    plane.lines.append(line.SerializeToString())
    return bytes(space.SerializeToString())


def test_markers_number_the_steps() -> None:
    (run,) = profile.read(marked([(11, 0, 10), (12, 20, 10), (13, 40, 30)])).runs
    assert [(trace.step, trace.duration_s) for trace in run.traces] == [(11, 1e-5), (12, 1e-5), (13, 3e-5)]
    assert [decode_xspace(trace.raw).n for trace in run.traces] == [1, 1, 1]


def test_a_marker_within_a_step_is_none() -> None:
    (run,) = profile.read(marked([(1, 0, 50), (2, 10, 20), (3, 60, 10)])).runs
    assert [trace.step for trace in run.traces] == [1, 3]


def test_the_newest_profile_of_a_folder_of_logs(tmp_path: Path) -> None:
    for age, name in enumerate(["2026_01_02", "2026_01_01"]):
        folder = tmp_path / "train/plugins/profile" / name
        folder.mkdir(parents=True)
        for host in ("a", "b"):
            file = folder / f"{host}.xplane.pb"
            file.write_bytes(b"")
            os.utime(file, (1000 - age, 1000 - age))
    newest = profile.newest_profile(tmp_path)
    assert [(path.parent.name, path.name) for path in newest] == [("2026_01_02", "a.xplane.pb"), ("2026_01_02", "b.xplane.pb")]


def test_a_folder_without_a_profile_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="without a profile"):
        profile.newest_profile(tmp_path)


def test_a_profile_opens_as_a_session(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(plain_protobuf.content("convnet_tf2.15.xplane.pb"))
    session = open_session(str(path))
    (run,) = session.runs()
    (record,) = run["traces"]
    assert run["title"] == "train_function"
    answers = Answers(session.trace_bytes(record["id"]), session.trace_context(record["id"]))
    assert answers.trace.source == "xspace"
    assert {finding["code"] for finding in answers.findings()} >= {"no_function_graph", "profile_limits"}


def test_a_folder_of_logs_opens_its_newest_profile_with_all_its_hosts(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/2026_01_01"
    folder.mkdir(parents=True)
    for host in ("a", "b"):
        (folder / f"{host}.xplane.pb").write_bytes(plain_protobuf.content("convnet_tf2.15.xplane.pb"))
    assert [run["title"] for run in open_session(str(tmp_path)).runs()] == ["a: train_function", "b: train_function"]


def test_a_profile_that_leaves_out_cheap_ops_says_so() -> None:
    codes = {name: findings(name) for name in ("convnet_tf2.15.xplane.pb", "eager_tf2.21.xplane.pb")}
    assert "cheap_ops_left_out" in codes["convnet_tf2.15.xplane.pb"]
    assert "cheap_ops_left_out" not in codes["eager_tf2.21.xplane.pb"]


def test_a_profile_with_its_graph_says_how_many_ops_it_has_and_so_does_its_headline() -> None:
    answers = Answers(plain_protobuf.content("partitioned_tf2.21.xplane.pb.xz"), TraceContext())
    (message,) = [f["message"] for f in answers.findings() if f["code"] == "cheap_ops_left_out"]
    assert message.endswith("(13 of 47 ops recorded, 46% of the executor's time)")
    assert headline(answers.verdict()).startswith("13 of 47 ops recorded, 46% of the executor's time. ")
    whole = Answers(plain_protobuf.content("partitioned_tf2.15.xplane.pb.xz"), TraceContext()).verdict()
    assert headline(whole) == whole["sentences"][0]["text"]


def findings(name: str) -> set[str]:
    return {finding["code"] for finding in Answers(plain_protobuf.content(name), TraceContext()).findings()}


@pytest.mark.parametrize("version", ["2.15", "2.21"])
def test_a_trace_of_our_own_is_named_after_the_function_that_was_called(version: str) -> None:
    (run,) = profile.read(plain_protobuf.content(f"two_threads_tf{version}.xplane.pb.xz")).runs
    assert (run.title, len(run.traces)) == ("step", 1)
