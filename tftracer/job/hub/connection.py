"""The hub's end of the connection to one process: the greeting, the process's messages, and requests to it.

Runs on the server's loop. A client that has not proved that it knows the token (a stranger) gets only a random number and the
hub's id and job name. It is disconnected after GREETING_S, or earlier if other clients need its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler, WebSocketProtocol13

from tftracer.errors import FormatError, TracerError
from tftracer.job.hub.hub import Hub, Member
from tftracer.job.hub.replies import Reply, failure
from tftracer.job.hub.services import HubHandler, JobServices
from tftracer.job.wire import protocol
from tftracer.job.wire.accepted_addresses import own_end
from tftracer.job.wire.handshake import VERSION, Channel, Greeting, Keys, new_nonce
from tftracer.job.wire.protocol import MEMBER_BYTES, STRANGER_BYTES, Message
from tftracer.web.credentials import AGENT_SCHEME
from tftracer.web.refusal import Refusal
from tftracer.web.services import Services

MAX_OPEN_REQUESTS = 64  # on one connection


class AgentConnection(HubHandler, WebSocketHandler):
    """``GET /api/job/agents``: a process joins the job, and proves that it knows the token without sending it."""

    def initialize(self, services: Services, job: JobServices) -> None:  # type: ignore[override]
        super().initialize(services, job)
        self.hub: Hub = job.hub
        self.member: Member | None = None
        self._nonce = new_nonce()
        self._channel: Channel | None = None  # set once the process has proved that it knows the token
        self._deadline: asyncio.TimerHandle | None = None
        self._own_end = ""
        self._replies: dict[int, Reply] = {}
        self._last_request = 0
        self._sent_interval_s = 0.0

    @property
    def max_message_size(self) -> int:
        return STRANGER_BYTES

    @property
    def ping_interval(self) -> float | None:
        return None  # heartbeats are enough

    def check_host(self) -> None:
        """Accept any host name, because a process may use any. ``check_token`` rejects browsers, so DNS rebinding is no risk."""

    def check_token(self) -> None:
        scheme, _, credential = self.request.headers.get("Authorization", "").partition(" ")
        if scheme != AGENT_SCHEME or "Origin" in self.request.headers:
            self.refuse_stranger("This route is for the agents in the processes of the job.")
        if self.services.access.is_agent(credential):
            self.mark_authenticated()

    def check_origin(self, origin: str) -> bool:
        return True  # check_token() has refused all requests with an Origin

    def on_connection_close(self) -> None:
        WebSocketHandler.on_connection_close(self)

    def get_compression_options(self) -> None:
        """Disable compression: large messages are already compressed."""

    def prepare(self) -> None:
        super().prepare()
        self._own_end = own_end(getattr(self.request.connection, "stream", None))

    def open(self, *arguments: str, **named: str) -> None:
        self.set_nodelay(True)
        self.job.strangers.add(self, self.request.remote_ip or "", self.services.admission.has_place())
        self._deadline = asyncio.get_running_loop().call_later(protocol.GREETING_S, self.drop, "no greeting")
        self._write(protocol.pack("hello", version=VERSION, job=self.hub.name, id=self.hub.own_id, nonce=self._nonce))

    def on_message(self, data: str | bytes) -> None:
        try:
            if self._channel is None:
                self._greet(data)
                return
            message = protocol.unpack(self._channel.open(data))
            if self.member is None:
                self._join(message)
            else:
                self._handle(self.member, message)
        except TracerError as error:
            self.close(1008, str(error)[:100])

    def _greet(self, data: str | bytes) -> None:
        message = protocol.unpack(data)
        nonce, endpoint = protocol.text(message, "nonce", 100), protocol.endpoint(message)
        if message["t"] != "join" or len(nonce) < 32:
            raise FormatError("not a greeting")
        keys = Keys(self.services.access.token, Greeting(self.hub.name, self.hub.own_id, self._nonce, nonce, endpoint))
        if protocol.text(message, "job") != self.hub.name:
            self._refuse("another_job")
        elif not keys.proves("agent", message.get("proof")):
            self._refuse("wrong_token")
        elif not self.job.addresses.accepts(endpoint, self._own_end):
            self._refuse("another_address")
        else:
            self._write(protocol.pack("welcome", proof=keys.proof("hub")))
            self._channel = keys.channel("hub")
            if isinstance(self.ws_connection, WebSocketProtocol13):
                self.ws_connection.params.max_message_size = MEMBER_BYTES

    def _join(self, message: Message) -> None:
        """Handle the first message of a process that knows the token: its identity."""
        process = message.get("process")
        if message["t"] != "beat" or not isinstance(process, dict):
            raise FormatError("a process must say who it is")
        valid_id = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", protocol.text(process, "id"))
        known_member = self.hub.members.get(valid_id[0]) if valid_id else None
        self.member = self.hub.join(process, self) if valid_id else None
        if self.member is None:
            self._refuse("full")
            return
        if known_member is not None:
            self.job.requests.reconnected(known_member)
        self._end_greeting()
        self._send_interval()
        self.job.updates.check_silence()

    def _refuse(self, code: str) -> None:
        """Send a code, not a text: an agent must not show a text that a stranger could have written."""
        self.post("refused", code=code)
        self.close(1008, code)

    def _end_greeting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self.job.strangers.discard(self)

    def _handle(self, member: Member, message: Message) -> None:
        kind = message["t"]
        if kind == "beat":
            self.hub.heartbeat(member, message)
            if self._sent_interval_s != self.hub.interval_s or message.get("answer") is True:
                self._send_interval()
        elif kind in ("head", "part", "text", "error", "more"):
            reply = self._replies.get(protocol.number(message, "request"))
            if reply is not None:
                reply.put(message)
        elif kind == "bye":
            self.hub.leave(member, "ended")
        else:
            self.job.requests.handle(member, message)

    def _send_interval(self) -> None:
        self._sent_interval_s = self.hub.interval_s
        self.post("pace", interval_s=self._sent_interval_s)

    def post(self, kind: str, **fields: Any) -> None:
        data = protocol.pack(kind, **fields)
        self._write(data if self._channel is None else self._channel.seal(data))

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(WebSocketClosedError, StreamClosedError):
            self.write_message(data, binary=True)

    def drop(self, reason: str) -> None:
        """Close without waiting for the other end, because a stranger could keep a file descriptor in use for seconds."""
        stream = getattr(self.ws_connection, "stream", None)
        self.close(1008, reason)
        if stream is not None:
            stream.close()

    def on_close(self) -> None:
        self._end_greeting()
        if self.member is not None:
            self.hub.leave(self.member, "lost")
            self.job.requests.gone(self.member)
        for number, reply in list(self._replies.items()):
            reply.put(failure(number, "The process disconnected before it had answered."))

    @contextlib.asynccontextmanager
    async def ask(self, kind: str, **fields: Any) -> AsyncIterator[Reply]:
        """Make a request to the process; leaving the context early cancels it."""
        if len(self._replies) >= MAX_OPEN_REQUESTS:
            raise Refusal(503, "too_many", "Too many requests to this process are open.", {"Retry-After": "1"})
        self._last_request += 1
        number = self._last_request
        reply = self._replies[number] = Reply(self.post, number)
        try:
            self.post(kind, request=number, **fields)
            yield reply
        finally:
            del self._replies[number]
            self.post("cancel", request=number)
