"""The web server: its sockets, its services, and the thread with the event loop on which everything in web/ runs.

``WebServer`` may be used from any thread; it uses the loop only through ``call_soon_threadsafe``. ``start`` raises errors; its
caller must not let them reach the training script.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import tornado.platform.asyncio  # noqa: F401  else Tornado imports it in the server's thread (see session/writer/threads.py)
from tornado import web
from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from tftracer.call_in_child import call_in_child
from tftracer.contract.job import Job
from tftracer.contract.live import LiveMessage
from tftracer.contract.session import TraceRecord
from tftracer.engine.engine import Engine
from tftracer.errors import PortError, UnsupportedError
from tftracer.session.answers import SessionSource
from tftracer.web.answer_cache import AnswerCache
from tftracer.web.answer_rate import RateLimit
from tftracer.web.credentials import WILDCARDS, Access, HostNames, choose_token
from tftracer.web.flood_limit import MAX_HEAD_BYTES, Admission
from tftracer.web.live_feed import LiveFeed
from tftracer.web.logins import Logins, OneTimeLinks
from tftracer.web.ports import bind, netloc, own_address, tls_context
from tftracer.web.routes import API, PAGES, Route
from tftracer.web.services import Services
from tftracer.web.static_files import Static
from tftracer.web.worker_threads import WorkerThreads

log = logging.getLogger("tftracer")

MAX_CONNECTIONS = 512
IDLE_CONNECTION_S = 120.0
BODY_S = 60.0  # maximum time to receive a request's body
STOP_S = 5.0  # when the server stops, connections get this time to close
ALIVE_S = 1.0  # seconds between two checks whether the starting thread is still alive
#: Worker threads have a lower priority than the training. In a viewer there is no training.
NICE = 5


@dataclass(frozen=True)
class Options:
    """How and where to serve."""

    port: int = 9999  # 0: any
    ip: str = "127.0.0.1"
    token: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    base_url: str = ""  # "/prefix", or the public URL "https://host/prefix" of a reverse proxy


def split_base_url(base_url: str) -> tuple[str, str]:
    """Split a base URL into ``https://host`` (or "") and ``/prefix`` (or "")."""
    parts = urlsplit(base_url)
    origin = f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""
    path = parts.path.strip("/")
    return origin, f"/{path}" if path else ""


@dataclass(frozen=True)
class JobPages:
    """What a job adds to the server of its hub."""

    routes: Sequence[Route] = ()
    message: Callable[[], Job | None] = lambda: None  # the job as the pages show it; from any thread
    connections: Callable[[], int] = lambda: 0  # number of connections of the job's processes, which the limit does not count
    strangers: Callable[[], int] = lambda: 0  # number of clients that claim to be processes of the job without proof so far


class Server(HTTPServer):
    """Tornado's HTTP server, with a limit on connections."""

    open_connections = 0
    uncounted_connections: Callable[[], int] = staticmethod(lambda: 0)  # connections that the limit does not count
    on_stream_closed: Callable[[IOStream], object] = staticmethod(lambda stream: None)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        if self.open_connections >= MAX_CONNECTIONS + self.uncounted_connections():
            stream.close()
            return
        self.open_connections += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        self.open_connections -= 1
        self.on_stream_closed(cast("HTTP1ServerConnection", server_conn).stream)
        super().on_close(server_conn)


async def cancel_tasks() -> None:
    """Cancel the requests that are unfinished when the server stops."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # for the callbacks of these tasks


class WebServer:
    """Serves one session. It can be stopped and started again; the token stays the same."""

    def __init__(self, source: SessionSource, options: Options, job: JobPages = JobPages(), engine: Engine | None = None) -> None:
        self.source = source
        self.engine = engine  # None: the worker threads compute
        self.options = options
        self.token = choose_token(options.token)
        self._logins = Logins(self.token)
        self.port = 0
        self.job = job
        self._origin, self.path = split_base_url(options.base_url)
        self._start_lock = threading.Lock()
        self._serving: Serving | None = None

    # -------------------------------------------------------------------------------------------------- from any thread

    def start(self) -> None:
        """Start the server; do nothing if it is running. Raises PortError: no free port, or an unusable certificate."""
        with self._start_lock:
            if self._serving is not None and self._serving.is_alive():
                return
            context = tls_context(self.options.certfile, self.options.keyfile)
            sockets = bind(self.port or self.options.port, self.options.ip)
            self.port = sockets[0].getsockname()[1]
            self._serving = Serving(self, sockets, context)
            self._serving.begin()

    def stop(self) -> None:
        """Stop the server. Returns when the port is free again; on the server's own thread, returns at once."""
        if self._serving is not None:
            self._serving.end()

    def join(self) -> None:
        """Wait until the server is stopped."""
        if self._serving is not None:
            self._serving.wait()

    @property
    def running(self) -> bool:
        return self._serving is not None and self._serving.is_alive()

    def publish(self, message: LiveMessage) -> None:
        """Send a message to all pages; do nothing while the server is stopped."""
        serving = self._serving
        if serving is not None and serving.live is not None:
            serving.live.publish(message)

    def contents(self, record: TraceRecord) -> dict[str, Any]:
        """Return the fields of a trace's record that describe its contents. Must not be called on the server's thread.

        They are read through the cache that serves the pages. Raises UnsupportedError if the server has stopped.
        """
        contents = self._serving.contents(record) if self._serving is not None else None
        if contents is None:
            raise UnsupportedError("The web server is stopped.")
        return contents

    @property
    def has_browsers(self) -> bool:
        """Whether a page is connected that ``publish`` would send to."""
        serving = self._serving
        return serving is not None and serving.live is not None and serving.live.has_browsers

    @property
    def address(self) -> str:
        """The page's URL without the token; "" while the server is stopped."""
        if not self.running:
            return ""
        if self._origin:
            return f"{self._origin}{self.path}/"
        scheme = "https" if self.options.certfile else "http"
        host = own_address() if self.options.ip in WILDCARDS else self.options.ip
        return f"{scheme}://{netloc(host, self.port)}{self.path}/"

    @property
    def url(self) -> str:
        """The page's URL with the token; "" while the server is stopped."""
        address = self.address
        return address and self.access().url(address)

    def one_time_url(self) -> str:
        """The page's URL with a code in place of the token, which signs one browser in; "" while the server is stopped."""
        address = self.address
        return address and f"{address}?token={self._logins.new_code()}"

    def access(self) -> Access:
        names = HostNames(self.options.ip, socket.gethostname(), self._origin, os.environ.get("TFTRACER_ALLOWED_HOSTS", ""))
        return Access(self.token, names, self.port, self.path, bool(self.options.certfile), self._logins)


class Serving(threading.Thread):
    """The server from a start to its stop: its thread, its loop, its worker threads."""

    def __init__(self, server: WebServer, sockets: list[socket.socket], context: ssl.SSLContext | None) -> None:
        super().__init__(name="tftracer-web", daemon=True)
        self._server = server
        self._sockets = sockets
        self._context = context
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._is_ended = False
        self._failure: Exception | None = None
        self.live: LiveFeed | None = None
        self._answers: AnswerCache | None = None
        # A child (such as a data loader's) has no server thread, but would keep the port in use after its parent has ended.
        call_in_child(self.close_sockets)

    def begin(self) -> None:
        """Start the thread, and wait until the server accepts connections. Raises the error that prevented it."""
        try:
            self.start()
        except BaseException:  # the thread could not be started
            self.close_sockets()
            raise
        while not self._ready.wait(ALIVE_S) and self.is_alive():
            pass
        if self._failure is not None:
            self.join()  # otherwise ``running`` could still be true
            raise self._failure
        if not self._ready.is_set():
            self.close_sockets()
            raise PortError("The web server's thread ended before it accepted connections.")

    def end(self) -> None:
        self._is_ended = True  # set first, because the thread may not be waiting for ``_end`` yet
        if self._loop is not None and self._end is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self:
            self.wait()

    def wait(self) -> None:
        """Wait until the thread has ended; return at once if it was never started."""
        if self.ident is not None:
            self.join()

    def close_sockets(self) -> None:
        for listener in self._sockets:
            listener.close()

    def contents(self, record: TraceRecord) -> dict[str, Any] | None:
        """See ``WebServer.contents``; None if the server has stopped."""
        answers, loop = self._answers, self._loop
        if answers is None or loop is None or loop.is_closed():
            return None
        with contextlib.suppress(CancelledError):
            return asyncio.run_coroutine_threadsafe(answers.contents(answers.key_of(record)), loop).result()
        return None

    # ---------------------------------------------------------------------------------------------------- on its thread

    def run(self) -> None:
        try:
            loop = self._loop = asyncio.new_event_loop()  # needs three file descriptors, which may not be available
            asyncio.set_event_loop(loop)
            try:
                loop.run_until_complete(self._serve())
            finally:
                self.close_sockets()
                loop.run_until_complete(cancel_tasks())
                loop.close()
        except Exception as problem:
            self._fail(problem)
        finally:
            self._ready.set()
            self.close_sockets()

    def _fail(self, problem: Exception) -> None:
        if self._ready.is_set():
            log.error("tftracer: the web server failed; training and recording go on without the page", exc_info=problem)
        else:
            self._failure = problem

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        quick = WorkerThreads("tftracer-quick", 2, NICE)
        heavy = WorkerThreads("tftracer-analyses", 2, NICE if self._server.source.session()["live"] else 0)
        try:
            services = self._services(quick, heavy)
            http, admission = self._http(services), services.admission
            services.live.start()
            admission.start(self._sockets, http.handle_stream, self._server.job.strangers)
            self._ready.set()
            if not self._is_ended:
                await self._end.wait()
            admission.stop()
            await services.live.stop({"type": "closing", "payload": {"code": "stopped", "message": "The server stops."}})
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(http.close_all_connections(), STOP_S)
        finally:
            quick.stop()
            heavy.stop()

    def _services(self, quick: WorkerThreads, heavy: WorkerThreads) -> Services:
        server, access = self._server, self._server.access()
        self.live = LiveFeed(server.source, quick, server.job.message)
        self._answers = AnswerCache(server.source, heavy, server.engine, secrets.token_hex(8))
        return Services(
            source=server.source,
            access=access,
            links=OneTimeLinks(),
            admission=Admission(access.has_credential, self._context),
            workers=quick,
            answers=self._answers,
            live=self.live,
            sockets=set(),
            rate_limit=RateLimit(server.source, quick),
            static=Static(server.path),
            path_prefix=server.path,
            stop=self.end,
        )

    def _http(self, services: Services) -> Server:
        prefix = f"(?:{re.escape(services.path_prefix)})?" if services.path_prefix else ""
        routes = [*API, *self._server.job.routes, *PAGES]
        application = web.Application(
            [(prefix + pattern, handler, {"services": services, **arguments}) for pattern, handler, arguments in routes],
            log_function=lambda handler: None,  # a URL may hold the token
            websocket_ping_interval=20,
            websocket_max_message_size=1024,
        )
        server = Server(
            application,
            max_header_size=MAX_HEAD_BYTES,
            max_body_size=1 << 20,
            body_timeout=BODY_S,
            idle_connection_timeout=IDLE_CONNECTION_S,
        )
        server.uncounted_connections = self._server.job.connections
        server.on_stream_closed = services.admission.forget_stream
        return server
