"""The hub's end of a connection: which agents may join, and what strangers and broken agents get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from local_jobs import Jobs, Rank
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tftracer.errors import FormatError
from tftracer.job.wire import protocol
from tftracer.job.wire.handshake import Channel, Endpoint, Greeting, Keys, new_nonce
from tftracer.job.wire.protocol import Message

HEADERS = {"Authorization": "tftracer-agent"}
PATIENCE_S = 60


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Rank]:
    monkeypatch.setenv("TFTRACER_HUB_DIR", str(tmp_path / "hubs"))
    jobs = Jobs(monkeypatch, tmp_path)
    made = jobs.rank(0, 2, token="secret")
    made.joined(1)
    yield made
    jobs.close()


class FakeAgent:
    """An agent whose messages the test chooses. By default it states the hub's real address."""

    def __init__(self, connection: WebSocketClientConnection, hello: Message, port: int) -> None:
        self.connection, self.hello, self.nonce = connection, hello, new_nonce()
        self.endpoint = Endpoint(f"127.0.0.1:{port}", f"127.0.0.1:{port}")
        self.channel: Channel | None = None

    async def hear(self) -> Message | None:
        data = await self.connection.read_message()
        if data is None:
            return None
        return protocol.unpack(data if self.channel is None else self.channel.open(data))

    async def say(self, data: str | bytes) -> None:
        await self.connection.write_message(data, binary=isinstance(data, bytes))

    def keys(self, token: str, job: str) -> Keys:
        return Keys(token, Greeting(job, self.hello["id"], self.hello["nonce"], self.nonce, self.endpoint))

    async def join(self, token: str = "secret", **changes: Any) -> Message | None:
        keys = self.keys(token, str(changes.get("job", self.hello["job"])))
        fields = {"job": self.hello["job"], "nonce": self.nonce, **asdict(self.endpoint), "proof": keys.proof("agent"), **changes}
        await self.say(protocol.pack("join", **fields))
        answer = await self.hear()
        if answer is not None and answer["t"] == "welcome":
            assert keys.proves("hub", answer["proof"]) and not keys.proves("agent", answer["proof"])
            self.channel = keys.channel("agent")
        return answer

    async def tell(self, kind: str, **fields: Any) -> None:
        assert self.channel is not None
        await self.say(self.channel.seal(protocol.pack(kind, **fields)))

    async def enter(self, **process: Any) -> Message | None:
        """Joins, and says who it is."""
        assert (await self.join())["t"] == "welcome"
        await self.tell("beat", process={"id": "played", "pid": 7, **process})
        return await self.hear()


def at(hub: Rank, play: Callable[[FakeAgent], Awaitable[Any]], **headers: str) -> Any:
    url = hub.server.url.partition("?")[0].replace("http", "ws", 1) + "api/job/agents"

    async def agent() -> Any:
        connection = await websocket_connect(HTTPRequest(url, headers=headers or HEADERS))
        try:
            hello = protocol.unpack(await connection.read_message())
            return await asyncio.wait_for(play(FakeAgent(connection, hello, urlsplit(hub.server.url).port or 0)), PATIENCE_S)
        finally:
            connection.close()

    return asyncio.run(agent())


def titles(hub: Rank) -> list[str]:
    return [p["title"] for p in hub.job()["processes"]]


def test_an_agent_with_the_token_joins_and_the_hub_proves_itself(hub: Rank) -> None:
    async def play(agent: FakeAgent) -> None:
        pace = await agent.enter()
        assert pace is not None and pace["t"] == "pace" and pace["interval_s"] >= 1

    at(hub, play)
    assert "process 7" in titles(hub)


@pytest.mark.parametrize(
    ("token", "changes", "code"),
    [
        ("wrong", {}, "wrong_token"),
        ("secret", {"proof": b"0" * 32}, "wrong_token"),
        ("secret", {"proof": 7}, "wrong_token"),
        ("secret", {"peer": "127.0.0.1:1"}, "wrong_token"),
        ("secret", {"job": "another"}, "another_job"),
    ],
)
def test_an_agent_without_it_is_refused_with_a_reason(hub: Rank, token: str, changes: dict[str, Any], code: str) -> None:
    async def play(agent: FakeAgent) -> None:
        answer = await agent.join(token, **changes)
        assert answer is not None and (answer["t"], answer["code"]) == ("refused", code)
        assert "proof" not in answer and await agent.hear() is None

    at(hub, play)
    assert titles(hub) == ["rank 0"]


@pytest.mark.parametrize("id", ["", "../../x", "x" * 65])
def test_a_process_without_a_proper_id_is_refused(hub: Rank, id: str) -> None:
    async def play(agent: FakeAgent) -> None:
        assert await agent.enter(id=id) == {"t": "refused", "code": "full"}
        assert await agent.hear() is None

    at(hub, play)
    assert titles(hub) == ["rank 0"]


@pytest.mark.parametrize(
    ("endpoint", "answer"),
    [
        (Endpoint("hub:1", "10.0.0.1:1"), "refused"),
        (Endpoint("127.0.0.1:{port}", "10.0.0.1:{port}"), "refused"),
        (Endpoint("hub:1", "127.0.0.1:{port}"), "welcome"),
        (Endpoint("127.0.0.1:{port}", "127.0.0.1:{port}", "00" * 32), "refused"),
    ],
)
def test_the_address_must_be_the_hubs_and_the_certificate_too(hub: Rank, endpoint: Endpoint, answer: str) -> None:
    async def play(agent: FakeAgent) -> None:
        port = agent.endpoint.peer.rpartition(":")[2]
        agent.endpoint = Endpoint(
            endpoint.dialled.format(port=port), endpoint.peer.format(port=port), certificate=endpoint.certificate
        )
        assert (await agent.join() or {})["t"] == answer

    at(hub, play)


@pytest.mark.parametrize(
    "said", [b"", b"\xc1", b"\x80", "text", protocol.pack("beat"), protocol.pack("join"), b"\xc6\xff\xff\xff\xff"]
)
def test_nonsense_ends_the_connection(hub: Rank, said: str | bytes) -> None:
    async def play(agent: FakeAgent) -> Any:
        await agent.say(said)
        return await agent.hear()

    assert at(hub, play) is None
    assert titles(hub) == ["rank 0"]


def test_a_long_message_before_the_greeting_ends_the_connection(hub: Rank) -> None:
    async def play(agent: FakeAgent) -> Any:
        await agent.say(protocol.pack("join", nonce="x" * (protocol.STRANGER_BYTES + 1)))
        return await agent.hear()

    assert at(hub, play) is None


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer secret"}, {"X": "y"}, {"Authorization": "tftracer-agent", "Origin": "http://x"}]
)
def test_browsers_and_other_clients_are_refused_before_the_greeting(hub: Rank, headers: dict[str, str]) -> None:
    async def never(agent: FakeAgent) -> None:
        raise AssertionError("let in")

    with pytest.raises(HTTPClientError) as refused:
        at(hub, never, **headers)
    assert refused.value.code in (401, 403)


def test_invalid_messages_of_a_member_do_no_harm(hub: Rank) -> None:
    async def play(agent: FakeAgent) -> None:
        await agent.enter()
        nonsense: list[tuple[str, Message]] = [
            ("beat", {"process": 7}),
            ("beat", {"process": {"steps": -1, "mean_s": "x", "place": 3, "title": "odd"}}),
            ("traced", {"job_trace": 99, "record": 7}),
            ("part", {"request": 99, "data": b"x"}),
            ("steps", {"job_trace": "x"}),
            ("unheard of", {}),
        ]
        for kind, fields in nonsense:
            await agent.tell(kind, **fields)

    at(hub, play)
    (odd,) = [p for p in hub.joined(1, "lost")["processes"] if p["state"] == "lost"]
    assert (odd["title"], odd["steps"], odd["mean_s"]) == ("odd", 0, None)


def test_a_process_that_reconnects_is_the_same_one(hub: Rank) -> None:
    async def play(agent: FakeAgent) -> None:
        await agent.enter()

    at(hub, play)
    hub.joined(1, "lost")
    at(hub, play)
    assert titles(hub).count("process 7") == 1


@pytest.mark.parametrize("data", ["text", None, b"\x93\x01\x02\x03", b"\x81\xa1t\x07", b"\x81\x01\x02"])
def test_what_is_no_message(data: Any) -> None:
    with pytest.raises(FormatError):
        protocol.unpack(data)


def test_fields_are_taken_as_what_they_must_be() -> None:
    message: Message = {"t": "x", "a": "text", "b": -1, "c": True, "d": 1.5, "e": float("nan"), "f": 3}
    assert (protocol.text(message, "a", 2), protocol.text(message, "b")) == ("te", "")
    assert [protocol.number(message, key) for key in "abcdf"] == [0, 0, 0, 0, 3]
    assert [protocol.seconds(message, key) for key in "abcdef"] == [None, None, None, 1.5, None, 3.0]
