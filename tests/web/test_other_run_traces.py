"""The page's comparison over HTTP: of a live session and of the same one reopened, by all traces of both runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_source import FakeSource, a_trace
from recording import LOSS, RAW, TRAIN, Tensor, recording, step
from web_client import serving

from tftracer.comparison.two_traces import MAX_OF_ONE_RUN
from tftracer.session.files.saved import open_session

EVALUATE = Tensor("evaluate")
BROKEN = b"\xff" * 100
#: Steps of each run; the first ones are traced.
STEPS, TRACED = 500, 5


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Answers by session: of two runs, of one run, of runs of which one has a single trace."""
    folder = tmp_path_factory.mktemp("compared")
    with recording(folder, keep_traces=100) as recorder:
        for number in range(1, STEPS + 1):
            raw = RAW if number <= TRACED else BROKEN if number == TRACED + 1 else b""
            step(recorder, 3 * number, (TRAIN, LOSS), raw=raw)
            step(recorder, 3 * number + 1, (EVALUATE,), raw=raw)
            step(recorder, 3 * number + 2, (LOSS,), raw=RAW if number == 1 else b"")
        assert recorder.flush()
        recorder.save(str(folder / "saved.tftrace"))
        sources = {"live": recorder, "saved": open_session(str(folder / "saved.tftrace"))}
        yield {name: answers_of(source) for name, source in sources.items()}


def answers_of(source: Any) -> list[dict[str, Any]]:
    train, evaluate, loss = ([trace["id"] for trace in run["traces"]] for run in sorted(source.runs(), key=lambda run: run["id"]))
    with serving(source) as client:
        return [
            client.get(f"/api/compare?a={a}&b={b}").json for a, b in ((train[0], evaluate[0]), train[:2], (train[0], loss[0]))
        ]


@pytest.mark.parametrize("session", ["live", "saved"])
def test_two_runs_are_judged_by_all_their_traces_and_steps(session: str, compared: dict[str, list[dict[str, Any]]]) -> None:
    two_runs = compared[session][0]
    assert two_runs["traces"] == (
        f"Judged by {TRACED} traces of A's run and {TRACED} traces of B's. 2 traces cannot be read and are left out."
    )
    assert {row["status"] for row in two_runs["rows"]} == {"same"}
    assert all("too small" in row["statistic"] or "chance may" in row["statistic"] for row in two_runs["rows"])
    assert two_runs["step_times"].startswith("Recorded steps, step time (p25): 1 ms to 1 ms, +0.0%")


@pytest.mark.parametrize("session", ["live", "saved"])
def test_two_steps_of_a_run_are_judged_by_its_others(session: str, compared: dict[str, list[dict[str, Any]]]) -> None:
    one_run = compared[session][1]
    assert one_run["traces"] == f"Compared with the run's {TRACED - 2} other traces. 1 trace cannot be read and is left out."
    assert f"That takes {MAX_OF_ONE_RUN} traces of the run beside these two; there are {TRACED - 2}." in one_run["summary"]
    assert {row["statistic"] for row in one_run["rows"]} == {"within the run's own spread"}
    assert one_run["step_times"] == ""


@pytest.mark.parametrize("session", ["live", "saved"])
def test_a_run_with_one_trace_is_too_little(session: str, compared: dict[str, list[dict[str, Any]]]) -> None:
    few = compared[session][2]
    assert {row["statistic"] for row in few["rows"]} == {f"too few traces: {TRACED} and 1"}
    assert few["traces"].startswith(f"Judged by {TRACED} traces of A's run and 1 trace of B's.")


def test_the_newest_traces_are_looked_at_and_each_is_read_once() -> None:
    source = FakeSource()
    source.traces = [{**a_trace(number, len(source.raw)), "started_at": float(number)} for number in range(1, MAX_OF_ONE_RUN + 5)]
    source.traces[5]["state"] = "broken"
    with serving(source) as client:
        answer = client.get("/api/compare?a=1&b=2")
        assert answer.json["traces"] == (
            f"Compared with the run's {MAX_OF_ONE_RUN} other traces. "
            "1 older trace not looked at. 1 trace cannot be read and is left out."
        )
        assert {row["statistic"] for row in answer.json["rows"]} == {"within the run's own spread"}
        assert source.reads == MAX_OF_ONE_RUN + 2
        client.get("/api/compare?a=1&b=2")
        assert source.reads <= MAX_OF_ONE_RUN + 4  # what the others said is kept


def test_with_another_trace_of_the_run_it_is_another_answer() -> None:
    source = FakeSource()
    source.traces.append({**a_trace(2, len(source.raw)), "started_at": 5.0})
    with serving(source) as client:
        tag = client.get("/api/compare?a=1&b=2").headers["Etag"]
        assert client.get("/api/compare?a=1&b=2", If_None_Match=tag).status == 304
        source.traces.append({**a_trace(3, len(source.raw)), "started_at": 6.0})
        assert client.get("/api/compare?a=1&b=2", If_None_Match=tag).status == 200
