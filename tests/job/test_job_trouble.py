"""Failures of a job's processes and network: training goes on, nothing hangs, and the page says what is wrong. Real sockets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_ports import free_port
from job_page import PATIENCE_S, wait_for
from local_jobs import Jobs, Tunnel, goes_on

from tftracer.job.agent import agent
from tftracer.job.agent.discovery import hub_file


def test_one_rank_alone_with_the_hook_is_a_job_of_one(jobs: Jobs) -> None:
    only = jobs.rank(0, 4).train()
    job = only.joined(1)
    assert job["processes"][0]["place"]["size"] == 4
    wait_for(lambda: only.recorder.runs(), "a first step")
    assert only.trace()["state"] == "ready"


def test_a_rank_without_its_hub_keeps_training(jobs: Jobs) -> None:
    lonely = jobs.rank(3, 4).train()
    wait_for(lambda: lonely.recorder.runs(), "a first step")
    assert lonely.known_job() is None
    assert lonely.refusal("api/job")[0] == 404


def test_a_rank_that_joins_late(jobs: Jobs) -> None:
    first = jobs.rank(0, 2).train()
    first.joined(1)
    wait_for(lambda: first.recorder.runs(), "a first step")
    assert len(first.trace()["ready"]) == 1
    second = jobs.rank(1, 2).train()
    first.joined(2)
    wait_for(lambda: second.recorder.runs(), "a first step")
    late = first.trace()
    assert (late["state"], len(late["ready"])) == ("ready", 2)


def test_a_rank_that_ends_is_shown_as_ended(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    second.close()
    (gone,) = [p for p in first.joined(1, "ended")["processes"] if p["state"] == "ended"]
    status, why = first.refusal(gone["url"] + "api/session")
    assert status == 404 and "rank 1 is ended" in why


CHILD = """
import sys, threading
from pathlib import Path
sys.path.insert(0, {tests!r})
from local_jobs import Rank
from tftracer.server import TracingServer
rank = Rank(TracingServer(server_port=0, spool_dir={spool!r}), {rank})
rank.step()
rank.recorder.flush()
print("ready", flush=True)
threading.Event().wait()
"""


@contextmanager
def child(folder: Path, rank: int) -> Iterator[subprocess.Popen[str]]:
    """A rank that is a process of its own, so that it can be killed."""
    environ = {**os.environ, "HOROVOD_RANK": str(rank), "HOROVOD_LOCAL_RANK": str(rank)}
    source = CHILD.format(tests=str(Path(__file__).parents[1]), spool=str(folder / f"spool{rank}"), rank=rank)
    with subprocess.Popen([sys.executable, "-c", source], env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_a_rank_killed_while_it_traces(jobs: Jobs, tmp_path: Path) -> None:
    first = jobs.rank(0, 2)
    first.step()
    with child(tmp_path, 1) as other:
        first.joined(2)
        asked = json.loads(first.ask("api/job/trace", {}))
        armed = wait_for(lambda: first.get(f"api/job/traces/{asked['id']}")["step"], "the step")
        wait_for(lambda: first.recorder.queue.requests.slow_path, "the request")
        while next(iter(first.recorder.finished_steps().values())) < armed:
            first.step()
        wait_for(lambda: first.get(f"api/job/traces/{asked['id']}")["ready"], "rank 0's part")
        other.send_signal(signal.SIGKILL)
    traced = first.settled(asked["id"])
    assert traced["state"] == "partial" and len(traced["ready"]) == 1
    assert "lost before it had traced" in next(iter(traced["missing"].values()))
    first.joined(1, "lost")
    timeline = first.packed(f"api/job/traces/{asked['id']}/timeline")
    assert timeline["nodes"] == 308 and "missing_ranks" in {f["code"] for f in timeline["findings"]}


def test_two_jobs_on_one_host_do_not_meet(jobs: Jobs) -> None:
    one, other = jobs.start(2, job=1), jobs.start(2, job=2)
    names = set()
    for first, second in (one, other):
        job = first.joined(2)
        names.add(job["name"])
        assert {p["id"] for p in job["processes"]} == {r.recorder.session()["id"] for r in (first, second)}
    assert len(names) == 2


def test_a_hub_whose_port_is_in_use(jobs: Jobs) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        first = jobs.rank(0, 2, server_port=taken.getsockname()[1])
        jobs.rank(1, 2)
        assert first.port != taken.getsockname()[1]
        first.joined(2)


def test_a_wrong_token_is_refused_and_reported(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    first = jobs.rank(0, 2, token="right")
    first.joined(1)
    monkeypatch.setenv("TFTRACER_HUB", first.job()["hub"])
    stranger = jobs.rank(1, 2, token="wrong")
    problems = wait_for(lambda: [p for p in stranger.recorder.session()["problems"] if p["code"] == "job"], "the refusal")
    assert "another token" in problems[0]["message"] and "TFTRACER_TOKEN" in problems[0]["message"]
    assert len(first.job()["processes"]) == 1
    stranger.step()


def test_a_hub_that_does_not_answer_is_reported_until_it_does(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "REPORT_AFTER_S", 0.0)
    port = free_port()
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{port}")
    second = jobs.rank(1, 2, token="shared")
    (problem,) = wait_for(lambda: second.recorder.session()["problems"], "the word")
    assert f"No hub answers at 127.0.0.1:{port}" in problem["message"] and "server_ip" in problem["message"]
    first = jobs.rank(0, 2, token="shared", server_port=port)
    first.joined(2)
    wait_for(lambda: not second.recorder.session()["problems"], "peace")


def test_a_tunnel_leads_to_the_page_and_to_the_hub(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with ssh -L and -R: another port, another name. If it breaks, training goes on; then the rank rejoins."""
    port = free_port()
    monkeypatch.setenv("TFTRACER_ALLOWED_HOSTS", f"localhost:{port}")
    first = jobs.rank(0, 2, token="shared").train()
    first.joined(1)
    hub_file(first.job()["name"]).unlink()
    tunnel = Tunnel(first.port, port)
    asked = urllib.request.Request(f"http://localhost:{tunnel.port}/job", headers={"Authorization": "Bearer shared"})
    with urllib.request.urlopen(asked, timeout=60) as page:
        assert b"<!doctype html>" in page.read().lower()
    monkeypatch.setenv("TFTRACER_HUB", f"localhost:{tunnel.port}")
    second = jobs.rank(1, 2, token="shared").train()
    first.joined(2)
    tunnel.cut()
    first.joined(1, "lost")
    goes_on(first)
    goes_on(second)
    again = Tunnel(first.port, tunnel.port)
    first.joined(2)
    assert len(first.trace()["ready"]) == 2
    again.cut()


def test_a_hub_that_is_killed(jobs: Jobs, tmp_path: Path) -> None:
    second = jobs.rank(1, 2).train()
    hubs = []
    for _ in range(2):
        with child(tmp_path, 0) as hub:
            hubs.append(wait_for(second.known_job, "the hub")["hub"])
            hub.send_signal(signal.SIGKILL)
        wait_for(lambda: second.known_job() is None, "the loss of the hub")
        goes_on(second)
    assert len(set(hubs)) == 2, "the hub that was started anew is found"
    assert not second.recorder.session()["problems"]


def test_a_hub_that_goes_and_comes_back(jobs: Jobs) -> None:
    first, second = jobs.start(2)
    first.server.stop_web_server()
    wait_for(lambda: second.known_job() is None, "the loss of the hub")
    goes_on(second)
    first.server.start_web_server()
    first.joined(2)
    assert len(first.trace()["ready"]) == 2


def test_a_nonsense_hub_does_not_end_a_training(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_HUB", "no host at all")
    rank = jobs.rank(0, 2)
    assert "neither host:port nor the URL" in rank.recorder.session()["problems"][0]["message"]
    rank.step()


HANGING = """
import os, socket, threading
os.environ.update(TFTRACER_HUB="hanging:9999", TFTRACER_TOKEN="shared", TFTRACER_HELPER="off")
asked, resolve = threading.Event(), socket.getaddrinfo
def look_up(host, *arguments, **named):
    if host != "hanging":
        return resolve(host, *arguments, **named)
    asked.set()
    threading.Event().wait()
socket.getaddrinfo = look_up
from tftracer.server import TracingServer
server = TracingServer(server_port=0, spool_dir={spool!r})
assert asked.wait({patience})
"""


def test_a_name_server_that_does_not_answer_does_not_delay_the_end(jobs: Jobs, tmp_path: Path) -> None:
    source = HANGING.format(spool=str(tmp_path / "spool"), patience=PATIENCE_S)
    assert subprocess.run([sys.executable, "-c", source], timeout=PATIENCE_S).returncode == 0


def test_a_stopped_hub_does_not_delay_the_end(jobs: Jobs, tmp_path: Path) -> None:
    second = jobs.rank(1, 2)
    with child(tmp_path, 0) as hub:
        wait_for(second.known_job, "the hub")
        hub.send_signal(signal.SIGSTOP)
        second.close()
        assert not second.server.url


def test_a_stopped_process_does_not_delay_the_hubs_end(jobs: Jobs, tmp_path: Path) -> None:
    first = jobs.rank(0, 2)
    with child(tmp_path, 1) as other:
        first.joined(2)
        other.send_signal(signal.SIGSTOP)
        first.close()
        assert not first.server.url
