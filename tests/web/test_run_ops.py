"""Ops over a run's traces over HTTP: of a live session and of the same one reopened; which traces are read, and when no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import pytest
from fake_source import FakeSource, a_trace
from recording import DATA, TRAIN, recording, step
from web_client import TIMEOUT_S, Client, client, no_stray_logs, serving, source

import tftracer
from tftracer.contract.analyses import MIN_TRACES
from tftracer.contract.over_traces import RunOps
from tftracer.engine.decoded_traces import AnswerFormat, EncodedAnswer, Question
from tftracer.engine.engine import Engine
from tftracer.session.files.saved import open_session
from tftracer.session.traces.other_traces import newest_that_fit
from tftracer.storage.tftrace_format import compress
from tftracer.storage.trace_payload import Payload, TraceKey
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext
from tftracer.web.ask_several_traces import MAX_BYTES, MAX_TRACES

__all__ = ["client", "no_stray_logs", "source"]  # fixtures

#: Steps of one training: a worker and its parameter server, a convnet twice, and a step that is damaged.
STEPS = [
    (DATA / name).read_bytes()
    for name in ("ps_worker0_tf2.21_cpu.pb", "conv_costgraph_tf2.21_cpu.pb", "conv_tf2.12_cpu.pb", "ps_worker0_tf2.21_cpu.pb")
]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """By session, the answer by grouping."""
    folder = tmp_path_factory.mktemp("run")
    with recording(folder, keep_traces=100) as recorder:
        for number, raw in enumerate([*STEPS, b"\xff" * 100], 1):
            step(recorder, number, (TRAIN,), raw=raw)
        assert recorder.flush()
        recorder.save(str(folder / "saved.tftrace"))
        sources = {"live": recorder, "saved": open_session(str(folder / "saved.tftrace"))}
        yield {name: answers_of(source) for name, source in sources.items()}


def answers_of(session: Any) -> dict[str, Any]:
    (run,) = session.runs()
    with serving(session) as asking:
        return {by: asking.get(f"/api/runs/{run['id']}/ops?by={by}").json for by in ("type", "name", "scope")}


@pytest.mark.parametrize("by", ["type", "name", "scope"])
@pytest.mark.parametrize("session", ["live", "saved"])
def test_it_is_what_the_traces_own_tables_of_ops_say(session: str, by: Any, answered: dict[str, dict[str, RunOps]]) -> None:
    answer = answered[session][by]
    tables = [Answers(raw, TraceContext()).ops(by) for raw in STEPS]
    rows = [{row["key"]: row for row in table["rows"]} for table in tables]
    assert {row["key"] for row in answer["rows"]} == set().union(*rows) and answer["left_out"] == 0
    assert [trace["step"] for trace in answer["traces"]] == [1, 2, 3, 4]
    for row in answer["rows"]:
        having = [of_trace[row["key"]] for of_trace in rows if row["key"] in of_trace]
        times = [each["total_ns"] for each in having]
        assert row["traces"] == len(having) and row["count"] == mean(each["count"] for each in having)
        assert row["mean_ns"] == pytest.approx(mean(times)) and row["median_ns"] == median(times)
        assert row["spread_ns"] == (pytest.approx(stdev(times)) if len(times) > 1 else None)
        assert (row["shortest_ns"], row["longest_ns"]) == (min(times), max(times))
        assert row["share"] == pytest.approx(sum(times) / sum(table["total_ns"] for table in tables))
        assert row["total_ns"] == [of_trace[row["key"]]["total_ns"] if row["key"] in of_trace else None for of_trace in rows]
        flops = [each["flops"] for each in having if not each["flops_unknown"]]
        rates = [1e9 * each["flops"] / each["total_ns"] for each in having if not each["flops_unknown"] and each["total_ns"]]
        assert row["flops"] == (pytest.approx(mean(flops)) if flops else None)
        assert row["best_flop_rate"] == (pytest.approx(max(rates)) if rates else None)
        assert row["median_flop_rate"] == (pytest.approx(median(rates)) if rates else None)
        assert row["node"] == [of_trace[row["key"]]["node"] if row["key"] in of_trace else -1 for of_trace in rows]
    assert any(row["best_flop_rate"] for row in answer["rows"])
    assert [row["share"] for row in answer["rows"]] == sorted((row["share"] for row in answer["rows"]), reverse=True)


@pytest.mark.parametrize("session", ["live", "saved"])
def test_it_says_which_traces_it_is_of(session: str, answered: dict[str, dict[str, RunOps]]) -> None:
    assert answered[session]["type"]["summary"] == "From 4 traces of the run. 1 trace cannot be read and is left out."


def test_scripts_get_the_same_of_a_live_session_by_its_url(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=100) as recorder:
        for number, raw in enumerate(STEPS, 1):
            step(recorder, number, (TRAIN,), raw=raw)
        assert recorder.flush()
        with serving(recorder) as asking:
            (run,) = recorder.runs()
            page = asking.get(f"/api/runs/{run['id']}/ops?by=name").json
            with tftracer.open(f"http://{asking.host}/?token={asking.server.token}") as session:
                table = list(session.ops_over_traces(run["title"], by="name"))
    names = ["key", "op", "traces", "count", "mean_ns", "median_ns", "spread_ns", "shortest_ns", "longest_ns", "share", "flops"]
    renamed = {"best_flops_per_s": "best_flop_rate", "median_flops_per_s": "median_flop_rate"}
    pairs = {**{name: name for name in names}, **renamed}
    assert table and [[row[name] for name in pairs] for row in table] == [
        [row[name] for name in pairs.values()] for row in page["rows"]
    ]
    assert {row["of_traces"] for row in table} == {len(STEPS)}


def traces(source: FakeSource, count: int, size: int | None = None) -> None:
    made = [a_trace(number, size or len(source.raw)) for number in range(1, count + 1)]
    source.traces = [{**trace, "started_at": float(trace["id"]), "step": trace["id"]} for trace in made]


def test_of_many_traces_the_newest_are_read_once(client: Client, source: FakeSource) -> None:
    traces(source, MAX_TRACES + 5)
    answer = client.get("/api/runs/1/ops")
    assert answer.json["summary"] == f"Of the run's {MAX_TRACES + 5} traces the newest {MAX_TRACES} are read."
    assert [trace["id"] for trace in answer.json["traces"]] == list(range(6, MAX_TRACES + 6))
    assert source.reads == MAX_TRACES
    assert client.get("/api/runs/1/ops", If_None_Match=answer.headers["Etag"]).status == 304
    traces(source, MAX_TRACES + 6)
    assert client.get("/api/runs/1/ops", If_None_Match=answer.headers["Etag"]).status == 200
    assert source.reads == MAX_TRACES + 1, "what the others said is kept"


def test_of_large_traces_four_are_read(client: Client, source: FakeSource) -> None:
    def fitting(size: int, traces: int) -> int:
        return len(newest_that_fit([a_trace(1, size)] * traces, MAX_BYTES, MIN_TRACES))

    assert [fitting(size, 9) for size in (1, MAX_BYTES // 5, MAX_BYTES // 2, 9 * MAX_BYTES)] == [9, 5, 4, 4]
    assert [fitting(size, 3) for size in (1, 9 * MAX_BYTES)] == [3, 3]
    traces(source, 7, MAX_BYTES)
    answer = client.get("/api/runs/1/ops").json
    assert [trace["id"] for trace in answer["traces"]] == [4, 5, 6, 7]
    assert answer["summary"] == "Of the run's 7 traces the newest 4 are read."


def test_of_few_traces_it_says_that_they_mislead(client: Client) -> None:
    answer = client.get("/api/runs/1/ops?by=name").json
    assert answer["summary"] == "From 1 trace of the run. So few traces can mislead: trace at least 4 steps of the run."
    assert {row["spread_ns"] for row in answer["rows"]} == {None}


def test_what_does_not_exist_and_what_is_no_grouping_is_refused(client: Client) -> None:
    assert client.get("/api/runs/2/ops").status == client.get("/api/runs/x/ops").status == 404
    assert client.get("/api/runs/1/ops?by=size").status == 400


class Waiting(Engine):
    """Counts what is asked of it, and waits in the first question."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(lambda trace: Payload(compress(raw), len(raw), TraceContext()))
        self.asked: list[int] = []
        self.begun, self.may_end = threading.Event(), threading.Event()

    def ask(self, trace: TraceKey, question: Question, answer_format: AnswerFormat) -> EncodedAnswer:
        self.asked.append(trace.id)
        self.begun.set()
        assert self.may_end.wait(TIMEOUT_S)
        return super().ask(trace, question, answer_format)


def test_a_reader_who_leaves_lets_no_further_trace_be_read(source: FakeSource) -> None:
    traces(source, 6)
    engine = Waiting(source.raw)
    with serving(source, engine) as asking:
        connection = asking.connection()
        connection.request("GET", "/api/runs/1/ops", headers={"Authorization": f"Bearer {asking.server.token}"})
        assert engine.begun.wait(TIMEOUT_S)
        connection.close()
        asking.get("/api/session")  # the server has seen by now that the other connection is closed
        engine.may_end.set()
        assert asking.get("/api/traces/6/breakdown").status == 200
        assert engine.asked == [1, 6]


def test_the_whole_table_is_in_msgpack_too(client: Client) -> None:
    import msgpack

    packed = client.get("/api/runs/1/ops", Accept="application/msgpack")
    assert msgpack.unpackb(packed.body) == client.get("/api/runs/1/ops").json


def test_saved_files_of_one_trace_answer(tmp_path: Path) -> None:
    with serving(open_session(str(DATA / "while_loop_tf2.15_cpu.pb"))) as asking:
        assert asking.get("/api/runs/1/ops").json["rows"]
