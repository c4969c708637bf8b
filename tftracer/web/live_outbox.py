"""What the live WebSocket has not sent yet, and how often it may send.

Any thread puts messages into the outbox; the server's loop takes them. Two priorities: *urgent* messages are those that a user
waits for (a trace, the session's state); *progress* is all that counts up with each step, and is sent less often.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Literal, cast

from tftracer.contract.job import JobChanges
from tftracer.contract.live import LiveMessage

Priority = Literal["urgent", "progress"]
PRIORITIES: tuple[Priority, ...] = ("urgent", "progress")

MESSAGES_PER_S = 10
PROGRESS_INTERVAL_S = 1 / 6
#: A send to one browser holds the interpreter's lock for about 50 µs: at most 1% of a core for progress.
PROGRESS_SENDS_PER_S = 200
URGENT = frozenset({"trace", "trace_removed", "session", "closing", "job", "job_changes"})
TRACE_MESSAGES = frozenset({"trace", "trace_removed"})
#: With more trace messages than this in the outbox (every step is traced), a snapshot replaces them.
MAX_TRACES = 20


def subject_of(message: LiveMessage) -> str:
    """What a message is about. A newer message replaces an older one about the same subject."""
    payload = cast("dict[str, Any]", message["payload"])
    if message["type"] in TRACE_MESSAGES:
        return f"trace {payload['id']}"
    return f"run {payload['id']}" if message["type"] == "run" else message["type"]


def join_job_changes(older: JobChanges, newer: JobChanges) -> JobChanges:
    """The changes of both messages; of two with the same id the newer one."""
    return {
        "processes": list({p["id"]: p for p in (*older["processes"], *newer["processes"])}.values()),
        "traces": list({t["id"]: t for t in (*older["traces"], *newer["traces"])}.values()),
    }


def join(older: LiveMessage | None, newer: LiveMessage) -> LiveMessage:
    """The message that replaces both."""
    if older is not None and older["type"] == "job_changes" and newer["type"] == "job_changes":
        return {"type": "job_changes", "payload": join_job_changes(older["payload"], newer["payload"])}
    return newer


class Outbox:
    """Messages to be sent, one for each subject: its size is bounded by the number of runs and traces. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: dict[Priority, OrderedDict[str, LiveMessage]] = {name: OrderedDict() for name in PRIORITIES}
        self._needs_snapshot = False

    def put(self, message: LiveMessage) -> None:
        messages = self._messages["urgent" if message["type"] in URGENT else "progress"]
        subject = subject_of(message)
        with self._lock:
            if message["type"] in TRACE_MESSAGES and self._has_too_many_traces():
                return
            if message["type"] == "job":  # includes the changes before it
                messages.pop("job_changes", None)
            messages[subject] = join(messages.get(subject), message)  # an older one's place in the queue is kept

    def _has_too_many_traces(self) -> bool:
        """True until the next snapshot, which includes them all."""
        urgent = self._messages["urgent"]
        waiting = [subject for subject, message in urgent.items() if message["type"] in TRACE_MESSAGES]
        if not self._needs_snapshot and len(waiting) >= MAX_TRACES:
            self._needs_snapshot = True
            for subject in waiting:
                del urgent[subject]
        return self._needs_snapshot

    def take_snapshot_request(self) -> bool:
        """Whether a snapshot has to replace trace messages that were dropped; False the next time."""
        with self._lock:
            needed, self._needs_snapshot = self._needs_snapshot, False
            return needed

    def take(self, priority: Priority) -> LiveMessage | None:
        """The oldest message."""
        messages = self._messages[priority]
        with self._lock:
            return messages.popitem(last=False)[1] if messages else None

    def clear(self) -> None:
        with self._lock:
            for messages in self._messages.values():
                messages.clear()
            self._needs_snapshot = False

    def __len__(self) -> int:
        return sum(map(len, self._messages.values()))


class MessageRate:
    """When the next message may be sent: never more than ten in a second, progress at even intervals."""

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

    def sent(self, priority: Priority) -> None:
        now = self._clock()
        self._sent_at.append(now)
        if priority == "progress":
            self._progress_at = now
