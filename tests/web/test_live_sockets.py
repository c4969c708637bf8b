"""The live WebSocket: a snapshot first, then changes; never more than ten a second, and nobody is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fake_source import FakeSource, a_run, a_session, a_trace
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect
from web_client import Client

from tftracer.contract.live import LiveMessage
from tftracer.web import live_feed, live_sockets

pytestmark = pytest.mark.usefixtures("no_stray_logs")
WAIT_S = 60


@contextlib.asynccontextmanager
async def looking_on(client: Client, **headers: str) -> AsyncIterator[WebSocketClientConnection]:
    sent = {"Authorization": f"Bearer {client.server.token}", **headers}
    url = f"ws://{client.host}/api/live"
    connection = await websocket_connect(HTTPRequest(url, headers={k: v for k, v in sent.items() if v}))
    try:
        yield connection
    finally:
        connection.close()


async def next_message(connection: WebSocketClientConnection) -> Any:
    text = await asyncio.wait_for(connection.read_message(), WAIT_S)
    return None if text is None else json.loads(text)


async def next_of(connection: WebSocketClientConnection, kind: str) -> Any:
    while True:
        message = await next_message(connection)
        assert message is not None, f"closed before a {kind} came"
        if message["type"] == kind:
            return message["payload"]


def run_update(number: int, count: int) -> LiveMessage:
    payload: Any = {**a_run(number, []), "steps": count}
    del payload["traces"]
    return {"type": "run", "payload": payload}


def test_first_a_snapshot_then_what_changes(client: Client, source: FakeSource) -> None:
    async def look() -> None:
        async with looking_on(client) as connection:
            first = await next_message(connection)
            assert first["type"] == "snapshot"
            assert set(first["payload"]) == {"session", "runs", "job"}
            assert first["payload"]["session"] == a_session()
            (tell,) = source.listeners
            tell({"type": "trace", "payload": a_trace(2, 10)})
            assert (await next_of(connection, "trace"))["id"] == 2
            tell(run_update(1, 77))
            assert (await next_of(connection, "run"))["steps"] == 77

    asyncio.run(look())


def test_changes_of_one_thing_come_as_the_last_of_them(client: Client, source: FakeSource) -> None:
    """Ten thousand changes cost a handful of messages, and the last is what arrives."""

    async def look() -> None:
        async with looking_on(client) as connection:
            await next_of(connection, "snapshot")
            (tell,) = source.listeners
            for count in range(10_000):
                tell(run_update(1, count))
            came: list[int] = []
            while not came or came[-1] != 9_999:
                came.append((await next_of(connection, "run"))["steps"])
            assert came == sorted(came)
            assert len(came) < 1000

    asyncio.run(look())


def test_a_new_session_is_a_new_snapshot(client: Client, source: FakeSource) -> None:
    async def look() -> None:
        async with looking_on(client) as connection:
            await next_of(connection, "snapshot")
            body: dict[str, Any] = {"body": b"file", "Content_Type": "application/octet-stream"}
            await asyncio.to_thread(client, "POST", "/api/session/file", **body)
            await next_of(connection, "snapshot")

    asyncio.run(look())


def test_the_end_is_announced(client: Client) -> None:
    async def look() -> None:
        async with looking_on(client) as connection:
            await next_of(connection, "snapshot")
            await asyncio.to_thread(client.server.stop)
            assert (await next_of(connection, "closing"))["code"] == "stopped"
            assert await next_message(connection) is None

    asyncio.run(look())


def test_many_look_on_and_all_see_it(client: Client, source: FakeSource) -> None:
    async def look() -> None:
        async with contextlib.AsyncExitStack() as stack:
            all_of_them = [await stack.enter_async_context(looking_on(client)) for _ in range(30)]
            await asyncio.gather(*(next_of(one, "snapshot") for one in all_of_them))
            source.listeners[0]({"type": "trace", "payload": a_trace(3, 10)})
            assert {record["id"] for record in await asyncio.gather(*(next_of(one, "trace") for one in all_of_them))} == {3}

    asyncio.run(look())


def test_there_is_a_limit_to_how_many(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "MAX_BROWSERS", 1)

    async def look() -> None:
        async with looking_on(client) as connection:
            await next_of(connection, "snapshot")
            with pytest.raises(HTTPClientError, match="503"):
                async with looking_on(client):
                    raise AssertionError("let in")

    asyncio.run(look())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
def test_no_stranger_looks_on(client: Client, headers: dict[str, str], status: int) -> None:
    async def look() -> None:
        with pytest.raises(HTTPClientError) as refused:
            async with looking_on(client, **headers):
                raise AssertionError("let in")
        assert refused.value.code == status

    asyncio.run(look())


def test_what_a_browser_says_is_bounded(client: Client) -> None:
    async def look() -> None:
        async with looking_on(client) as connection:
            await next_of(connection, "snapshot")
            await connection.write_message("x" * 100)  # means nothing, does nothing
            await connection.write_message("x" * 100_000)
            while await next_message(connection) is not None:
                pass

    asyncio.run(look())


def test_one_that_takes_nothing_holds_up_nobody(client: Client, source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket full, it gets a new snapshot when it takes something again; the others see each change meanwhile."""
    monkeypatch.setattr(live_sockets, "MAX_WAITING", 3)

    async def look() -> None:
        slow = socket.create_connection(("127.0.0.1", client.server.port), timeout=WAIT_S)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        slow.sendall(
            f"GET /api/live HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.server.token}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        async with looking_on(client) as quick:
            await next_of(quick, "snapshot")
            for number in range(10):
                source.listeners[0]({"type": "trace", "payload": {**a_trace(number, 10), "note": "x" * 3_000_000}})
                assert (await next_of(quick, "trace"))["id"] == number
        slow.close()

    asyncio.run(look())
