"""Answers the hub's requests to this process: the bytes of a trace, and HTTP requests and live messages of its own page.

Requests to this process's page block, so they run on a few threads. The parts of an answer are sent as the hub takes them, so a
slow reader costs only the memory of a few parts. All methods run on the agent's loop unless they say otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import queue
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Union

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tftracer.errors import UnknownError
from tftracer.job.agent.discovery import OwnPage
from tftracer.job.wire.protocol import PART_BYTES, PARTS_IN_FLIGHT, Message, number, text
from tftracer.session.live import Recorder
from tftracer.web.worker_threads import WorkerThreads

THREADS = 4
REQUEST_S = 600.0
FORWARDED_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "If-None-Match")
Body = Union[bytes, Iterator[bytes]]


class OpenRequest:
    """A request of the hub that is not answered yet."""

    def __init__(self) -> None:
        self.may_send = asyncio.Semaphore(PARTS_IN_FLIGHT)
        self.task: asyncio.Task[None] | None = None
        self.body: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # b"" ends the body; None: the upload was broken off

    def put_body(self, message: Message) -> None:
        data = message.get("data")
        if isinstance(data, bytes) and data:
            self.body.put(data)
        if message.get("last"):
            self.body.put(b"")


class Proxy:
    """Answers requests. ``send`` sends a message to the hub, and returns when the message was sent."""

    def __init__(self, source: Recorder, own_page: Callable[[], OwnPage | None], send: Callable[..., Awaitable[None]]) -> None:
        self._source = source
        self._own_page = own_page
        self._send = send
        self._open: dict[int, OpenRequest] = {}
        self._workers: WorkerThreads | None = None

    def handle(self, message: Message) -> None:
        kind, request = message["t"], number(message, "request")
        method = {"fetch": self._fetch, "http": self._http, "socket": self._socket}.get(kind)
        open_request = self._open.get(request)
        if method is not None and open_request is None:
            self._open[request] = OpenRequest()
            self._open[request].task = asyncio.ensure_future(self._answer(method, request, message))
        elif open_request is None:
            return
        elif kind == "more":
            open_request.may_send.release()
        elif kind == "body":
            open_request.put_body(message)
        elif kind == "cancel" and open_request.task is not None:
            open_request.task.cancel()

    def stop(self) -> None:
        for each in list(self._open.values()):
            if each.task is not None:
                each.task.cancel()
            each.body.put(None)
        if self._workers is not None:
            self._workers.stop()
            self._workers = None

    async def _answer(self, method: Callable[[int, Message], Awaitable[None]], request: int, message: Message) -> None:
        try:
            await method(request, message)
        except Exception as problem:  # otherwise the hub would wait for ever
            with contextlib.suppress(Exception):
                await self._send("error", request=request, message=f"{problem or type(problem).__name__}"[:1000])
        finally:
            open_request = self._open.pop(request, None)
            if open_request is not None:
                open_request.body.put(None)

    # ---------------------------------------------------------------------------------------------------- the requests

    async def _fetch(self, request: int, message: Message) -> None:
        """Send a trace's RunMetadata. The session itself supplies it, so the process needs no page."""
        trace_id = number(message, "trace")
        raw = await self._work(lambda: self._source.trace_bytes(trace_id))
        for at in range(0, len(raw), PART_BYTES):
            await self._send_part(request, raw[at : at + PART_BYTES])
        await self._send("part", request=request, data=b"", last=True)

    async def _http(self, request: int, message: Message) -> None:
        """Make a request to this process's page, with its own token."""
        page = self._page()
        given = message.get("body")
        body: Body = given if isinstance(given, bytes) else b""
        if message.get("streamed"):
            body = self._streamed_body(request)
        method, path, headers = text(message, "method", 10), text(message, "path", 8000), _strings(message.get("headers"))
        answer = await self._work(lambda: _ask(page, method, path, headers, body))
        try:
            await self._send("head", request=request, status=answer.status, headers=dict(answer.getheaders()))
            while part := await self._work(lambda: answer.read(PART_BYTES)):
                await self._send_part(request, part)
            await self._send("part", request=request, data=b"", last=True)
        finally:
            answer.close()

    def _streamed_body(self, request: int) -> Iterator[bytes]:
        """Return an iterator over the parts of the request's body, for a worker thread.

        After each part that is taken, the hub is asked for more.
        """
        loop, parts = asyncio.get_running_loop(), self._open[request].body

        def body_parts() -> Iterator[bytes]:
            while part := parts.get(timeout=REQUEST_S):
                yield part
                asyncio.run_coroutine_threadsafe(self._send_more(request), loop)
            if part is None:
                raise UnknownError("The upload was broken off.")

        return body_parts()

    async def _send_more(self, request: int) -> None:
        with contextlib.suppress(Exception):  # if the connection is over, so is the upload
            await self._send("more", request=request)

    async def _socket(self, request: int, message: Message) -> None:
        """Forward the live messages of this process's page, each in parts, because a message about many runs is long."""
        page = self._page()
        url = f"{'wss' if page.secure else 'ws'}://{page.address}{page.path}/api/live"
        headers = {"Authorization": f"Bearer {page.token}"}
        socket_request = HTTPRequest(url, headers=headers, ssl_options=page.tls_context(), connect_timeout=5)
        connection = await websocket_connect(socket_request, max_message_size=1 << 30)
        try:
            while isinstance(live := await connection.read_message(), str):
                data = live.encode()
                for at in range(0, max(len(data), 1), PART_BYTES):
                    await self._send_part(request, data[at : at + PART_BYTES], "text", end=at + PART_BYTES >= len(data))
            await self._send("part", request=request, data=b"", last=True)
        finally:
            connection.close()

    async def _send_part(self, request: int, data: bytes, kind: str = "part", **fields: Any) -> None:
        await self._open[request].may_send.acquire()
        await self._send(kind, request=request, data=data, **fields)

    def _page(self) -> OwnPage:
        page = self._own_page()
        if page is None:
            raise UnknownError("This process serves no page now; its traces can be opened on the job's page.")
        return page

    async def _work(self, function: Callable[[], Any]) -> Any:
        if self._workers is None:
            self._workers = WorkerThreads("tftracer-proxy", THREADS)
        return await asyncio.wrap_future(self._workers.submit(function))


def _ask(page: OwnPage, method: str, path: str, headers: dict[str, str], body: Body) -> http.client.HTTPResponse:
    """Make a request and return the response, whose body is still to be read. Blocks: runs on a worker thread."""
    if not path.startswith("/api/") or any(c in path for c in "\r\n\0 "):
        raise UnknownError("Only requests to a process's API are passed on.")
    connection: http.client.HTTPConnection
    if page.secure:
        connection = http.client.HTTPSConnection(page.host, page.port, timeout=REQUEST_S, context=page.tls_context())
    else:
        connection = http.client.HTTPConnection(page.host, page.port, timeout=REQUEST_S)
    forwarded = {name: value for name, value in headers.items() if name in FORWARDED_HEADERS}
    forwarded.update({"Authorization": f"Bearer {page.token}", "Connection": "close"})
    length = headers.get("Content-Length")
    if not isinstance(body, bytes):
        forwarded.update({"Content-Length": length} if length else {"Transfer-Encoding": "chunked"})
    try:
        # If the page rejects the request before it has the whole body, its answer says why.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, page.path + path, body or None, forwarded, encode_chunked=not length)
        return connection.getresponse()
    except BaseException:
        connection.close()
        raise


def _strings(headers: Any) -> dict[str, str]:
    given = headers.items() if isinstance(headers, dict) else ()
    return {name: value for name, value in given if isinstance(name, str) and isinstance(value, str)}
