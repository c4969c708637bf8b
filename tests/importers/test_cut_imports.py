"""Files that were cut short, as an interrupted copy leaves them: each says so, and claims nothing of what it lacks."""

from __future__ import annotations

import gzip
from pathlib import Path

import plain_protobuf
import pytest
from google.protobuf import json_format, text_format

from tftracer.errors import FormatError, TruncatedError
from tftracer.importers.open_any import open_any, open_bytes
from tftracer.session.files.saved import SavedSession, open_session
from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class

DATA = Path(__file__).parents[1] / "data"
STEP = (DATA / "foreign/step.pb").read_bytes()
EVENTS = (DATA / "foreign/events.out.tfevents.small").read_bytes()
TIMELINE = (DATA / "gpu_timeline_tf1.json").read_bytes()
PROFILE = plain_protobuf.content("gpu_v100_excerpt.xplane.pb.gz")
METADATA = message_class("RunMetadata").FromString(STEP)

WHOLE = {
    "RunMetadata": STEP,
    "RunMetadata of two devices": (DATA / "while_loop_tf2.15_cpu.pb").read_bytes(),
    "StepStats": METADATA.step_stats.SerializeToString(),
    "StepStats of two devices": METADATA.step_stats.SerializeToString()
    + message_class("StepStats")(dev_stats=[{"device": "b"}]).SerializeToString(),
    "text": text_format.MessageToString(METADATA).rstrip().encode(),
    "text in one line": text_format.MessageToString(METADATA, as_one_line=True).encode(),
    "JSON": json_format.MessageToJson(METADATA).encode(),
    "profile of GPUs": PROFILE,
    "profile of JAX": plain_protobuf.content("gpu_mi300_excerpt.xplane.pb.gz"),
    "profile of eager ops": plain_protobuf.content("eager_tf2.21.xplane.pb"),
    "gzip of a profile": gzip.compress(PROFILE),
    "gzip of a Timeline": gzip.compress(TIMELINE),
    "pickle": (DATA / "legacy/session.pickle").read_bytes(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_file_is_called_one_and_is_to_be_copied_again(name: str) -> None:
    whole = WHOLE[name]
    for size in sorted({len(whole) * part // 20 for part in range(1, 20)} | {len(whole) - 1}):
        with pytest.raises(TruncatedError, match=r"cut short.*copy it again"):
            open_bytes(whole[:size])


@pytest.mark.parametrize(
    "text", ["step_stats { dev_stats { device: 'a' } } }", "step_stats {\n dev_stats } {\n}\n", "step_stats { 5 5 } "]
)
def test_a_text_that_is_wrong_before_its_end_is_not_called_cut(text: str) -> None:
    with pytest.raises(FormatError, match="this is no RunMetadata"):
        open_bytes(text.encode())


def test_a_timeline_or_event_file_that_ends_before_its_first_trace_does_not_lack_one() -> None:
    for size in (1, 10, 20, 150):
        with pytest.raises(TruncatedError, match=r"ends early, .*copy it again"):
            open_bytes(TIMELINE[:size])
    for size in (150, 1000, 7000):
        with pytest.raises(TruncatedError, match=r"cut short, .*copy it again"):
            open_bytes(EVENTS[:size])


def codes(session: SavedSession) -> list[str]:
    (run,) = session.runs()
    (trace,) = run["traces"]
    answers = Answers(session.trace_bytes(trace["id"]), session.trace_context(trace["id"]))
    assert trace["findings"] == answers.findings()
    return [finding["code"] for finding in answers.findings()]


def test_a_cut_timeline_opens_and_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(TIMELINE[:5000])
    session = open_session(path)
    assert "ends early" in session.session()["cut"]
    session.analyze_pending()
    assert codes(session) == ["trace_cut", "timeline_json"]
    session.save(str(tmp_path / "saved.tftrace"))
    assert codes(open_session(tmp_path / "saved.tftrace")) == ["trace_cut", "timeline_json"]


def test_a_whole_timeline_is_not_called_cut() -> None:
    session = open_session(DATA / "gpu_timeline_tf1.json")
    session.analyze_pending()
    assert (session.session()["cut"], codes(session)) == ("", ["timeline_json"])


def test_a_cut_event_file_opens_up_to_its_last_whole_trace(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents"
    path.write_bytes(EVENTS[:-100])
    session = open_session(path)
    assert "in the middle of a record" in session.session()["cut"]
    assert sum(len(run["traces"]) for run in session.runs()) == 2


def test_a_folder_with_a_cut_profile_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.xplane.pb").write_bytes(PROFILE)
    (tmp_path / "b.xplane.pb").write_bytes(PROFILE[: len(PROFILE) // 2])
    with pytest.raises(TruncatedError, match=r"b\.xplane\.pb: this is .*profiler.* cut short: copy it again"):
        open_any(tmp_path)
