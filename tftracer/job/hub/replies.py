"""The hub's end of one request to a process. The body and the answer are sent part by part, as fast as the other end takes them.

Runs on the server's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from tftracer.errors import UnknownError
from tftracer.job.wire import protocol
from tftracer.job.wire.protocol import PART_BYTES, PARTS_IN_FLIGHT, Message


class Reply:
    """One request and its answer. ``send`` sends a message to the process; ``request``: its number on that connection."""

    def __init__(self, send: Callable[..., None], request: int) -> None:
        self._send = send
        self._request = request
        self._parts: asyncio.Queue[Message] = asyncio.Queue()
        self._may_send = asyncio.Semaphore(PARTS_IN_FLIGHT)
        self._answered = False

    def put(self, message: Message) -> None:
        """Add a message of the process about this request."""
        if message["t"] == "more":
            self._may_send.release()
            return
        self._parts.put_nowait(message)
        if not self._answered:
            self._answered = True
            self._may_send.release()  # ends ``send_body``: the rest of the body is not needed

    async def send_body(self, data: bytes, last: bool = False) -> None:
        """Send a piece of the request's body as fast as the process takes it. After the answer, pieces are dropped."""
        for at in range(0, max(len(data), 1), PART_BYTES):
            await self._may_send.acquire()
            if self._answered:
                self._may_send.release()
                return
            self._send("body", request=self._request, data=data[at : at + PART_BYTES], last=last)

    async def head(self) -> Message:
        """Return status and headers of the answer to an ``http`` request. Raises UnknownError if there is none."""
        return self._checked(await self._parts.get())

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the answer's body. Raises UnknownError if the connection breaks before its end."""
        while True:
            message = self._checked(await self._parts.get())
            if isinstance(data := message.get("data"), bytes) and data:
                yield data
            if message.get("last"):
                return
            self._send("more", request=self._request)

    async def messages(self) -> AsyncIterator[str]:
        """Yield the messages of a ``socket`` request; each comes in pieces, the last of which has ``end``."""
        pieces: list[bytes] = []
        while not (message := self._checked(await self._parts.get())).get("last"):
            data = message.get("data")
            pieces.append(data if isinstance(data, bytes) else b"")
            self._send("more", request=self._request)
            if message.get("end"):
                yield b"".join(pieces).decode("utf-8", "replace")
                pieces = []

    @staticmethod
    def _checked(message: Message) -> Message:
        if message["t"] == "error":
            raise UnknownError(protocol.text(message, "message") or "The process could not answer.")
        return message


def failure(request: int, reason: str) -> Message:
    """Return the error message that a process would send."""
    return {"t": "error", "request": request, "message": reason}
