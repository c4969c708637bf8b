"""Sessions reopened from files, of every version of the format that was ever released."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import wire_messages as wire
from job_page import wait_for
from recording import RAW, killed_before_analysis, recording

from tftracer.contract.live import LiveMessage
from tftracer.errors import FormatError, UnsupportedError
from tftracer.session.files.saved import SavedSession, open_session
from tftracer.storage.tftrace_format import VERSION, header, record
from tftracer.trace.answers import Answers
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.record_fields import broken
from tftracer.trace.summary import summarize

DATA = Path(__file__).parents[1] / "data/versions"
SAMPLES = sorted(DATA.glob("*.tftrace"))


def shown(session: SavedSession) -> dict[str, Any]:
    """All of a session that must stay what it was, however later versions keep it."""
    facts = {name: value for name, value in session.session().items() if name not in ("file", "ended_at", "cut")}
    content: dict[str, Any] = {"session": facts, "runs": session.runs(), "step_times": {}, "traces": {}, "slow": {}}
    content["stacks"] = {str(stall["id"]): session.stall(stall["id"])["stacks"] for stall in session.all_stalls()["stalls"]}
    for run in session.runs():
        content["slow"][str(run["id"])] = {"stalls": session.run_stalls(run["id"]), "gaps": session.gaps(run["id"])}
        history = session.history(run["id"])
        content["step_times"][str(run["id"])] = {"entries": history.entries().tolist(), "traced": list(history.traced)}
        for trace in run["traces"]:
            raw = session.trace_bytes(trace["id"])
            context = {name: value for name, value in vars(session.trace_context(trace["id"])).items() if value not in (None, "")}
            content["traces"][str(trace["id"])] = {
                "sha256": hashlib.sha256(raw).hexdigest(),
                "nodes": len(decode_run_metadata(raw).start),
                "context": context,
            }
    return content


def test_there_is_a_sample_of_every_version() -> None:
    names = {path.name for path in DATA.iterdir()}
    for version in range(2, VERSION + 1):  # version 1 was never released
        assert {f"{version}-spool.tftrace", f"{version}-saved.tftrace", f"{version}.json"} <= names


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_files_of_every_version_open_for_ever(path: Path, tmp_path: Path) -> None:
    expected = json.loads((DATA / f"{path.stem.rpartition('-')[0]}.json").read_text())
    expected["session"].pop("cut", None)  # a spool was not closed, a saved file was
    session = open_session(path)
    assert bool(session.session()["cut"]) == (path.stem in ("2-spool", "2-stalls-spool"))
    session_shown = shown(session)
    for name, part in expected.items():  # a later version may show more
        assert part_of(part, session_shown[name]), name
    session.save(str(tmp_path / "again.tftrace"))
    assert shown(open_session(tmp_path / "again.tftrace")) == session_shown


def test_the_sample_with_slow_steps_has_some_of_each_kind() -> None:
    session = open_session(DATA / f"{VERSION}-stalls-saved.tftrace")
    slow, gaps = session.run_stalls(1), session.gaps(1)
    assert slow["count"] == 4 == len(slow["stalls"]) and slow["periods"][0]["every"] == 97
    assert {mark["kind"] for mark in slow["marks"]} == {"gc", "checkpoint", "host"}
    assert gaps["lines"][0]["function"] == "load_batch" and session.stall(1)["stacks"]["frames"]


def part_of(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and part_of(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(part_of(*pair) for pair in zip(expected, actual))
    return bool(expected == actual)


def test_what_is_damaged_costs_itself_alone_when_it_is_saved_again(tmp_path: Path) -> None:
    data = bytearray((DATA / "2-first-saved.tftrace").read_bytes())
    session = open_session(DATA / "2-first-saved.tftrace")
    first, *others = (trace["id"] for run in session.runs() for trace in run["traces"])
    payload = session.trace_state(first).payload
    history = session.model.run(1).history[0].payload
    for part in (payload, history):
        data[part.offset + part.size // 2] ^= 0x10
    (tmp_path / "damaged.tftrace").write_bytes(data)
    open_session(tmp_path / "damaged.tftrace").save(str(tmp_path / "again.tftrace"))
    again = open_session(tmp_path / "again.tftrace")
    with pytest.raises(FormatError, match="damaged"):
        again.trace_bytes(first)
    assert [again.trace_bytes(other) for other in others] == [session.trace_bytes(other) for other in others]
    assert again.runs() == session.runs()
    kept, of_first = session.history(2).entries(), again.history(1).entries()
    assert len(of_first) == 0 and len(again.history(2).entries()) == len(kept) > 0


def test_what_a_file_does_not_tell_is_unknown_not_0() -> None:
    session = open_session(DATA.parent / "ps_worker0_tf2.21_cpu.pb")
    session.analyze_pending()
    (trace,) = session.runs()[0]["traces"]
    assert (trace["step"], trace["duration_s"], trace["state"], trace["nodes"]) == (None, None, "ready", 370)


def test_a_trace_that_cannot_be_read_has_no_number_of_nodes() -> None:
    facts = broken(ValueError("cut"))
    assert (facts["state"], facts["nodes"]) == ("broken", None)


def test_what_a_killed_job_did_not_find_out_is_found_out(tmp_path: Path) -> None:
    session = open_session(killed_before_analysis(tmp_path))
    (trace,) = session.run(1)["traces"]
    assert (trace["nodes"], trace["devices"], trace["headline"], trace["state"]) == (None, [], "", "pending")
    heard: list[LiveMessage] = []
    session.subscribe(heard.append)
    session.analyze_pending()
    (analyzed,) = session.run(1)["traces"]
    assert (
        analyzed["nodes"] > 0 and analyzed["devices"] and analyzed["headline"] and analyzed["bytes"] == trace["bytes"] == len(RAW)
    )
    assert heard == [{"type": "trace", "payload": analyzed}]
    session.analyze_pending()
    assert len(heard) == 1


def test_a_trace_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    path = killed_before_analysis(tmp_path)
    payload = open_session(path).trace_state(1).payload
    data = bytearray(path.read_bytes())
    data[payload.offset + payload.size // 2] ^= 0x10
    path.write_bytes(data)
    session = open_session(path)
    session.analyze_pending()
    (trace,) = session.run(1)["traces"]
    assert trace["state"] == "broken" and trace["findings"][0]["code"] == "unreadable"


def test_a_live_session_finds_it_out_of_what_it_loads(tmp_path: Path) -> None:
    killed = killed_before_analysis(tmp_path)
    with recording(tmp_path) as recorder:
        recorder.load(str(killed))
        assert recorder.flush()
        (run,) = recorder.runs()
        assert run["traces"][0]["nodes"] > 0 and run["traces"][0]["headline"]


def test_a_reopened_session_finds_it_out_of_what_it_loads(tmp_path: Path) -> None:
    killed = killed_before_analysis(tmp_path)
    session = open_session(SAMPLES[0])
    trace_ids = {trace["id"] for run in session.runs() for trace in run["traces"]}
    session.load(str(killed))
    (added,) = {trace["id"] for run in session.runs() for trace in run["traces"]} - trace_ids
    wait_for(lambda: session.trace_record(added)["nodes"])
    assert session.trace_record(added)["headline"]


def test_a_reopened_session_is_not_traced() -> None:
    session = open_session(SAMPLES[0])
    assert session.session()["live"] is False and session.session()["active"] is False
    with pytest.raises(UnsupportedError, match="no training"):
        session.request_traces(1, 1)
    with pytest.raises(UnsupportedError, match="no training"):
        session.set_trace_all(True)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){20}$"])
def test_a_pattern_out_of_a_file_cannot_hang_the_viewer(pattern: str, tmp_path: Path) -> None:
    """It is run over names of the same file; Python's own matcher would take longer than anybody lives."""
    names = [f"{'a' * 60}{i}!" for i in range(500)]
    step = wire.run_metadata([(name, [wire.node(name, f"{name} = Op()", t13=wire.EPOCH_US * 1000, t16=10)]) for name in names])
    texts = {"communication_ops": pattern, "device_pattern": pattern}
    records = [record("run", {"id": 1, "title": "t"}), record("trace", {"id": 1, "run_id": 1, "context": texts}, step)]
    path = tmp_path / "hostile.tftrace"
    path.write_bytes(header() + b"".join(records))
    session = open_session(path)
    session.analyze_pending()
    assert session.trace_record(1)["state"] == "ready" and session.trace_record(1)["nodes"] == 500
    answers = Answers(session.trace_bytes(1), session.trace_context(1))
    assert len(answers.timeline()["lanes"]) == 500
    assert answers.verdict()["sentences"] and summarize(answers)["nodes"] == 500
