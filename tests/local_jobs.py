"""Jobs of several TracingServers in one process: real sockets, real recorders, no TensorFlow.

A ``Rank`` makes steps as the hook does, through the same queue; its traced steps have the RunMetadata of a real Horovod rank.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from job_page import PATIENCE_S, JobPage, wait_for

from tftracer.capture.recorded_steps import Capture, SessionFacts
from tftracer.capture.traces.requests import Claim
from tftracer.job.hub import step_request
from tftracer.server import TracingServer

DATA = Path(__file__).parent / "data"


def horovod_environment(monkeypatch: pytest.MonkeyPatch, rank: int, size: int, job: int = 1) -> None:
    values = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "GLOO_RENDEZVOUS_PORT": 4000 + job}
    for name, value in values.items():
        monkeypatch.setenv(f"HOROVOD_{name}", str(value))
    monkeypatch.setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1")


class Rank(JobPage):
    """One process of a job, and its page. ``step`` makes a step; ``train`` goes on making them on a thread."""

    def __init__(self, server: TracingServer, rank: int) -> None:
        self.server, self.rank = server, rank
        self.recorder, self.membership = server.recorder, server.job
        self.raw = (DATA / f"horovod_rank{rank % 2}_tf2.15_cpu.pb").read_bytes()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self, seconds: float = 0.001, run: str = "train_op") -> None:
        queue = self.recorder.queue
        claim = queue.claim(run, None, None) if queue.requests.slow_path else None
        start = time.perf_counter_ns()
        self._stop.wait(seconds)
        end = time.perf_counter_ns()
        capture = None
        if isinstance(claim, Claim):
            queue.requests.complete(claim)
            capture = queue.backlog.add(Capture(self.raw, claim.asked_by, "SOFTWARE_TRACE", False, SessionFacts()))
        queue.events.append((run, None, None, start, end, 1, capture))
        if capture is not None:
            queue.arrived.set()

    def train(self) -> Rank:
        def loop() -> None:
            while not self._stop.is_set():
                self.step()

        self._thread = threading.Thread(target=loop, daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
        self.server.close()

    def address(self) -> tuple[str, str]:
        return self.server.url.partition("?")[0], self.server.token

    @property
    def port(self) -> int:
        """Of its page."""
        return urlsplit(self.server.url).port or 0

    def summed_up(self, number: int) -> None:
        """Waits until this process, the hub, knows what each rank's trace of a step lacks."""
        records = self.membership.hub.trace(number).records
        wait_for(lambda: all(record["nodes"] for record in records.values()), "the traces' summaries")

    def known_job(self) -> Any:
        """The job; None while this process is in none."""
        try:
            return self.job()
        except urllib.error.HTTPError as error:
            with error:
                assert error.code == 404
            return None

    def joined(self, count: int, state: str = "alive") -> Any:
        """The job, as soon as so many of its processes are in that state."""

        def look() -> Any:
            job = self.known_job()
            return job if job and sum(p["state"] == state for p in job["processes"]) == count else None

        return wait_for(look, f"{count} processes {state}")


def goes_on(rank: Rank) -> None:
    """Waits until the rank has made more steps."""

    def steps() -> int:
        return sum(run["steps"] for run in rank.recorder.runs())

    before = steps()
    wait_for(lambda: steps() > before, "training to go on")


class Jobs:
    """Makes ranks, and ends them after the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.monkeypatch, self.folder = monkeypatch, folder
        self.ranks: list[Rank] = []

    def rank(self, rank: int, size: int, job: int = 1, **options: Any) -> Rank:
        horovod_environment(self.monkeypatch, rank, size, job)
        options.setdefault("server_port", 0)
        server = TracingServer(spool_dir=self.folder / "spool", **options)
        self.ranks.append(Rank(server, rank))
        return self.ranks[-1]

    def stepped(self, size: int) -> list[Rank]:
        """All ranks of a job after a step of each, known to rank 0."""
        made = [self.rank(rank, size) for rank in range(size)]
        for rank in made:
            rank.step()
            rank.recorder.flush()
        made[0].joined(size)
        return made

    def by_hand(self, **options: Any) -> Rank:
        """A process that stands where the environment says, if it says so; those of a job carry either rank's trace, in turn."""
        server = TracingServer(spool_dir=self.folder / "spool", **options)
        self.ranks.append(Rank(server, len(self.ranks)))
        return self.ranks[-1]

    def start(self, size: int, job: int = 1, **options: Any) -> list[Rank]:
        """All ranks of a job, training, and known to rank 0."""
        made = [self.rank(rank, size, job, **options).train() for rank in range(size)]
        made[0].joined(size)
        for rank in made:
            wait_for(rank.recorder.runs, "a first step")
        return made

    def close(self) -> None:
        for rank in self.ranks:
            rank.close()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Jobs]:
    """No job of another's in sight, and all ranks ended after the test. They share this process: each may take its time."""
    monkeypatch.setattr(step_request, "ANSWER_S", PATIENCE_S)
    monkeypatch.setenv("TFTRACER_HUB_DIR", str(tmp_path / "hubs"))
    for name in ("TF_CONFIG", "TFTRACER_HUB", "TFTRACER_TOKEN", "TFTRACER_JOB"):
        monkeypatch.delenv(name, raising=False)
    made = Jobs(monkeypatch, tmp_path)
    yield made
    made.close()


class Tunnel:
    """What ``ssh -L`` does: a port of this host that leads to another. ``cut`` breaks it, with all that runs through it."""

    def __init__(self, to: int, port: int = 0) -> None:
        self._to, self._open = to, list[socket.socket]()
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listening.getsockname()[1])
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._listening.accept()[0]
                self._open.append(near)
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open.append(far)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join(PATIENCE_S)  # or it would open another one
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
