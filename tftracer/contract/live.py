"""The live WebSocket: ``{type, payload}`` messages, a snapshot first."""

from __future__ import annotations

from typing import Literal, TypedDict, Union

from tftracer.contract.basics import ErrorBody
from tftracer.contract.job import Job, JobChanges
from tftracer.contract.session import Run, RunWithoutTraces, Session, TraceRecord


class Snapshot(TypedDict):
    """The first message of a connection; the following messages are changes to it."""

    session: Session
    runs: list[Run]
    job: Job | None


class SnapshotMessage(TypedDict):
    type: Literal["snapshot"]
    payload: Snapshot


class SessionUpdate(TypedDict):
    type: Literal["session"]
    payload: Session


class RunUpdate(TypedDict):
    type: Literal["run"]
    payload: RunWithoutTraces


class TraceUpdate(TypedDict):
    type: Literal["trace"]
    payload: TraceRecord


class TraceRemoved(TypedDict):
    type: Literal["trace_removed"]
    payload: TraceRecord


class JobUpdate(TypedDict):
    type: Literal["job"]
    payload: Job


class JobChangesUpdate(TypedDict):
    """Sent instead of the whole job if no process was added, removed or renamed."""

    type: Literal["job_changes"]
    payload: JobChanges


class Closing(TypedDict):
    type: Literal["closing"]
    payload: ErrorBody


LiveMessage = Union[SnapshotMessage, SessionUpdate, RunUpdate, TraceUpdate, TraceRemoved, JobUpdate, JobChangesUpdate, Closing]
