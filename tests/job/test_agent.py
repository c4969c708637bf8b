"""What an agent sends to its hub, and what it does when the hub falls silent: a fake hub on real sockets."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from job_page import PATIENCE_S, wait_for
from local_jobs import Jobs
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.websocket import WebSocketHandler

from tftracer.job.agent import connection as hub_connection
from tftracer.job.agent.heartbeat import machine_clock
from tftracer.job.wire import protocol
from tftracer.job.wire.handshake import VERSION, Channel, Greeting, Keys, new_nonce
from tftracer.job.wire.protocol import Message

TOKEN = "shared"


class FakeHub(WebSocketHandler):
    """Accepts every agent. ``answers``: answers heartbeats, too. For each entry in ``deaths`` it closes one after its hello."""

    def initialize(self, heard: queue.SimpleQueue[Message], answers: bool, deaths: list[None]) -> None:
        self.heard, self.answers, self.deaths, self.nonce = heard, answers, deaths, new_nonce()
        self.channel: Channel | None = None

    def say(self, kind: str, **fields: Any) -> None:
        data = protocol.pack(kind, **fields)
        self.write_message(data if self.channel is None else self.channel.seal(data), binary=True)

    def open(self, *arguments: str, **named: str) -> None:
        self.say("hello", version=VERSION, job="played", id="hub", nonce=self.nonce)
        if self.deaths:
            self.deaths.pop()
            self.close()

    def on_message(self, data: str | bytes) -> None:
        message = protocol.unpack(data if self.channel is None else self.channel.open(data))
        self.heard.put(message)
        if message["t"] == "join" and self.ws_connection and not self.ws_connection.is_closing():
            keys = Keys(TOKEN, Greeting("played", "hub", self.nonce, message["nonce"], protocol.endpoint(message)))
            self.say("welcome", proof=keys.proof("hub"))
            self.channel = keys.channel("hub")
            self.say("pace", interval_s=0.1)
        elif self.answers and message.get("answer"):
            self.say("pace", interval_s=0.1)


class RunningHub:
    """The fake hub on a thread of its own."""

    def __init__(self, answers: bool, deaths: int = 0) -> None:
        self.heard: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.deaths: list[None] = [None] * deaths
        self._ready, self.answers = threading.Event(), answers
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        listening, self.port = bind_unused_port()
        settings = {"heard": self.heard, "answers": self.answers, "deaths": self.deaths}
        server = HTTPServer(web.Application([("/api/job/agents", FakeHub, settings)], log_function=lambda handler: None))
        server.add_socket(listening)
        self._ready.set()
        await self._end.wait()
        server.stop()
        await server.close_all_connections()

    def next(self, kind: str) -> Message:
        while (message := self.heard.get(timeout=PATIENCE_S))["t"] != kind:
            pass
        return message

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE_S)


@pytest.fixture(params=[False, True], ids=["silent", "answering"])
def hub(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHub]:
    running = RunningHub(answers=request.param)
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{running.port}")
    monkeypatch.setenv("TFTRACER_JOB", "played")
    yield running
    running.close()


def without_process(beat: Message) -> Message | None:
    return None if "process" in beat else beat


def test_beats_are_sums_and_a_silent_hub_is_left(jobs: Jobs, hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_connection, "SILENCE_S", 1.0)
    rank = jobs.rank(1, 2, token=TOKEN)
    assert "process" not in hub.next("join"), "who it is is told to a hub that has proved itself"
    joined = hub.next("beat")["process"]
    assert joined["title"] == "rank 1" and joined["place"]["rank"] == 1 and joined["clock"] == machine_clock(joined["host"])
    rank.step()
    rank.recorder.flush()
    beat: Message = wait_for(lambda: without_process(hub.next("beat")), "plain sums")
    assert set(beat) - {"answer"} == {
        "t",
        "steps",
        "steps_per_s",
        "mean_s",
        "between_steps_s",
        "traces",
        "slow_steps",
        "slow_text",
        "time_s",
        "problem",
    }
    wait_for(lambda: hub.next("beat")["steps"] == 1, "the step")
    wait_for(lambda: hub.next("beat").get("answer"), "the question whether the hub is there")
    if hub.answers:
        for _ in range(30):  # three times the silence
            hub.next("beat")
    else:
        hub.next("join")
        assert hub.next("beat")["process"]["id"] == joined["id"], "it comes back"
    rank.step()


def test_a_rank_that_becomes_known_later_is_sent_again(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningHub(answers=True)
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{running.port}")
    monkeypatch.setenv("TFTRACER_JOB", "played")
    rank = jobs.rank(1, 2, token=TOKEN)
    running.next("beat")
    session = rank.recorder.session()
    moved = {**session, "place": {**session["place"], "rank": 5}}
    monkeypatch.setattr(rank.recorder, "session", lambda: moved)
    process: Message = wait_for(lambda: running.next("beat").get("process"), "the new place")
    assert process["place"]["rank"] == 5 and process["title"] == "rank 5"
    wait_for(lambda: "process" not in running.next("beat"), "plain sums")
    monkeypatch.undo()
    running.close()


def test_a_hub_that_dies_between_its_hello_and_the_answer_is_tried_again(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningHub(answers=True, deaths=3)
    monkeypatch.setenv("TFTRACER_HUB", f"127.0.0.1:{running.port}")
    monkeypatch.setenv("TFTRACER_JOB", "played")
    jobs.rank(1, 2, token=TOKEN)
    running.next("beat")
    assert not running.deaths
    running.close()
