"""The base class of every handler: it checks each request before its body is read, and sends errors as JSON.

Runs on the server's loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

from tornado import web
from tornado.iostream import StreamClosedError

from tftracer import errors
from tftracer.contract.basics import ErrorMessage
from tftracer.contract.encoding import dumps
from tftracer.web.access_check import AccessCheck
from tftracer.web.refusal import Refusal, describe
from tftracer.web.services import Services

T = TypeVar("T")
log = logging.getLogger("tftracer")

MAX_BODY_BYTES = 1 << 16


@web.stream_request_body
class Guarded(AccessCheck):
    """A handler that runs all checks. Subclasses set class attributes that define what they accept."""

    services: Services
    body_limit = MAX_BODY_BYTES
    body_type = "application/json"
    body: bytes = b""

    def initialize(self, services: Services) -> None:
        self.services = services
        self._work: asyncio.Future[Any] | None = None

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("X-Frame-Options", "DENY")

    def prepare(self) -> None:
        self.check_access()
        self.check_method()
        self.check_body()

    def check_method(self) -> None:
        allowed = self.allowed_methods()
        if self.request.method not in allowed:
            message = f"{self.request.method} is not allowed here; use {', '.join(allowed)}."
            raise Refusal(405, "wrong_method", message, {"Allow": ", ".join(allowed)})

    @classmethod
    def allowed_methods(cls) -> list[str]:
        return [m for m in cls.SUPPORTED_METHODS if getattr(cls, m.lower()) is not getattr(web.RequestHandler, m.lower())]

    def check_body(self) -> None:
        headers = self.request.headers
        length = headers.get("Content-Length", "0")
        is_number = length.isascii() and length.isdigit() and len(length) < 20
        if not is_number or int(length) > self.body_limit:
            raise Refusal(413, "too_large", f"The body is {length[:20]} bytes; at most {self.body_limit} are accepted here.")
        if length == "0" and "Transfer-Encoding" not in headers:
            return
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != self.body_type:
            raise Refusal(415, "wrong_content_type", f"The body must be {self.body_type}, not {kind[:100] or 'unnamed'}.")

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        if len(self.body) <= self.body_limit:
            self.body += chunk
        return None

    def json(self) -> dict[str, Any]:
        """Return the body, which must be a JSON object."""
        if len(self.body) > self.body_limit:
            raise Refusal(413, "too_large", f"The body is too large; at most {self.body_limit} bytes are accepted here.")
        try:
            value = json.loads(self.body)
            json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored or sent
        except (ValueError, RecursionError) as problem:
            raise Refusal(400, "bad_body", "The body is not JSON.") from problem
        if not isinstance(value, dict):
            raise Refusal(400, "bad_body", "The body must be a JSON object.")
        return value

    def send_json(self, value: Any) -> None:
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.write(dumps(value).encode())

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Send the error. If the request was cancelled because the server stops, only close the connection."""
        if isinstance(sys.exc_info()[1], asyncio.CancelledError):  # Tornado 6.6 does not pass it
            self.close_connection()
        else:
            super().send_error(status_code, **kwargs)

    def close_connection(self) -> None:
        if stream := self.connection_stream():
            stream.close()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        problem = kwargs.get("exc_info", (None, None, None))[1]
        status, code, message = describe(problem, status_code)
        self.set_status(status)
        for name, value in getattr(problem, "headers", {}).items():
            self.set_header(name, value)
        self.write_refusal(code, message)

    def write_refusal(self, code: str, message: str) -> None:
        """Write the body of an error answer."""
        body: ErrorMessage = {"error": {"code": code, "message": message}}
        self.send_json(body)

    def log_exception(self, typ: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Log errors of the server, not those of clients, without the URL's query, which may have the token."""
        if not isinstance(value, (web.HTTPError, errors.TracerError, StreamClosedError, asyncio.CancelledError)):
            exc_info = (typ, value, tb) if typ and value else None
            log.error("tftracer: %s %s failed", self.request.method, self.request.path, exc_info=exc_info)

    async def run_on_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that may wait for a lock or for the disk on a worker thread, and return its result."""
        return await asyncio.wrap_future(self.services.workers.submit(function, *arguments))

    async def unless_gone(self, work: Awaitable[T]) -> T:
        """Return the result. If the client disconnects first, cancel the work and end the handler."""
        task = asyncio.ensure_future(work)
        self._work = task
        try:
            return await task
        except asyncio.CancelledError:
            raise web.Finish from None
        finally:
            self._work = None

    def finish(self, chunk: str | bytes | dict[str, Any] | None = None) -> asyncio.Future[None]:
        """Finish, and close an unauthenticated client's connection: its next request then waits in the queue (flood_limit.py)."""
        if self.is_authenticated or self.get_status() == 101:
            return super().finish(chunk)
        self.set_header("Connection", "close")
        stream = self.connection_stream()
        sent = super().finish(chunk)
        if stream:
            sent.add_done_callback(lambda _: stream.close())
        return sent

    def on_connection_close(self) -> None:
        if self._work is not None:
            self._work.cancel()
