"""The HTTP API's handlers, described in docs/http-api.rst. They check their arguments and pass them on to the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tornado.iostream import StreamClosedError

from tftracer.contract.encoding import MSGPACK, Body, accepted_encoding, encode
from tftracer.contract.session import DownloadLink, Ok, SessionMessage
from tftracer.storage import untrusted
from tftracer.web.access_check import without_prefix
from tftracer.web.base_handler import Guarded
from tftracer.web.refusal import Refusal
from tftracer.web.services import Services

OK: Ok = {"ok": True}
MAX_STEPS = 1000  # steps to trace in one request
MAX_NOTE = 10_000
_BOOKMARKS_BODY = (
    f'The body must be {{"bookmarks": [...]}}: at most {untrusted.MAX_BOOKMARKS}, each with a "name" of 1 to '
    f'{untrusted.MAX_BOOKMARK_NAME} characters, "start_ns", and "end_ns" after it, or null for a moment.'
)
ID_DIGITS = 15
MAX_PATH = 2000
SIGNED_OUT = 4001  # close code of the WebSockets


class ApiHandler(Guarded):
    """The base of API handlers: numbers in paths, and sending encoded bodies."""

    def number(self, text: str, noun: str) -> int:
        """Parse a number in a path. An invalid one gives the same answer as an unknown one."""
        if not (text.isascii() and text.isdigit() and len(text) <= ID_DIGITS):
            raise Refusal(404, "unknown", f"There is no {noun} {text[:50]!r}: {noun}s have numbers, from 1.")
        return int(text)

    def choice_argument(self, name: str, choices: Sequence[str]) -> str:
        """Return an argument of the query, by default the first choice."""
        given = self.get_query_argument(name, choices[0])
        if given not in choices:
            allowed = f"{', '.join(choices[:-1])} or {choices[-1]}"
            raise Refusal(400, "bad_query", f"{name} must be {allowed}, not {given[:50]!r}.")
        return given

    def is_packed(self) -> bool:
        """Return whether the answer is msgpack."""
        return MSGPACK in self.request.headers.get("Accept", "")

    def accepted_encoding(self) -> str:
        return accepted_encoding(self.request.headers.get("Accept-Encoding", ""))

    async def send_body(self, body: Body) -> None:
        """Send chunk by chunk, so that only one is in the socket's buffer for a slow client."""
        self.set_header("Content-Type", body.content_type)
        self.set_header("Vary", "Accept, Accept-Encoding")
        if body.encoding:
            self.set_header("Content-Encoding", body.encoding)
        self.set_header("Content-Length", str(body.size))
        try:
            for chunk in body.chunks:
                self.write(chunk)
                await self.flush()
        except StreamClosedError:
            return

    async def send_encoded(self, ask: Callable[[], Mapping[str, Any]], packed: bool) -> None:
        """Send the session's answer, which is read on a worker thread: it takes the session's lock, and may read the disk."""
        encoding = self.accepted_encoding()
        await self.services.rate_limit.wait_to_answer()
        await self.send_body(await self.run_on_worker(lambda: encode(ask(), packed, encoding)))


class UnknownRoute(ApiHandler):
    def check_method(self) -> None:
        raise Refusal(404, "unknown_route", f"There is no {self.request.path[:200]}; docs/http-api.rst lists the API.")


class SessionHandler(ApiHandler):
    async def get(self) -> None:
        await self.send_encoded(self._message, packed=False)

    def _message(self) -> SessionMessage:
        source = self.services.source
        return {"session": source.session(), "runs": source.runs()}


class ReadHandler(ApiHandler):
    """Sends the answer of a method of the session; its arguments are the numbers in the path.

    ``packed``: whether to send MessagePack; None: if the client accepts it.
    """

    def initialize(self, services: Services, method: str, packed: bool | None = None) -> None:  # type: ignore[override]
        super().initialize(services)
        self._method, self._packed = method, packed

    async def get(self, **numbers: str) -> None:
        arguments = [self.number(text, name.replace("stall", "slow step")) for name, text in numbers.items()]
        method = getattr(self.services.source, self._method)
        await self.send_encoded(lambda: method(*arguments), self.is_packed() if self._packed is None else self._packed)


class GapsHandler(ReadHandler):
    """GET: the lines of code that ran between the run's steps. POST: sample them again."""

    async def post(self, run: str) -> None:
        await self.run_on_worker(self.services.source.sample_gaps, self.number(run, "run"))
        self.send_json(OK)


class TraceRequestHandler(ApiHandler):
    """Requests traces of a run (POST), or cancels the request (DELETE)."""

    async def post(self, run: str) -> None:
        steps, graph = self.json().get("steps"), self.json().get("graph", False)
        if type(steps) is not int or not 1 <= steps <= MAX_STEPS or type(graph) is not bool:
            body = f'{{"steps": N}} or {{"steps": N, "graph": true}}, N from 1 to {MAX_STEPS}'
            raise Refusal(400, "bad_body", f"The body must be {body}.")
        await self._request(run, steps, graph)

    async def delete(self, run: str) -> None:
        await self._request(run, 0)

    async def _request(self, run: str, steps: int, graph: bool = False) -> None:
        await self.run_on_worker(self.services.source.request_traces, self.number(run, "run"), steps, graph)
        self.send_json(OK)


class TracingHandler(ApiHandler):
    async def put(self) -> None:
        on = self.json().get("all")
        if type(on) is not bool:
            raise Refusal(400, "bad_body", 'The body must be {"all": true} or {"all": false}.')
        await self.run_on_worker(self.services.source.set_trace_all, on)
        self.send_json(OK)


class NoteHandler(ApiHandler):
    async def put(self, trace: str) -> None:
        note = self.json().get("note")
        if not isinstance(note, str) or len(note) > MAX_NOTE:
            raise Refusal(400, "bad_body", f'The body must be {{"note": TEXT}}, TEXT of at most {MAX_NOTE} characters.')
        self.send_json(await self.run_on_worker(self.services.source.set_note, self.number(trace, "trace"), note))


class BookmarksHandler(ApiHandler):
    """Replaces a trace's bookmarks."""

    async def put(self, trace: str) -> None:
        given = self.json().get("bookmarks")
        bookmarks = untrusted.bookmarks(given)
        if not isinstance(given, list) or bookmarks != given:
            raise Refusal(400, "bad_body", _BOOKMARKS_BODY)
        self.send_json(await self.run_on_worker(self.services.source.set_bookmarks, self.number(trace, "trace"), bookmarks))


class LinkHandler(ApiHandler):
    """Creates a one-time link for a download, which a browser starts without the page's key."""

    def post(self, process: str = "") -> None:
        target = self.json().get("path")
        if not isinstance(target, str) or not target.startswith("/") or len(target) > MAX_PATH:
            raise Refusal(400, "bad_body", 'The body must be {"path": PATH}, the path of a download with its query.')
        path = self.services.path_prefix
        link: DownloadLink = {"path": path + self.services.links.make(without_prefix(target, path))}
        self.send_json(link)


class SignOutHandler(ApiHandler):
    """Signs out all browsers, including the one that sends the request. Scripts that send the token are not affected."""

    def post(self, process: str = "") -> None:
        self.services.access.logins.sign_out_all()
        self.services.links.clear()
        self.send_json(OK)
        for socket in list(self.services.sockets):
            socket.close(SIGNED_OUT, "signed out")


class ShutdownHandler(ApiHandler):
    async def post(self) -> None:
        self.send_json(OK)
        await self.finish()
        self.services.stop()
