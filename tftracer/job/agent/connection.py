"""The agent's end of its connection to the hub, after the greeting. Runs on the agent's loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import Any

from tornado.websocket import WebSocketClientConnection

from tftracer.errors import TracerError
from tftracer.job.agent.discovery import OwnPage
from tftracer.job.agent.heartbeat import StepRate, TimeSpent, identity, totals
from tftracer.job.agent.proxy import Proxy
from tftracer.job.agent.requested_traces import StepWatch
from tftracer.job.wire import protocol
from tftracer.job.wire.handshake import Channel
from tftracer.job.wire.protocol import Message
from tftracer.session.live import Recorder

#: A hub that has sent nothing for this long is considered gone; after half of this time it is asked to answer.
SILENCE_S = 90.0
BYE_S = 1.0


class RefusedError(TracerError):
    """The hub does not let this process join."""


class HubConnection:
    """Sends heartbeats, and does what the hub asks for."""

    def __init__(
        self, connection: WebSocketClientConnection, channel: Channel, source: Recorder, own_page: Callable[[], OwnPage | None]
    ) -> None:
        self._connection = connection
        self._channel = channel
        self._source = source
        self._interval_s = 1.0
        self._watch = StepWatch(source, self._post)
        self._proxy = Proxy(source, own_page, self._send)
        self._rate = StepRate()
        self._time = TimeSpent()
        self._sent_identity: Message | None = None
        self._heard_at = time.monotonic()
        self._refused = ""

    async def run(self, ended: asyncio.Event) -> None:
        """Serve the connection until it is over or ``ended`` is set.

        Raises RefusedError if the hub refuses this process, AlteredError if a message was altered.
        """
        beating = asyncio.ensure_future(self._beat())
        receiving = asyncio.ensure_future(self._receive())
        leaving = asyncio.ensure_future(ended.wait())
        unsubscribe = self._watch.subscribe()
        try:
            await asyncio.wait([beating, receiving, leaving], return_when=asyncio.FIRST_COMPLETED)
            if ended.is_set():
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(self._send("bye"), BYE_S)
            elif self._refused:
                raise RefusedError(self._refused)
            elif receiving.done():
                receiving.result()  # raises what was wrong with the last message
        finally:
            unsubscribe()
            self._proxy.stop()
            self._source.cancel_step_requests()
            for task in (beating, receiving, leaving):
                task.cancel()
            await asyncio.gather(beating, receiving, leaving, return_exceptions=True)

    async def _send(self, kind: str, **fields: Any) -> None:
        await self._connection.write_message(self._channel.seal(protocol.pack(kind, **fields)), binary=True)

    def _post(self, kind: str, **fields: Any) -> None:
        """Send without waiting; if that fails, the message is lost with the connection."""
        asyncio.ensure_future(self._send(kind, **fields)).add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _beat(self) -> None:
        """Send heartbeats; return when the hub has been silent for too long."""
        while (silent_s := time.monotonic() - self._heard_at) < SILENCE_S:
            runs, session = self._source.runs(), self._source.session()
            fields, who = totals(session, runs, self._rate.update(runs)), identity(session)
            fields["time_s"] = self._time.update(self._source)
            if self._sent_identity != who:
                fields["process"], self._sent_identity = {**who, **fields}, who
            if silent_s > SILENCE_S / 2:
                fields["answer"] = True
            await self._send("beat", **fields)
            self._watch.check(runs)
            await asyncio.sleep(self._interval_s * random.uniform(0.9, 1.1))

    async def _receive(self) -> None:
        while (data := await self._connection.read_message()) is not None:
            self._heard_at = time.monotonic()
            self._handle(protocol.unpack(self._channel.open(data)))

    def _handle(self, message: Message) -> None:
        kind = message["t"]
        if kind == "pace":
            self._interval_s = min(max(protocol.seconds(message, "interval_s") or 1.0, 0.1), 60.0)
        elif kind == "refused":
            self._refused = protocol.refusal(message)
        elif kind in ("prepare", "trace", "take_back"):
            self._watch.handle(message)
        else:
            self._proxy.handle(message)


async def close(connection: WebSocketClientConnection) -> None:
    """Close the connection and wait for it, so that no socket is left when the loop ends."""
    connection.close()
    with contextlib.suppress(Exception):
        while await asyncio.wait_for(connection.read_message(), BYE_S) is not None:
            pass
