"""The state of the job in the hub: its processes, their totals, and the steps that were traced on several of them. No HTTP.

Runs on the server's loop; ``job_message`` may be called from any thread. The work grows only with the number of processes: a
heartbeat has only totals, and pages get only rows that changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, get_args

from tftracer.contract.job import Job, JobTrace, Process
from tftracer.contract.ledger import LedgerKind
from tftracer.contract.live import JobChangesUpdate, JobUpdate
from tftracer.contract.session import TraceRecord
from tftracer.errors import UnknownError
from tftracer.job.hub.replies import Reply
from tftracer.job.wire.protocol import Message, number, seconds, text
from tftracer.session.process.launcher import no_launcher, process_title
from tftracer.storage.untrusted import launcher_info

#: Heartbeats per second of all processes together: in a large job each process sends fewer.
HEARTBEATS_PER_S = 60.0
HEARTBEAT_S, LONGEST_HEARTBEAT_S = 1.0, 30.0
#: A process is lost if it missed this many heartbeats and was then silent for the grace time.
MISSED_HEARTBEATS, GRACE_S = 3.0, 10.0
MAX_PROCESSES = 10_000
MAX_TRACES = 1000


class Connection(Protocol):
    """The hub's end of the connection to one process (connection.py)."""

    def post(self, kind: str, **fields: Any) -> None:
        """Send a message without an answer; it is lost if the connection is lost."""

    def ask(self, kind: str, **fields: Any) -> AbstractAsyncContextManager[Reply]:
        """Make a request that the process answers; leaving the context early cancels it."""

    def drop(self, reason: str) -> None: ...


@dataclass(eq=False)
class Member:
    """One process of the job. ``connection`` is None once the process has ended or was lost."""

    id: str
    info: Process
    connection: Connection | None
    heard_at: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class TracedStep:
    """A request to trace one step on several processes. ``records``: process id -> record of its trace."""

    message: JobTrace
    records: dict[str, TraceRecord] = field(default_factory=dict)


@dataclass
class Changes:
    """The changes that have not been sent to pages yet."""

    processes: set[str] = field(default_factory=set)
    traces: set[int] = field(default_factory=set)
    everything: bool = False  # a process has come, gone or changed its name


class Hub:
    """The job's state. ``changed`` is called on the loop after each change that pages show."""

    def __init__(self, own_id: str, name: str) -> None:
        self.own_id = own_id
        self.name = name
        self.address: Callable[[], str] = lambda: ""  # URL of the hub's page
        self.members: dict[str, Member] = {}
        self.traces: dict[int, TracedStep] = {}
        self.changed: Callable[[], None] = lambda: None
        self.path = ""  # prefix of the URL paths of the processes' pages
        self._changes = Changes()
        self._last_trace = 0
        self._connected = 0
        self._lock = threading.RLock()

    @property
    def interval_s(self) -> float:
        return min(max(HEARTBEAT_S, self._connected / HEARTBEATS_PER_S), LONGEST_HEARTBEAT_S)

    def connected(self) -> int:
        return self._connected

    def join(self, fields: Message, connection: Connection) -> Member | None:
        """Add a process that has connected, or connected again; drop its older connection. Return None if there are too many."""
        process_id = text(fields, "id", 64)
        old = self.members.get(process_id)
        with self._lock:
            if old is None and len(self.members) >= MAX_PROCESSES and not self._forget_disconnected():
                return None
            member = self.members[process_id] = Member(process_id, self.process(process_id, fields), connection)
            self._connected += old is None or old.connection is None
        if old is not None and old.connection is not None:
            old.connection.drop("replaced")
        self._changes.everything = True
        self.changed()
        return member

    def heartbeat(self, member: Member, fields: Message) -> None:
        """Update a process. ``fields``: totals, and ``process`` if its identity has changed."""
        member.heard_at = time.monotonic()
        process = fields.get("process")
        if isinstance(process, dict):
            member.info = self.process(member.id, process)
            self._changes.everything = True
        else:
            member.info = cast("Process", {**member.info, **_totals(fields)})
            self._changes.processes.add(member.id)
        self.changed()

    def leave(self, member: Member, state: str) -> None:
        """Mark a process as disconnected. ``state``: ``ended`` if it said goodbye, ``lost`` if its connection broke."""
        if self.members.get(member.id) is not member or member.connection is None:
            return
        with self._lock:
            member.connection = None
            self._connected -= 1
            member.info = {**member.info, "state": "ended" if state == "ended" else "lost", "steps_per_s": None}
        self._changes.processes.add(member.id)
        self.changed()

    def drop_silent(self) -> None:
        """Mark processes as lost that have sent nothing for too long."""
        now, patience_s = time.monotonic(), MISSED_HEARTBEATS * self.interval_s + GRACE_S
        for member in list(self.members.values()):
            if member.connection is not None and now - member.heard_at > patience_s:
                connection = member.connection
                self.leave(member, "lost")
                connection.drop("no heartbeat")

    def connection(self, process_id: str) -> Connection:
        """Return a process's connection. Raises UnknownError if there is no such process, or if it is not connected."""
        member = self.members.get(process_id)
        if member is None:
            raise UnknownError(f"The job has no process {process_id[:80]!r}; GET /api/job lists its processes.")
        if member.connection is None:
            raise UnknownError(f"{member.info['title']} is {member.info['state']}: its page cannot be reached now.")
        return member.connection

    def title(self, process_id: str) -> str:
        member = self.members.get(process_id)
        return member.info["title"] if member is not None else process_id

    def _forget_disconnected(self) -> bool:
        oldest = next((m.id for m in self.members.values() if m.connection is None), None)
        if oldest is not None:
            del self.members[oldest]
        return oldest is not None

    def process(self, process_id: str, fields: Message) -> Process:
        """Return a process's row, made of the fields that it sent about itself. Their types are checked."""
        given = fields.get("place")
        launcher = launcher_info(given) if isinstance(given, dict) else no_launcher()
        pid = number(fields, "pid")
        identity = {
            "id": process_id,
            "title": text(fields, "title", 200) or process_title(launcher, pid),
            "host": text(fields, "host", 200),
            "pid": pid,
            "place": launcher,
            "clock": text(fields, "clock", 100),
            "state": "alive",
            "url": f"{self.path}/job/processes/{process_id}/",
        }
        return cast("Process", {**identity, **_totals(fields)})

    def new_trace(self, processes: list[str], run_title: str) -> TracedStep:
        order = {process: _order(self.members[process].info) for process in processes if process in self.members}
        processes = sorted(processes, key=lambda process: (process not in order, order.get(process, ())))
        with self._lock:
            self._last_trace += 1
            message: JobTrace = {
                "id": self._last_trace,
                "title": f"Step on {len(processes)} processes",
                "step": None,
                "steps": {},
                "run_title": run_title,
                "asked_at": time.time(),
                "state": "pending",
                "processes": processes,
                "ready": [],
                "missing": {},
            }
            traced = self.traces[self._last_trace] = TracedStep(message)
            while len(self.traces) > MAX_TRACES:
                del self.traces[next(iter(self.traces))]
                self._changes.everything = True
        self._changes.traces.add(self._last_trace)
        self.changed()
        return traced

    def trace(self, trace_id: int) -> TracedStep:
        traced = self.traces.get(trace_id)
        if traced is None:
            raise UnknownError(f"The job has no trace {trace_id}; GET /api/job lists its traces.")
        return traced

    def update_trace(self, traced: TracedStep, **changes: Any) -> None:
        """Replace fields of the trace's message. Its state follows from the ready and the missing processes."""
        with self._lock:
            message: JobTrace = {**traced.message, **changes}  # type: ignore[typeddict-item]
            if len(message["ready"]) + len(message["missing"]) >= len(message["processes"]):
                message["state"] = "partial" if message["missing"] else "ready"
                message["ready"] = [p for p in message["processes"] if p in traced.records]  # the order of the lanes
            traced.message = message
        self._changes.traces.add(message["id"])
        self.changed()

    def add_record(self, traced: TracedStep, process_id: str, record: TraceRecord) -> None:
        """Add or update the record of a process's trace."""
        message, is_new = traced.message, process_id not in traced.records
        traced.records[process_id] = record
        missing = dict(message["missing"])
        missing.pop(process_id, None)
        self.update_trace(traced, ready=[*message["ready"], process_id] if is_new else message["ready"], missing=missing)

    def reset_trace(self, traced: TracedStep) -> None:
        """Forget the traces of this step, because another step will be selected."""
        traced.records.clear()
        self.update_trace(traced, step=None, steps={}, ready=[])

    def add_missing(self, traced: TracedStep, reasons: Mapping[str, str]) -> None:
        """Mark processes as missing: process id -> why. All in one call, because each update copies the message."""
        requested = set(traced.message["processes"])
        new = {process: why for process, why in reasons.items() if process in requested and process not in traced.records}
        if new:
            self.update_trace(traced, missing={**traced.message["missing"], **new})

    def take_update(self) -> JobUpdate | JobChangesUpdate:
        """Return the changes since the last call, for the pages."""
        changes, self._changes = self._changes, Changes()
        if changes.everything:
            return {"type": "job", "payload": self.job_message()}
        processes = [self.members[process].info for process in changes.processes if process in self.members]
        traces = [self.traces[trace].message for trace in sorted(changes.traces) if trace in self.traces]
        return {"type": "job_changes", "payload": {"processes": processes, "traces": traces}}

    def job_message(self) -> Job:
        with self._lock:
            return {
                "name": self.name,
                "hub": self.address(),
                "is_hub": True,
                "processes": sorted((m.info for m in self.members.values()), key=_order),
                "traces": [traced.message for traced in self.traces.values()],
            }


def _totals(fields: Message) -> dict[str, Any]:
    """Return the totals of a heartbeat, after checks."""
    return {
        "steps": number(fields, "steps"),
        "steps_per_s": seconds(fields, "steps_per_s"),
        "mean_s": seconds(fields, "mean_s"),
        "between_steps_s": seconds(fields, "between_steps_s"),
        "last_seen_at": time.time(),
        "traces": number(fields, "traces"),
        "slow_steps": number(fields, "slow_steps") if "slow_steps" in fields else None,
        "slow_text": text(fields, "slow_text", 300),
        "time_s": _times(fields.get("time_s")),
        "problem": text(fields, "problem"),
    }


def _times(given: Any) -> dict[str, float]:
    times = given if isinstance(given, dict) else {}
    return {kind: spent for kind in get_args(LedgerKind) if (spent := seconds(times, kind)) is not None}


def _order(process: Process) -> tuple[Any, ...]:
    """Return the sort key: chief, workers, servers, by number; unknown processes come last."""
    launcher = process["place"]
    rank, task = launcher["rank"], launcher["task"]
    return (rank is None, rank or 0, launcher["role"], task or 0, process["title"], process["id"])
