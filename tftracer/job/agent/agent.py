"""Keeps a process connected to its job's hub: looks for the hub, greets it, and tries again when the connection is lost.

It runs on a daemon thread with a loop of its own, apart from training and from the web server. A hub or a network that fails
costs the process nothing: the agent tries again, less and less often. The hub sends its requests over the connection that the
agent opened, so the process's own page may listen on loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from tornado.httpclient import HTTPError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, WebSocketError, websocket_connect

from tftracer.contract.job import Job
from tftracer.errors import FormatError, StorageError, TracerError
from tftracer.job.agent.connection import BYE_S, HubConnection, RefusedError, close
from tftracer.job.agent.discovery import OwnPage, Plan, Target, publish_hub, unverified, withdraw_hub
from tftracer.job.wire import protocol
from tftracer.job.wire.accepted_addresses import address, digest_of, other_end
from tftracer.job.wire.handshake import VERSION, AlteredError, Channel, Endpoint, Greeting, Keys, new_nonce
from tftracer.job.wire.protocol import MEMBER_BYTES
from tftracer.session.live import Recorder
from tftracer.web.credentials import AGENT_SCHEME, agent_credential, is_loopback
from tftracer.web.ports import netloc
from tftracer.web.worker_threads import WorkerThreads


class DaemonExecutor(ThreadPoolExecutor):
    """Looks up host names on two daemon threads. ``loop.set_default_executor`` only accepts a ``ThreadPoolExecutor``.

    At exit Python waits for the threads of other executors, so a name server that does not answer would delay the exit.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self._daemons = WorkerThreads("tftracer-names", 2)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._daemons.submit(partial(function, *arguments, **named))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the threads without waiting for them."""
        self._daemons.stop()


log = logging.getLogger("tftracer")

FIRST_RETRY_S, LONGEST_RETRY_S = 0.2, 30.0
CONNECT_S = 5.0
#: If a hub that the user named has not answered for this long, a problem is reported; until then it may still be starting.
REPORT_AFTER_S = 30.0


class Agent:
    """Keeps the connection. Any thread may call ``start`` and ``stop``.

    ``own_page``: returns this process's page; None while it has none. ``hub_changed``: called on the agent's thread with the job
    when the process has joined a hub in another process, and with None when the connection to the hub has ended.
    """

    def __init__(
        self,
        source: Recorder,
        plan: Plan,
        own_page: Callable[[], OwnPage | None],
        token: str,
        hub_changed: Callable[[Job | None], None] = lambda job: None,
    ) -> None:
        self._source = source
        self._plan = plan
        self._own_page = own_page
        self._token = token
        self._hub_changed = hub_changed
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._retry_now: asyncio.Event | None = None
        self._published: tuple[str, int] | None = None  # job and port, as in the hub's file
        self._ready = threading.Event()
        self._last_connected_at = time.monotonic()

    # -------------------------------------------------------------------------------------------------- from any thread

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tftracer-agent", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look for the hub now, without waiting for the end of the pause."""
        if self._loop is not None and self._retry_now is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._retry_now.set)

    def stop(self) -> None:
        """Say goodbye to the hub; wait a few seconds at most."""
        thread = self._thread
        if thread is None or not thread.is_alive() or os.getpid() != self._source.session()["pid"]:
            return
        self._ready.wait(CONNECT_S)
        loop, end = self._loop, self._end
        if loop is not None and end is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(end.set)
                self.wake()
        thread.join(2 * BYE_S + 1)

    # ------------------------------------------------------------------------------------------------- on the agent's thread

    def _run(self) -> None:
        try:
            asyncio.run(self._connect_until_end())
        except Exception as problem:
            log.error("tftracer: this process is no longer on its job's page", exc_info=problem)
        finally:
            self._ready.set()

    async def _connect_until_end(self) -> None:
        self._loop, self._end, self._retry_now = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._loop.set_default_executor(DaemonExecutor())
        self._ready.set()
        pause_s = FIRST_RETRY_S
        while not self._end.is_set():
            began = time.monotonic()
            await self._try_targets(self._end)
            lasted_s = time.monotonic() - began
            pause_s = FIRST_RETRY_S if lasted_s > LONGEST_RETRY_S else min(2 * pause_s, LONGEST_RETRY_S)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._retry_now.wait(), pause_s * random.uniform(0.5, 1.0))
            self._retry_now.clear()
        if self._published is not None:
            withdraw_hub(*self._published)

    async def _try_targets(self, end: asyncio.Event) -> None:
        """Connect to the first target that is the hub; return when the connection is over, or if no target is the hub."""
        problem = ""
        for target in self._targets():
            try:
                await self._join(target, end)
                return
            except (RefusedError, AlteredError) as error:
                problem = f"{target.host}:{target.port}: {error}"
            except (OSError, HTTPError, WebSocketError, TracerError, asyncio.TimeoutError, ValueError) as error:
                log.debug("tftracer: no hub at %s:%d: %s", target.host, target.port, error)
                if target.source == "given" and time.monotonic() - self._last_connected_at > REPORT_AFTER_S:
                    problem = _no_answer(target, error)
        if problem:
            self._source.add_problem("job", f"This process is not on its job's page. {problem}")

    def _targets(self) -> list[Target]:
        if not self._plan.is_hub:
            return self._plan.targets()
        page = self._own_page()
        if page is None:
            return []
        self._publish(page)
        return [page.target(self._token)]

    def _publish(self, page: OwnPage) -> None:
        """Write the file by which processes on this host find the hub; write it again if the hub's port changed."""
        if self._published == (self._plan.job, page.port):
            return
        host = page.host if is_loopback(page.ip) else socket.gethostname()
        try:
            publish_hub(self._plan.job, replace(page.target(self._token), host=host))
            self._published = (self._plan.job, page.port)
        except StorageError as problem:
            self._source.add_problem("hub_file", str(problem))

    async def _join(self, target: Target, end: asyncio.Event) -> None:
        """Join the hub at ``target``; return when the connection or this process ends."""
        request = _request(target, self._token)
        connection = await asyncio.wait_for(websocket_connect(request, max_message_size=MEMBER_BYTES), CONNECT_S)
        try:
            channel, job = await asyncio.wait_for(self._greet(connection, target), protocol.GREETING_S)
            self._source.solved("job")
            page = self._own_page()
            if page is None or (page.host, page.port) != (target.host, target.port):
                self._hub_changed({"name": job, "hub": _url(target), "is_hub": False, "processes": [], "traces": []})
            await HubConnection(connection, channel, self._source, self._own_page).run(end)
            self._last_connected_at = time.monotonic()
        finally:
            self._hub_changed(None)
            await close(connection)

    async def _greet(self, connection: WebSocketClientConnection, target: Target) -> tuple[Channel, str]:
        """Return (channel to the hub, the job's name).

        This process identifies itself only after the hub has proved that it knows the token.
        """
        hello = protocol.unpack(await connection.read_message())
        if hello["t"] != "hello":
            raise FormatError("no hub")
        if protocol.number(hello, "version") != VERSION:
            raise RefusedError("it runs another version of tftracer; install the same one for all processes of the job.")
        job = protocol.text(hello, "job", 300)
        if self._plan.job not in ("", job) and not (target.any_job and job == ""):
            name = repr(job[:100]) if job else "without a name"
            raise RefusedError(f"it is the hub of another job ({name}). If that is wrong, set TFTRACER_JOB for all processes.")
        endpoint, nonce = _endpoint(connection, target), new_nonce()
        greeting = Greeting(job, protocol.text(hello, "id", 100), protocol.text(hello, "nonce", 100), nonce, endpoint)
        keys = Keys(target.token or self._token, greeting)
        join = {"job": job, "nonce": nonce, **asdict(endpoint), "proof": keys.proof("agent")}
        await connection.write_message(protocol.pack("join", **join), binary=True)
        answer = protocol.unpack(await connection.read_message())
        if answer["t"] == "refused":
            raise RefusedError(protocol.refusal(answer, endpoint.dialled))
        if answer["t"] != "welcome" or not keys.proves("hub", answer.get("proof")):
            raise RefusedError("it does not know the job's token, so it is not the job's hub.")
        return keys.channel("agent"), job


def _request(target: Target, own_token: str) -> HTTPRequest:
    # A target that comes from this user's file, or is this process, is on this host. Any other must have a valid certificate.
    context: ssl.SSLContext | None = unverified() if target.secure and target.source in ("file", "own") else None
    return HTTPRequest(
        f"{'wss' if target.secure else 'ws'}://{netloc(target.host, target.port)}{target.path}/api/job/agents",
        headers={"Authorization": f"{AGENT_SCHEME} {agent_credential(target.token or own_token, new_nonce())}"},
        connect_timeout=CONNECT_S,
        request_timeout=CONNECT_S,
        ssl_options=context,
    )


def _url(target: Target) -> str:
    return f"{'https' if target.secure else 'http'}://{netloc(target.host, target.port)}{target.path}/"


def _endpoint(connection: WebSocketClientConnection, target: Target) -> Endpoint:
    """Return the hub's address and certificate as this process sees them."""
    stream: Any = getattr(connection.protocol, "stream", None)
    certificate = stream.socket.getpeercert(binary_form=True) if target.secure else None
    return Endpoint(address(target.host, target.port), other_end(stream), digest_of(certificate))


def _no_answer(target: Target, error: Exception) -> str:
    reason = str(error) or type(error).__name__
    return (
        f"No hub answers at {target.host}:{target.port} ({reason[:200]}); the agent keeps trying. Is that page up, and does it "
        'listen where this host can reach it (server_ip="0.0.0.0")? If its port was taken, its log names another.'
    )
