"""Sends the session's changes to all connected browsers: a snapshot first, then at most ten messages per second.

A change may be published from any thread. Publishing only puts it into the outbox; everything else runs on the server's loop.
Each message is serialized once for all browsers.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Literal, Protocol, cast

from tftracer.contract.encoding import dumps
from tftracer.contract.job import Job
from tftracer.contract.live import Closing, LiveMessage, SnapshotMessage
from tftracer.session.answers import SessionSource
from tftracer.web.worker_threads import WorkerThreads

Priority = Literal["urgent", "progress"]
PRIORITIES: tuple[Priority, ...] = ("urgent", "progress")

MESSAGES_PER_S = 10
PROGRESS_INTERVAL_S = 1 / 6
#: A send to one browser holds the GIL for about 50 µs: progress takes at most 1% of a core.
PROGRESS_SENDS_PER_S = 200
URGENT = frozenset({"trace", "trace_removed", "session", "closing", "job", "job_changes"})
TRACE_MESSAGES = frozenset({"trace", "trace_removed"})
#: A snapshot replaces the trace messages in the outbox if there are more than this, as when every step is traced.
MAX_TRACES = 20


def subject_of(message: LiveMessage) -> str:
    """Return the subject of a message. A newer message replaces an older one about the same subject."""
    payload = cast("dict[str, Any]", message["payload"])
    if message["type"] in TRACE_MESSAGES:
        return f"trace {payload['id']}"
    return f"run {payload['id']}" if message["type"] == "run" else message["type"]


def join(older: LiveMessage | None, newer: LiveMessage) -> LiveMessage:
    """Return the message that replaces both. Of two changes of one process or trace, the newer one is used."""
    if older is None or older["type"] != "job_changes" or newer["type"] != "job_changes":
        return newer
    before, now = older["payload"], newer["payload"]
    processes = {process["id"]: process for process in (*before["processes"], *now["processes"])}
    traces = {trace["id"]: trace for trace in (*before["traces"], *now["traces"])}
    return {"type": "job_changes", "payload": {"processes": list(processes.values()), "traces": list(traces.values())}}


class Outbox:
    """The messages to send, one per subject, so that its size is limited by the number of runs and traces. Thread-safe.

    A user waits for *urgent* messages (a trace, the session's state); *progress* messages come with each step.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: dict[Priority, OrderedDict[str, LiveMessage]] = {name: OrderedDict() for name in PRIORITIES}
        self._needs_snapshot = False

    def put(self, message: LiveMessage) -> None:
        messages = self._messages["urgent" if message["type"] in URGENT else "progress"]
        subject = subject_of(message)
        with self._lock:
            if message["type"] in TRACE_MESSAGES and self._drop_traces_if_too_many():
                return
            if message["type"] == "job":  # it includes the job's earlier changes
                messages.pop("job_changes", None)
            messages[subject] = join(messages.get(subject), message)  # keeps the older message's position in the queue

    def _drop_traces_if_too_many(self) -> bool:
        """If MAX_TRACES trace messages wait, drop them, and request a snapshot.

        Return whether trace messages are dropped now, because the next snapshot includes them.
        """
        urgent = self._messages["urgent"]
        waiting = [subject for subject, message in urgent.items() if message["type"] in TRACE_MESSAGES]
        if not self._needs_snapshot and len(waiting) >= MAX_TRACES:
            self._needs_snapshot = True
            for subject in waiting:
                del urgent[subject]
        return self._needs_snapshot

    def take_snapshot_request(self) -> bool:
        """Return whether a snapshot must replace dropped trace messages, and forget the request."""
        with self._lock:
            needed, self._needs_snapshot = self._needs_snapshot, False
            return needed

    def take(self, priority: Priority) -> LiveMessage | None:
        """Remove and return the oldest message of a priority."""
        messages = self._messages[priority]
        with self._lock:
            return messages.popitem(last=False)[1] if messages else None

    def clear(self) -> None:
        with self._lock:
            for messages in self._messages.values():
                messages.clear()
            self._needs_snapshot = False


class MessageRate:
    """Limits the rate of messages: at most ten per second, progress at even intervals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent_at: deque[float] = deque(maxlen=MESSAGES_PER_S)
        self._progress_at = float("-inf")

    def allows(self, priority: Priority, clients: int) -> bool:
        now = self._clock()
        if len(self._sent_at) == MESSAGES_PER_S and now - self._sent_at[0] <= 1.0:
            return False
        interval_s = max(PROGRESS_INTERVAL_S, clients / PROGRESS_SENDS_PER_S)
        return priority == "urgent" or now - self._progress_at >= interval_s

    def count(self, priority: Priority) -> None:
        now = self._clock()
        self._sent_at.append(now)
        if priority == "progress":
            self._progress_at = now


TICK_S = 0.1
SNAPSHOT_INTERVAL_S = 1.0  # between two snapshots that replace trace messages
SENDS_AT_ONCE = 20  # per iteration of the event loop
MAX_BROWSERS = 200


class Browser(Protocol):
    """A connected browser. The methods do not wait for it."""

    def send_snapshot(self) -> None: ...

    def send(self, text: str) -> None: ...

    def send_last(self, text: str) -> None:
        """Send the message and disconnect."""


class LiveFeed:
    """Sends the session's changes to all connected browsers. Must be created on the server's loop."""

    def __init__(self, source: SessionSource, workers: WorkerThreads, job: Callable[[], Job | None] = lambda: None) -> None:
        self._source = source
        self._workers = workers
        self._job = job
        self._outbox = Outbox()
        self._rate = MessageRate()
        self._snapshot_sent_at = float("-inf")
        self._browsers: set[Browser] = set()
        self._snapshot: asyncio.Future[str] | None = None
        self._loop = asyncio.get_running_loop()
        self._wake_up: asyncio.Future[None] = self._loop.create_future()  # done when a trace was published

    def start(self) -> None:
        self._unsubscribe = self._source.subscribe(self.publish)
        self._sender = asyncio.ensure_future(self._send_forever())

    def publish(self, message: LiveMessage) -> None:
        """Publish a message, from any thread. Without browsers it is dropped. A trace does not wait for the next tick."""
        if self._browsers:
            self._outbox.put(message)
            if message["type"] == "trace":
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self._wake_up.done():
            self._wake_up.set_result(None)

    @property
    def has_browsers(self) -> bool:
        """Whether any browser is connected. From any thread."""
        return bool(self._browsers)

    @property
    def is_full(self) -> bool:
        return len(self._browsers) >= MAX_BROWSERS

    def connect(self, browser: Browser) -> None:
        if not self._browsers:
            self._snapshot = None  # it is outdated: changes were dropped while there was no browser
        self._browsers.add(browser)
        browser.send_snapshot()

    def disconnect(self, browser: Browser) -> None:
        self._browsers.discard(browser)

    def send_snapshots(self) -> None:
        """Send a snapshot to all browsers, because the session was replaced or trace messages were dropped."""
        self._snapshot = None
        for browser in self._browsers:
            browser.send_snapshot()

    async def snapshot(self) -> str:
        """Return the serialized snapshot, which is shared by all requests within a tick."""
        if self._snapshot is None:
            self._snapshot = asyncio.wrap_future(self._workers.submit(self._make_snapshot))
            self._loop.call_later(TICK_S, self._forget_snapshot, self._snapshot)
        return await asyncio.shield(self._snapshot)

    def _forget_snapshot(self, snapshot: asyncio.Future[str]) -> None:
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
        """Send the reason to all browsers and disconnect them."""
        self._unsubscribe()
        self._sender.cancel()
        text = dumps(reason)
        for browser in list(self._browsers):
            browser.send_last(text)

    async def _send_forever(self) -> None:
        while True:
            await asyncio.wait([self._wake_up], timeout=TICK_S)
            if self._wake_up.done():
                self._wake_up = self._loop.create_future()
            await self._send_due()

    async def _send_due(self) -> None:
        """Send the messages that the rate allows now, urgent ones first."""
        if not self._browsers:
            self._outbox.clear()
        self._send_requested_snapshot()
        for priority in PRIORITIES:
            while self._rate.allows(priority, len(self._browsers)):
                message = self._outbox.take(priority)
                if message is None:
                    break
                self._rate.count(priority)
                await self._send(dumps(message))

    def _send_requested_snapshot(self) -> None:
        now = time.monotonic()
        if now - self._snapshot_sent_at >= SNAPSHOT_INTERVAL_S and self._outbox.take_snapshot_request():
            self._snapshot_sent_at = now
            self.send_snapshots()

    async def _send(self, text: str) -> None:
        self._snapshot = None  # outdated: browsers that connect later will not get this message
        for position, browser in enumerate(list(self._browsers), 1):
            browser.send(text)
            if position % SENDS_AT_ONCE == 0:
                await asyncio.sleep(0)  # the event loop's poll releases the GIL
