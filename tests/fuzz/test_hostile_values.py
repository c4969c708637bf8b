"""Values in files that once ended in a traceback, or in a file that no tool can read: every question is asked about each."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from function_library import edges, library

from fuzz import changes, questions, targets
from tftracer.errors import FormatError
from tftracer.export.chrome import write_chrome_traces
from tftracer.importers import timeline_json
from tftracer.session import summary_of_session
from tftracer.session.files.reading import read_model
from tftracer.session.files.saved import SavedSession
from tftracer.storage import tftrace_format
from tftracer.storage.tftrace_reader import Reader
from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.model import TraceContext

LARGEST = (1 << 63) - 1
PROFILES = targets.DATA / "xspace"


def of_nodes(*nodes: dict[str, Any]) -> bytes:
    step = message_class("RunMetadata")()
    device = step.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
    for number, node in enumerate(nodes):
        label = f"n{number} = MatMul(n0:99999999999999999999)"
        device.node_stats.add(node_name=f"n{number}", timeline_label=label, **node)
    return bytes(step.SerializeToString())


def timed(start: int, end: int, **more: int) -> dict[str, int]:
    return {"all_start_micros": start // 1000, "all_start_nanos": start, "all_end_rel_nanos": end, **more}


TIMES = [
    [timed(1_700_000_000 * 10**9, 1000), timed(0, 1000), timed(LARGEST, 1000)],
    [timed(1_700_000_000 * 10**9, LARGEST, scheduled_nanos=LARGEST), timed(1_700_000_000 * 10**9 + 5, 10)],
    [timed(0, 1), timed(LARGEST - 1, 1)],
]


def chrome(answers: Answers) -> list[dict[str, Any]]:
    file = io.BytesIO()
    write_chrome_traces([("", answers)], file)
    events: list[dict[str, Any]] = json.loads(file.getvalue())["traceEvents"]
    return events


@pytest.mark.parametrize("nodes", TIMES, ids=range(len(TIMES)))
def test_times_that_no_step_has_leave_every_export_sound(nodes: list[dict[str, int]]) -> None:
    raw = of_nodes(*nodes)
    questions.ask_all(targets.trace(raw))
    answers = Answers(raw, TraceContext())
    slices = [event for event in chrome(answers) if event["ph"] == "X"]
    assert slices and all(event["ts"] >= 0 and event["dur"] >= 0 for event in slices)
    assert "bad_times" in {finding["code"] for finding in answers.findings()}


def test_what_ran_before_a_profiled_step_has_a_sound_time_in_the_chrome_export() -> None:
    answers = Answers(targets.read(PROFILES / "two_threads_tf2.15.xplane.pb.xz"), TraceContext())
    starts = answers.trace.start[answers.trace.drawn]
    assert starts.min() < 0
    slices = [event for event in chrome(answers) if event["ph"] == "X"]
    assert len(slices) == len(starts) and min(event["ts"] for event in slices) == 0


def test_a_number_of_an_output_that_no_op_has_is_no_error_in_the_tables() -> None:
    outputs = {"output": [{"slot": (1 << 31) - 1}, {"slot": -1}]}
    questions.ask_all(targets.trace(of_nodes(timed(1000, 5, **outputs), timed(2000, 5))))  # type: ignore[arg-type]


def test_a_cost_graph_with_bad_text_is_named_as_damaged() -> None:
    raw = (targets.DATA / "conv_costgraph_tf2.21_cpu.pb").read_bytes()
    message = changes.parsed(raw)
    assert message is not None
    name = next(field for number, _, value in message if number == 2 and isinstance(value, list) for field in value)
    assert isinstance(name[2], list)
    name[2][:] = [(number, wire, b"\xff" if isinstance(value, bytes) else value) for number, wire, value in name[2]]
    broken = Answers(changes.written(message), TraceContext())
    with pytest.raises(FormatError, match="cost graph of this trace is damaged"):
        broken.cost()
    questions.ask_all(targets.trace(changes.written(message)))


@pytest.mark.parametrize("moment", [1e300, -1e300, 1e18, 253_402_300_800.0, 1 << 62, "soon"])
def test_a_date_that_no_calendar_holds_is_not_known(moment: object) -> None:
    run = {"id": 1, "title": "train_op", "fetches": ["train_op"], "first_run_at": moment, "last_run_at": moment}
    trace = {"id": 1, "run_id": 1, "step": 3, "started_at": moment, "context": {"began_at": moment}}
    facts = {"host": "a", "started_at": moment, "ended_at": moment}
    records = [("session", facts, b""), ("run", run, b""), ("trace", trace, of_nodes(timed(1000, 5)))]
    data = tftrace_format.header() + b"".join(tftrace_format.record(*record) for record in records)
    session = SavedSession(read_model(Reader(targets.InMemory(data)), "memory"))
    assert session.session()["started_at"] == 0 and session.runs()[0]["first_run_at"] is None
    questions.ask_all(session)
    assert "train_op" in summary_of_session.render(summary_of_session.summarize(session))


@pytest.mark.parametrize("origin", ["9" * 19, str(LARGEST)])
def test_an_origin_that_no_clock_has_is_left_out(origin: str) -> None:
    event = {"ph": "X", "name": "MatMul", "pid": 1, "tid": 1, "ts": 5, "dur": 3}
    imported = timeline_json.read(json.dumps({"otherData": {"origin_ns": origin}, "traceEvents": [event]}))
    assert len(imported.runs[0].traces) == 1


def within(message: Any, *numbers: int) -> list[Any]:
    """The messages that lie below these fields, one field in another."""
    for number in numbers:
        message = [inner for holder in message for field, _, inner in holder if field == number and isinstance(inner, list)]
    return list(message)


@pytest.mark.parametrize("number", [LARGEST, 1 << 31, (1 << 64) - 1])
def test_the_type_of_an_allocated_tensor_may_be_any_number(number: int) -> None:
    profile = changes.parsed(targets.read(PROFILES / "convnet_tf2.21.xplane.pb"))
    stats_changed = 0
    for plane in within([profile], 1):
        types = {kind[0][2] for kind in within([plane], 5, 2) if (2, 2, b"data_type") in kind}
        for stat in within([plane], 3, 4, 4):
            if stat[0][2] in types:
                stat[1:] = [(3, 0, number)]
                stats_changed += 1
    assert stats_changed
    questions.ask_all(targets.trace(changes.written(profile or [])))


@pytest.mark.parametrize("text", ["a:٣", "a:" + "9" * 5000, "a:-1", "a:"])
def test_the_number_of_a_functions_output_may_be_any_text(text: str) -> None:
    lib = library(root={"nodes": [("a", "Const", [], {}), ("b", "Exp", [text], {})]})
    assert edges(lib, "a", "b") == {"a": [], "b": ["a"]}
