"""The facade: every answer of real traces is plain, in keeping with the contract, and the same from several threads."""

from __future__ import annotations

import json
import threading
import typing
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np
import plain_protobuf
import pytest
from traces import CPU, N, make_trace

from tftracer.contract.analyses import ANALYSES, Analysis
from tftracer.errors import FormatError, UnknownError
from tftracer.trace import answers as answers_module
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.columns import array
from tftracer.trace.model import TraceContext
from tftracer.trace.record_fields import contents_of
from tftracer.trace.summary import summarize

DATA = Path(__file__).parents[1] / "data"
FILES = [
    "conv_costgraph_tf2.21_cpu.pb",
    "estimator_tf2.15_cpu.pb",
    "horovod_rank1_tf2.15_cpu.pb",
    "ps_worker0_tf2.21_cpu.pb",
    "while_loop_tf2.15_cpu.pb",
]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "ops": {"by": "scope"},
    "critical_path": {"with_slack": True},
    "node": {"index": 3},
    "neighbourhood": {"index": 3},
}


def asked(answers: Answers, analysis: Analysis) -> Any:
    return getattr(answers, analysis.name)(**ARGUMENTS.get(analysis.name, {}))


def of_file(name: str, **context: Any) -> Answers:
    return Answers((DATA / name).read_bytes(), TraceContext(**context))


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is what the contract says, with no NumPy scalar in it."""
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind)
        return kind.__required_keys__ <= set(value) <= set(hints) and all(fits(value[k], hints[k]) for k in value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return type(value) is list and all(fits(v, arguments[0]) for v in value)
    if origin is dict:
        return all(type(k) is str and fits(v, arguments[1]) for k, v in value.items())
    if origin is typing.Literal:
        return value in arguments
    if arguments:
        return any(fits(value, each) for each in arguments)
    return type(value) is kind or (kind is float and type(value) is int)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_answers_fit_the_contract(name: str, analysis: Analysis) -> None:
    assert fits(asked(of_file(name), analysis), analysis.message)


def test_answers_of_an_empty_trace_fit_the_contract() -> None:
    empty = Answers(b"", TraceContext())
    for analysis in ANALYSES:
        if "index" not in analysis.parameters:
            assert fits(asked(empty, analysis), analysis.message), analysis.name
    json.dumps(summarize(empty))


@pytest.mark.parametrize("name", FILES)
def test_the_timeline_is_the_trace_in_the_order_of_its_rows(name: str) -> None:
    answers = of_file(name)
    path = {step["node"] for step in answers.critical_path()["steps"]}
    timeline, trace = answers.timeline(), answers.trace
    node, rows = array(timeline["node"]), array(timeline["row_offsets"])
    assert sorted(node.tolist()) == np.flatnonzero(trace.start >= 0).tolist()
    assert array(timeline["start"]).tolist() == trace.start[node].tolist()
    assert array(timeline["duration"]).tolist() == (trace.end - trace.start)[node].tolist()
    assert rows[-1] == len(node) and sum(lane["rows"] for lane in timeline["lanes"]) == len(rows) - 1
    assert set(node[array(timeline["critical"]) == 1].tolist()) == path
    delay = array(timeline["delay"])
    assert ((delay == -1) == (trace.scheduled[node] == -1)).all()


def test_the_path_is_marked_once_it_was_asked_for() -> None:
    answers = of_file("estimator_tf2.15_cpu.pb")
    assert not array(answers.timeline()["critical"]).any()
    answers.critical_path()
    assert array(answers.timeline()["critical"]).any()


def test_slack_is_not_known_where_no_dependencies_are_recorded() -> None:
    """A node then has no consumers: the time up to the step's end is no slack."""
    answers = Answers(plain_protobuf.content("gpu_v100_excerpt.xplane.pb.gz"), TraceContext())
    assert answers.critical_path()["edges"] == "none"
    assert (answers.slack == -1).all()
    assert {answers.node(node)["slack_ns"] for node in range(0, answers.trace.n, 500)} == {None}


def test_slack_is_zero_or_more_and_told_with_a_node() -> None:
    answers = of_file("while_loop_tf2.15_cpu.pb")
    column = answers.critical_path(with_slack=True)["slack_ns"]
    assert column is not None and answers.critical_path()["slack_ns"] is None
    slack = array(column)
    assert len(slack) == answers.trace.n and (slack >= 0).all()
    last = answers.critical_path()["steps"][-1]["node"]
    assert slack[last] == 0
    detail = answers.node(last)
    assert detail["critical"] and detail["slack_ns"] == 0


def test_a_device_pattern_hides_lanes_but_counts_everything() -> None:
    answers = of_file("ps_worker0_tf2.21_cpu.pb", device_pattern="worker")
    assert {lane["device"] for lane in answers.timeline()["lanes"]} == {"/job:worker/replica:0/task:0/device:CPU:0"}
    assert len(answers.budget()["devices"]) == 2
    assert "devices_hidden" in [f["code"] for f in answers.findings()]


def test_the_tensors_alive_at_the_peak_add_up_to_it() -> None:
    memory = of_file("while_loop_tf2.15_cpu.pb").memory()
    (curve, *_) = memory["curves"]
    alive = [t["bytes"] for t in memory["tensors"] if t["alloc_ns"] <= curve["peak_ns"] < t["free_ns"]]
    assert curve["peak_bytes"] == sum(alive) == max(curve["bytes"])


def test_what_a_recorder_keeps() -> None:
    contents = contents_of(of_file("horovod_rank1_tf2.15_cpu.pb"))
    assert (contents["nodes"], contents["devices"], contents["state"]) == (308, [CPU], "ready")
    assert {f["code"] for f in contents["findings"]} == {"no_partition_graph"}
    assert "HorovodAllreduce" in contents["headline"]


def test_the_bytes_of_a_large_trace_are_let_go_and_loaded_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "RELEASE_BYTES", 1)
    raw, loaded = (DATA / "horovod_rank1_tf2.15_cpu.pb").read_bytes(), []

    def load() -> bytes:
        loaded.append(len(raw))
        return raw

    answers, kept = Answers(load, TraceContext()), Answers(raw, TraceContext())
    assert answers.timeline() == kept.timeline() and answers.budget() == kept.budget()
    assert loaded == [len(raw)]  # to decode it; the columns tell all that
    assert answers.node(100) == kept.node(100) and answers.ops() == kept.ops() and answers.memory() == kept.memory()
    assert loaded == 2 * [len(raw)]


def test_several_threads_get_one_answer() -> None:
    answers = of_file("estimator_tf2.15_cpu.pb")
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(answers.verdict())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all(each is results[0] for each in results)


def test_a_decoded_trace_will_do() -> None:
    answers = Answers(None, TraceContext(), trace=make_trace([N("a", "MatMul", 0, 5)]))
    assert answers.ops()["rows"][0]["key"] == "MatMul"
    with pytest.raises(ValueError, match="raw bytes"):
        Answers(None, TraceContext())


def test_questions_that_make_no_sense() -> None:
    answers = of_file("estimator_tf2.15_cpu.pb")
    for index in (-1, 145):
        with pytest.raises(UnknownError, match="0 to 144"):
            answers.node(index)
        with pytest.raises(UnknownError):
            answers.neighbourhood(index)
    with pytest.raises(UnknownError, match="type, name or scope"):
        answers.ops("colour")  # type: ignore[arg-type]
    with pytest.raises(FormatError):
        Answers(b"\x0a\xff\xff", TraceContext()).verdict()
