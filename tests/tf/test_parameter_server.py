"""A real parameter server and two workers on loopback: one page, one step of each as one timeline, bytes and waits by link."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_ports
from job_page import PATIENCE_S, JobPage, wait_for

from tftracer.trace.decode.device_names import parse_device

LAYERS = 6  # of ps_task.py
TASK = Path(__file__).with_name("ps_task.py")


def ends(link: Any) -> tuple[str, str]:
    return parse_device(link["source"]).job, parse_device(link["destination"]).job


class Job(JobPage):
    """One server, two workers, the second slow by its input or by a bigger matmul; worker 0's page is the job's."""

    def __init__(self, folder: Path, slow: str) -> None:
        ports = free_ports(3)
        self.folder, self.slow = folder, slow
        self.cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{port}" for port in ports[1:]]}
        self.started = {"ps0": self.start("ps", 0), "worker0": self.start("worker", 0)}
        super().__init__(self.wait_for(lambda: self.read("worker0")))
        self.wait_for(lambda: self.get("api/session")["runs"])
        self.started["worker1"] = self.start("worker", 1)  # a worker that finds no model waits half a minute

    def start(self, job: str, task: int) -> subprocess.Popen[bytes]:
        config = json.dumps({"cluster": self.cluster, "task": {"type": job, "index": task}})
        own = {"TF_CONFIG": config, "TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": str(self.folder / "spool")}
        environment = {**os.environ, **own, "TFTRACER_HUB_DIR": str(self.folder / "hubs")}
        with (self.folder / f"{job}{task}.log").open("wb") as log:
            arguments = [sys.executable, str(TASK), str(self.folder), "--slow", self.slow]
            return subprocess.Popen(arguments, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def runs(self) -> bool:
        return all(process.poll() is None for process in self.started.values())

    def read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def logs(self) -> str:
        return "\n".join(self.read(f"{name}.log") for name in self.started)

    def wait_for(self, condition: Callable[[], Any]) -> Any:
        """As long as all tasks run."""

        def look() -> Any:
            assert self.runs(), self.logs()
            return condition()

        return wait_for(look, self.logs)

    def whole_trace(self) -> Any:
        """A step of each worker with all that they and the server received.

        TensorFlow does not wait until the server records what it receives: some steps lack some of it, and then say so.
        """

        def look() -> Any:
            trace = self.trace()
            analysis = self.get(f"api/job/traces/{trace['id']}/analysis")
            messages = sorted((*ends(link), link["messages"]) for link in analysis["links"])
            whole = messages == [("ps", "worker", LAYERS)] * 2 + [("worker", "ps", LAYERS + 1)] * 2
            assert whole != ("unrecorded_transfers" in {f["code"] for f in analysis["findings"]}), (
                messages,
                analysis["findings"],
            )
            return trace if whole else None

        return self.wait_for(look)

    def stop(self) -> None:
        (self.folder / "stop").touch()
        try:
            assert [self.started[w].wait(PATIENCE_S) for w in ("worker0", "worker1")] == [0, 0], self.logs()
        finally:
            for process in self.started.values():
                process.kill()
                process.wait()


@pytest.fixture(scope="module", params=["input", "compute"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    made = Job(tmp_path_factory.mktemp("ps"), request.param)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def traced(job: Job) -> Any:
    """A step of each worker."""
    job.wait_for(lambda: sum(p["steps"] > 3 for p in job.job()["processes"]) == 2)
    return job.whole_trace()


def test_all_tasks_are_on_one_page(job: Job) -> None:
    processes = job.wait_for(lambda: listed if len(listed := job.job()["processes"]) == 3 else None)
    assert [p["title"] for p in processes] == ["worker/0", "worker/1", "ps/0"]
    assert {p["place"]["role"] for p in processes} == {"worker", "ps"}


def test_each_worker_traces_a_step_of_its_own(job: Job, traced: Any) -> None:
    titles = {p["id"]: p["title"] for p in job.job()["processes"]}
    assert {titles[p] for p in traced["ready"]} == {"worker/0", "worker/1"}
    assert traced["step"] is None and all(traced["steps"][p] > 0 for p in traced["ready"])
    assert (traced["state"], traced["missing"]) == ("ready", {})  # the server was not asked: it has no steps of its own


def test_the_servers_lanes_stand_beside_the_workers(job: Job, traced: Any) -> None:
    timeline = job.packed(f"api/job/traces/{traced['id']}/timeline")
    assert {lane["group"] for lane in timeline["lanes"]} == {"worker/0", "worker/1", "ps/0"}
    titles = {lane["title"] for lane in timeline["lanes"] if lane["group"] == "ps/0"}
    assert any("for worker/0" in title for title in titles) and any("for worker/1" in title for title in titles)


def test_bytes_and_waits_of_each_link_and_the_slow_worker(job: Job, traced: Any) -> None:
    titles = {p["id"]: p["title"] for p in job.job()["processes"]}
    for _ in range(5):  # where everything has to wait for the processor, the other worker's step may take as long
        analysis = job.get(f"api/job/traces/{traced['id']}/analysis")
        slow = analysis["stragglers"][0]
        if (titles[slow["process"]], slow["cause"]) == ("worker/1", job.slow):
            break
        traced = job.whole_trace()
    links = {ends(link): link for link in analysis["links"]}
    assert links["ps", "worker"]["bytes"] >= LAYERS * 64 * 64 * 4 and links["worker", "ps"]["bytes"] > 0
    assert any("ReadVariableOp" in t["tensor"] and t["bytes"] == 64 * 64 * 4 for t in analysis["tensors"])
    assert any(t["waited_ns"] > 0 for t in analysis["tensors"])
    assert (titles[slow["process"]], slow["cause"]) == ("worker/1", job.slow), analysis["stragglers"]
    said = {"input": "waiting for input", "compute": "it computed"}
    assert slow["slower_by_ns"] > 0 and said[job.slow] in slow["text"]
    suspect = analysis["usual_suspects"][0]
    assert (titles[suspect["process"]], suspect["cause"]) == ("worker/1", job.slow)


def test_the_workers_clocks_are_tied_through_the_server(job: Job, traced: Any) -> None:
    clocks = job.get(f"api/job/traces/{traced['id']}/analysis")["clocks"]
    assert len(clocks) == 3 and all(clock["matches"] > 0 for clock in clocks[1:])
    for clock in clocks[1:]:  # one machine, one clock
        assert abs(clock["offset_ns"]) < max(2 * clock["uncertainty_ns"], 20e6)
