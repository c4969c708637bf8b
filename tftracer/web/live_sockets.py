"""The live WebSockets: one handler per connected browser. live_feed.py decides what is sent, and when."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from tftracer.web.access_check import SUBPROTOCOL
from tftracer.web.base_handler import Guarded
from tftracer.web.live_feed import MAX_BROWSERS
from tftracer.web.refusal import Refusal
from tftracer.web.services import Services

MAX_WAITING = 50  # messages for one browser; if more would wait, a snapshot replaces them
SEND_TIMEOUT_S = 60.0  # a browser that accepts nothing for this long is disconnected


class BrowserSocket(Guarded, WebSocketHandler):
    """A WebSocket from which the page only reads. It is closed when all browsers are signed out."""

    def check_origin(self, origin: str) -> bool:
        return True  # prepare() has checked it against all names of this server; Tornado knows only one

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return SUBPROTOCOL if SUBPROTOCOL in subprotocols else None

    def get_compression_options(self) -> None:
        """Disable compression: messages are small, and would be compressed for each browser separately."""

    def open(self, *arguments: str, **named: str) -> None:
        self.services.sockets.add(self)

    def on_message(self, message: str | bytes) -> None:
        """Ignore messages: browsers send none."""

    def on_close(self) -> None:
        self.services.sockets.discard(self)

    def on_connection_close(self) -> None:
        WebSocketHandler.on_connection_close(self)


class LiveHandler(BrowserSocket):
    """One browser. One message is sent at a time; later ones wait, or are replaced by a snapshot if there are too many."""

    def initialize(self, services: Services) -> None:
        super().initialize(services)
        self._waiting: deque[str] = deque()
        self._needs_snapshot = False
        self._sender: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        super().prepare()
        if self.request.headers.get("Upgrade", "").lower() != "websocket":
            raise Refusal(426, "websocket_only", "This is a WebSocket.", {"Upgrade": "websocket"})
        if self.services.live.is_full:
            raise Refusal(503, "too_many", f"{MAX_BROWSERS} pages are connected already.", {"Retry-After": "10"})

    def open(self, *arguments: str, **named: str) -> None:
        super().open(*arguments, **named)
        self.set_nodelay(True)
        self.services.live.connect(self)
        self.services.answers.prepare()

    def on_close(self) -> None:
        super().on_close()
        self.services.live.disconnect(self)
        if self._sender is not None:
            self._sender.cancel()

    def send_snapshot(self) -> None:
        """Replace all waiting messages by a snapshot."""
        self._waiting.clear()
        self._needs_snapshot = True
        self._start_sender()

    def send(self, text: str) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self.send_snapshot()
            return
        self._waiting.append(text)
        self._start_sender()

    def send_last(self, text: str) -> None:
        with contextlib.suppress(WebSocketClosedError, StreamClosedError):
            self.write_message(text)
            self.close(1001, "the server stops")

    def _start_sender(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.ensure_future(self._send_waiting())

    async def _send_waiting(self) -> None:
        """Send until no message waits. Changes that come while a snapshot is built are sent after it."""
        try:
            while self._needs_snapshot or self._waiting:
                if self._needs_snapshot:
                    self._needs_snapshot = False
                    text = await self.services.live.snapshot()
                else:
                    text = self._waiting.popleft()
                await asyncio.wait_for(self.write_message(text), SEND_TIMEOUT_S)
        except (WebSocketClosedError, StreamClosedError):
            self.services.live.disconnect(self)
        except (asyncio.TimeoutError, RuntimeError):
            self.services.live.disconnect(self)
            self.close(1008, "too slow")
