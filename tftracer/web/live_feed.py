"""The session's changes, sent to all connected browsers: a snapshot first, then at most ten messages a second.

A change may be published from any thread and only goes to the outbox (live_outbox.py). Everything else runs on the server's
loop. Each message is serialized once for all browsers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Protocol

from tftracer.contract.encoding import dumps
from tftracer.contract.job import Job
from tftracer.contract.live import Closing, LiveMessage, SnapshotMessage
from tftracer.session.source import SessionSource
from tftracer.web.live_outbox import PRIORITIES, MessageRate, Outbox
from tftracer.web.worker_threads import WorkerThreads

TICK_S = 0.1
SNAPSHOT_INTERVAL_S = 1.0  # between two that replace trace messages
SENDS_AT_ONCE = 20  # between two turns of the loop
MAX_BROWSERS = 200


class Browser(Protocol):
    """A connected browser. None of these waits for it."""

    def send_snapshot(self) -> None: ...

    def send(self, text: str) -> None: ...

    def send_last(self, text: str) -> None:
        """Sends the message and disconnects."""


class LiveFeed:
    """Sends the session's changes to all connected browsers."""

    def __init__(self, source: SessionSource, workers: WorkerThreads, job: Callable[[], Job | None] = lambda: None) -> None:
        self._source = source
        self._workers = workers
        self._job = job
        self._outbox = Outbox()
        self._rate = MessageRate()
        self._snapshot_sent_at = float("-inf")
        self._browsers: set[Browser] = set()
        self._snapshot: asyncio.Future[str] | None = None
        self._sender: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake_up: asyncio.Future[None] | None = None  # done: something urgent is in the outbox
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._unsubscribe = self._source.subscribe(self.publish)
        self._loop = asyncio.get_running_loop()
        self._wake_up = self._loop.create_future()
        self._sender = asyncio.ensure_future(self._send_forever())

    def publish(self, message: LiveMessage) -> None:
        """From any thread. Without browsers the message is dropped. A trace is sent without waiting for the next tick."""
        if self._browsers:
            self._outbox.put(message)
            if message["type"] == "trace" and self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._wake_up is not None and not self._wake_up.done():
            self._wake_up.set_result(None)

    @property
    def has_browsers(self) -> bool:
        """From any thread."""
        return bool(self._browsers)

    @property
    def is_full(self) -> bool:
        return len(self._browsers) >= MAX_BROWSERS

    def connect(self, browser: Browser) -> None:
        if not self._browsers:
            self._snapshot = None  # changes since then were dropped
        self._browsers.add(browser)
        browser.send_snapshot()

    def disconnect(self, browser: Browser) -> None:
        self._browsers.discard(browser)

    def send_snapshots(self) -> None:
        """To all browsers: the session was replaced, or trace messages were dropped."""
        self._snapshot = None
        for browser in self._browsers:
            browser.send_snapshot()

    async def snapshot(self) -> str:
        """The snapshot, serialized; the same one for all who ask within a tick."""
        if self._snapshot is None:
            self._snapshot = asyncio.wrap_future(self._workers.submit(self._make_snapshot))
            asyncio.get_running_loop().call_later(TICK_S, self._forget, self._snapshot)
        return await asyncio.shield(self._snapshot)

    def _forget(self, snapshot: asyncio.Future[str]) -> None:
        if self._snapshot is snapshot:
            self._snapshot = None

    def _make_snapshot(self) -> str:
        source = self._source
        message: SnapshotMessage = {
            "type": "snapshot",
            "payload": {"session": source.session(), "runs": source.runs(), "job": self._job()},
        }
        return dumps(message)

    async def stop(self, reason: Closing) -> None:
        """Sends the reason to all browsers and disconnects them."""
        self._unsubscribe()
        if self._sender is not None:
            self._sender.cancel()
        text = dumps(reason)
        for browser in list(self._browsers):
            browser.send_last(text)

    async def _send_forever(self) -> None:
        assert self._loop is not None and self._wake_up is not None
        while True:
            await asyncio.wait([self._wake_up], timeout=TICK_S)
            if self._wake_up.done():
                self._wake_up = self._loop.create_future()
            await self._send_due()

    async def _send_due(self) -> None:
        """Sends what the rate allows now, urgent messages first."""
        if not self._browsers:
            self._outbox.clear()
        self._send_requested_snapshot()
        for priority in PRIORITIES:
            while self._rate.allows(priority, len(self._browsers)):
                message = self._outbox.take(priority)
                if message is None:
                    break
                self._rate.sent(priority)
                await self._send(dumps(message))

    def _send_requested_snapshot(self) -> None:
        now = time.monotonic()
        if now - self._snapshot_sent_at >= SNAPSHOT_INTERVAL_S and self._outbox.take_snapshot_request():
            self._snapshot_sent_at = now
            self.send_snapshots()

    async def _send(self, text: str) -> None:
        self._snapshot = None  # it lacks this message, which browsers that connect later will not get
        for position, browser in enumerate(list(self._browsers), 1):
            browser.send(text)
            if position % SENDS_AT_ONCE == 0:
                await asyncio.sleep(0)  # the loop's poll releases the interpreter's lock
