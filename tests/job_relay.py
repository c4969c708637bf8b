"""A relay between an agent and its hub, which passes messages on or attacks."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from job_page import PATIENCE_S
from tornado import web
from tornado.httpclient import HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, WebSocketHandler, websocket_connect

#: (whether it comes from the hub, its number in that direction, the message) -> what is passed on in its place.
Attack = Callable[[bool, int, bytes], list[bytes]]


def pass_on(from_hub: bool, number: int, data: bytes) -> list[bytes]:
    return [data]


class RelayedAgent(WebSocketHandler):
    """The relay's end to the agent."""

    relay: Relay
    far: WebSocketClientConnection

    def initialize(self, relay: Relay) -> None:
        self.relay = relay
        self._count = [0, 0]
        self._ready = asyncio.Event()
        self._has_gone = False

    def open(self, *arguments: str, **named: str) -> None:
        self.relay.agents.append(self)
        self.task = asyncio.ensure_future(self._from_hub())

    async def _from_hub(self) -> None:
        """Until both ends are closed."""
        scheme = "wss" if self.relay.secure else "ws"
        asked = HTTPRequest(
            f"{scheme}://127.0.0.1:{self.relay.to}/api/job/agents",
            headers={"Authorization": "tftracer-agent"},
            validate_cert=False,
        )
        self.far = await websocket_connect(asked, max_message_size=1 << 24)
        self._ready.set()
        if self._has_gone:
            self.far.close()
        while isinstance(data := await self.far.read_message(), bytes):
            for each in self._attacked(True, data):
                await self._quietly(self.write_message, each)
        self.close()

    async def on_message(self, data: str | bytes) -> None:
        await self._ready.wait()
        assert isinstance(data, bytes)
        for each in self._attacked(False, data):
            await self._quietly(self.far.write_message, each)

    @staticmethod
    async def _quietly(write: Callable[..., Any], data: bytes) -> None:
        with contextlib.suppress(WebSocketClosedError):
            await write(data, binary=True)

    def _attacked(self, from_hub: bool, data: bytes) -> list[bytes]:
        number, self._count[from_hub] = self._count[from_hub], self._count[from_hub] + 1
        return self.relay.attack(from_hub, number, data)

    def on_close(self) -> None:
        self.relay.ended.put(None)
        self._has_gone = True
        if self._ready.is_set():
            self.far.close()


class Relay:
    """Listens on a port of its own and passes on to port ``to`` of this host; ``attack`` may be replaced at any time.

    ``certificate``: its own and its key, for a hub with TLS.
    """

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        self.to = 0
        self.secure = certificate is not None
        self._certificate = certificate
        self.attack: Attack = pass_on
        self.ended: queue.SimpleQueue[None] = queue.SimpleQueue()  # has an entry for each connection that is over
        self.agents: list[RelayedAgent] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        listening, self.port = bind_unused_port()
        application = web.Application(
            [("/api/job/agents", RelayedAgent, {"relay": self})],
            log_function=lambda handler: None,
            websocket_max_message_size=1 << 24,
        )
        options = {"certfile": self._certificate[0], "keyfile": self._certificate[1]} if self._certificate else None
        server = HTTPServer(application, ssl_options=options)
        server.add_socket(listening)
        self._ready.set()
        await self._end.wait()
        server.stop()
        await server.close_all_connections()
        for agent in self.agents:
            agent.close()
        # If the loop ended before, their sockets would stay open.
        await asyncio.gather(*(agent.task for agent in self.agents), return_exceptions=True)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE_S)


def make_certificate(folder: Path, name: str) -> tuple[str, str]:
    """A self-signed certificate for this host and its key: paths of PEM files."""
    cert, key = str(folder / f"{name}.pem"), str(folder / f"{name}-key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run([*command, "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
