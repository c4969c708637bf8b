"""A job of several processes and its page, as users see it: real servers, real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from free_ports import free_port
from job_page import wait_for
from local_jobs import Jobs, Rank
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect
from web_client import a_path_of

from tftracer.errors import StorageError
from tftracer.job.agent import proxy
from tftracer.job.agent.agent import Agent
from tftracer.job.agent.discovery import hub_file
from tftracer.job.agent.proxy import THREADS
from tftracer.job.hub.hub import Hub
from tftracer.job.hub.services import JobServices
from tftracer.job.membership import port_of
from tftracer.job.routes import routes
from tftracer.job.wire.protocol import PART_BYTES
from tftracer.storage import tftrace_format as tftrace_format


def test_the_processes_of_a_job_find_each_other(jobs: Jobs) -> None:
    first, *others = jobs.start(3)
    job = first.joined(3)
    assert job["is_hub"] and [p["title"] for p in job["processes"]] == ["rank 0", "rank 1", "rank 2"]
    assert [p["place"]["launcher"] for p in job["processes"]] == ["horovod"] * 3
    beats = wait_for(lambda: all(p["steps"] > 0 and p["mean_s"] for p in first.job()["processes"]), "beats")
    assert beats and first.job()["name"].startswith("horovod-")
    elsewhere = wait_for(lambda: others[0].known_job(), "the hub's address")
    assert not elsewhere["is_hub"] and elsewhere["hub"] == first.job()["hub"]


def test_each_process_is_reached_through_the_hub(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    url = next(p["url"] for p in first.job()["processes"] if p["title"] == "rank 1")
    session = first.get(f"{url}api/session")
    assert session["session"]["id"] == second.recorder.session()["id"]
    assert first.refusal(f"{url}api/traces/99") == (404, "There is no trace 99 in this session.")
    assert json.loads(first.ask(f"{url}api/runs/1/trace", {"steps": 1})) == {"ok": True}
    page = first.ask(url).decode()
    assert "<!doctype html>" in page.lower()
    wait_for(lambda: first.get(f"{url}api/session")["runs"][0]["traces"], "the trace")
    assert first.ask(f"{url}api/traces/1/timeline")[:1] != b"{"


def live_messages(hub: Rank, title: str, count: int) -> list[dict[str, Any]]:
    """The first live messages of a process, through the hub."""
    url = next(p["url"] for p in hub.job()["processes"] if p["title"] == title)
    address = hub.server.url.partition("?")[0].replace("http", "ws", 1) + url.lstrip("/") + "api/live"

    async def receive() -> list[dict[str, Any]]:
        request = HTTPRequest(address, headers={"Authorization": f"Bearer {hub.server.token}"})
        connection = await websocket_connect(request)
        try:
            return [json.loads(await connection.read_message() or "null") for _ in range(count)]
        finally:
            connection.close()

    return asyncio.run(asyncio.wait_for(receive(), 60))


def test_live_messages_of_a_process_come_through_the_hub(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    snapshot, *changes = live_messages(first, "rank 1", 3)
    assert snapshot["type"] == "snapshot" and snapshot["payload"]["session"]["id"] == second.recorder.session()["id"]
    assert {change["type"] for change in changes} <= {"run", "session", "job"}


def test_long_live_messages_come_through_the_hub_in_pieces(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "PART_BYTES", 7)  # so that pieces end within a character, too
    first, second = jobs.start(2)
    second.recorder.add_problem("test", "Ein Zeichen: é, und noch eines: 漢")
    (snapshot,) = live_messages(first, "rank 1", 1)
    assert snapshot["payload"]["session"]["problems"] == second.recorder.session()["problems"]


def upload(first: Rank, url: str, body: bytes, length: int | None = None) -> tuple[int, Any]:
    """Uploads a session file to a process through the hub. ``length``: a Content-Length that it does not keep."""
    host = first.server.url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.putrequest("POST", f"{url}api/session/file?name=saved.tftrace")
    connection.putheader("Authorization", f"Bearer {first.server.token}")
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Content-Length", str(len(body) if length is None else length))
    connection.endheaders()
    connection.send(body)
    if length is not None:
        connection.close()
        return 0, None
    answer = connection.getresponse()
    reply = answer.status, json.loads(answer.read())
    connection.close()
    return reply


def large_session(first: Rank, url: str) -> bytes:
    """The process's own session as a file, with several parts of a record that readers skip."""
    saved = first.ask(f"{url}api/session/file")
    return saved + tftrace_format.record("of another time", {}, os.urandom(8 * PART_BYTES))


def test_a_session_is_loaded_into_a_process_through_the_hub(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    url = next(p["url"] for p in first.job()["processes"] if p["title"] == "rank 1")
    body = large_session(first, url)
    run_count = len(second.recorder.runs())
    assert upload(first, url, body)[0] == 200
    assert len(second.recorder.runs()) > run_count and len(first.recorder.runs()) == run_count
    status, answer = upload(first, url, b"no session at all" * PART_BYTES)
    assert status == 400 and answer["error"]["code"] == "bad_file"
    assert first.refusal(f"{url}api/session/file", {"x": 1})[0] == 415


def test_an_upload_that_breaks_off_leaves_no_trace(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    url = next(p["url"] for p in first.job()["processes"] if p["title"] == "rank 1")
    body, run_count = large_session(first, url), len(second.recorder.runs())
    for _ in range(THREADS + 1):
        upload(first, url, body[: len(body) // 2], length=len(body))
    assert upload(first, url, body)[0] == 200
    assert len(second.recorder.runs()) == 2 * run_count


def test_a_session_is_not_loaded_into_a_process_that_is_gone(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    url = next(p["url"] for p in first.job()["processes"] if p["title"] == "rank 1")
    body = large_session(first, url)
    second.close()
    first.joined(1, "ended")
    status, answer = upload(first, url, body)
    assert status == 404 and "rank 1 is ended" in answer["error"]["message"]


def test_half_a_session_does_not_look_like_a_whole_one(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = jobs.start(2)
    url = next(p["url"] for p in first.job()["processes"] if p["title"] == "rank 1")

    def broken() -> Iterator[bytes]:
        yield os.urandom(8 * PART_BYTES)
        raise StorageError("The disk is gone.")

    monkeypatch.setattr(second.recorder, "saved_bytes", broken)
    with pytest.raises(http.client.IncompleteRead):
        first.ask(f"{url}api/session/file")


def test_every_route_of_the_hub_refuses_a_stranger(jobs: Jobs) -> None:
    only = jobs.rank(0, 2)
    for pattern, _, _ in routes(JobServices(Hub("", ""))):
        path = a_path_of(pattern)
        url = only.server.url.partition("?")[0] + path.lstrip("/")
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)
            assert refused.value.code == 401, path
            refused.value.close()


def test_the_same_step_is_traced_on_all_and_opens_as_one_timeline(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    traced = first.trace()
    assert (traced["state"], traced["missing"]) == ("ready", {}) and len(traced["ready"]) == 2
    assert traced["step"] > 0 and set(traced["steps"].values()) == {traced["step"]}
    for rank in (first, second):
        assert [r["step"] for r in rank.recorder.runs()[0]["traces"]].count(traced["step"]) == 1
    timeline = first.packed(f"api/job/traces/{traced['id']}/timeline")
    assert timeline["nodes"] == 616 and {lane["group"] for lane in timeline["lanes"]} == {"rank 0", "rank 1"}
    analysis = first.get(f"api/job/traces/{traced['id']}/analysis")
    assert len(analysis["collectives"]) == 30 and analysis["stragglers"][0]["cause"] == "input"
    assert analysis["clocks"][1]["matches"] == 30
    assert first.get(f"api/job/traces/{traced['id']}/nodes/400")["node"] == 400
    assert first.get(f"api/job/traces/{traced['id']}/verdict")["sentences"][0]["code"] == "straggler"
    assert first.get(f"api/job/traces/{traced['id']}/ops?by=type")["rows"]


def test_what_each_ranks_trace_lacks_is_said_when_it_is_known(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    number = first.trace()["id"]
    first.packed(f"api/job/traces/{number}/timeline")  # opened before all is known
    for rank in (first, second):
        recorder = rank.recorder
        wait_for(lambda: recorder.runs()[0]["traces"][-1]["nodes"], "the trace's summary")  # noqa: B023
    (own,) = [f for f in first.recorder.runs()[0]["traces"][-1]["findings"] if f["code"] == "no_partition_graph"]
    message = f"All processes: {own['message']}"

    def told() -> bool:
        findings = first.packed(f"api/job/traces/{number}/timeline")["findings"]
        return message in [f["message"] for f in findings]

    wait_for(told, message)


def test_a_part_that_could_not_be_had_is_asked_for_again_when_its_process_is_back(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    number = first.trace()["id"]
    first.summed_up(number)  # for then the trace is put together anew, too
    second.server.close()
    first.joined(1, "ended")
    assert first.packed(f"api/job/traces/{number}/timeline")["nodes"] == 308
    agent = Agent(second.recorder, second.membership.plan, lambda: None, second.server.token)
    agent.start()
    first.joined(2)
    assert first.packed(f"api/job/traces/{number}/timeline")["nodes"] == 616
    agent.stop()


def test_usual_suspects_over_several_steps(jobs: Jobs) -> None:
    first, _ = jobs.start(2)
    last = [first.trace() for _ in range(3)][-1]
    suspects = first.get(f"api/job/traces/{last['id']}/analysis")["usual_suspects"]
    steps = sum(bool(t["ready"]) for t in first.job()["traces"])  # more than three where one was late
    assert f"held the others up in 3 of {steps} traced steps" in suspects[0]["text"]


def test_a_second_request_waits_for_the_first(jobs: Jobs) -> None:
    first, second = jobs.stepped(2)
    asked = [json.loads(first.ask("api/job/trace", {}))["id"] for _ in range(3)]
    wait_for(lambda: second.recorder.queue.requests.slow_path and first.recorder.queue.requests.slow_path, "the request")
    first.train()
    second.train()
    traces = [first.settled(number) for number in asked]
    assert [(traced["state"], len(traced["ready"])) for traced in traces] == [("ready", 2)] * 3
    steps = [traced["step"] for traced in traces]
    assert steps == sorted(set(steps)), "each has a step of its own, in the order of asking"


def test_a_subset_is_traced(jobs: Jobs) -> None:
    first, second, third = jobs.start(3)
    wanted = [p["id"] for p in first.job()["processes"] if p["title"] != "rank 1"]
    traced = first.trace(processes=wanted)
    assert traced["state"] == "ready" and set(traced["ready"]) == set(wanted)
    assert not second.recorder.runs()[0]["traces"] and third.recorder.runs()[0]["traces"]


def test_bad_requests(jobs: Jobs) -> None:
    (first,) = [jobs.rank(0, 2).train()]
    first.joined(1)
    assert first.refusal("api/job/trace", {"processes": ["nobody"]})[0] == 404
    assert first.refusal("api/job/trace", {"processes": []})[0] == 400
    assert first.refusal("api/job/trace", {"run_title": 7})[0] == 400
    assert first.refusal("api/job/traces/7")[0] == 404
    assert first.refusal("api/job/traces/x/timeline")[0] == 404
    assert first.refusal("job/processes/nobody/api/session")[0] == 404
    nothing = first.trace(run_title="no such run")
    assert nothing["state"] == "partial" and "has run no such step" in next(iter(nothing["missing"].values()))
    assert first.refusal(f"api/job/traces/{nothing['id']}/timeline")[0] == 409


def test_a_request_is_taken_back(jobs: Jobs) -> None:
    first, second = jobs.stepped(2)
    asked = json.loads(first.ask("api/job/trace", {}))
    wait_for(lambda: second.recorder.queue.requests.slow_path and first.recorder.queue.requests.slow_path, "the request")
    back = json.loads(first.ask(f"api/job/traces/{asked['id']}", method="DELETE"))
    assert back["state"] == "partial" and set(back["missing"].values()) == {"The request was taken back."}
    wait_for(lambda: not second.recorder.queue.requests.slow_path and not first.recorder.queue.requests.slow_path, "disarming")


def test_a_hub_named_by_hand_with_a_shared_token(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    first = jobs.rank(0, 2, token="shared")
    first.joined(1)
    hub_file(first.job()["name"]).unlink()
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{first.port}")
    jobs.rank(1, 2, token="shared")
    first.joined(2)


def test_processes_without_a_launcher_join_the_hub_that_they_are_given(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("TFTRACER_TOKEN", "shared")
    first = jobs.by_hand(server_port=port, hub=f"127.0.0.1:{port}").train()
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{port}")
    others = [jobs.by_hand(server_port=0).train() for _ in range(2)]
    job = first.joined(3)
    assert {p["id"] for p in job["processes"]} == {r.recorder.session()["id"] for r in jobs.ranks}
    for rank in (first, *others):
        wait_for(rank.recorder.runs, "a first step")
    traced = first.trace()
    assert (traced["state"], len(traced["ready"]), traced["step"]) == ("ready", 3, None), "each at its own pace"


def test_a_process_without_a_launcher_has_no_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = jobs.rank(0, 1)
    assert alone.refusal("api/job")[0] == 404 and alone.known_job() is None


@pytest.mark.parametrize(("port", "local", "expected"), [(9999, 2, 10001), (9999, None, 9999), (8000, 2, 8000), (0, 3, 0)])
def test_each_rank_of_a_host_has_its_port(port: int, local: int | None, expected: int) -> None:
    assert port_of(port, local) == expected
