"""A job of several processes, the steps traced on all of them, and their analyses."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Finding
from tftracer.contract.ledger import LedgerKind
from tftracer.contract.session import LauncherInfo
from tftracer.contract.trace import Link, Sentence, Transfer


class Process(TypedDict):
    id: str
    title: str  # "rank 0", "worker/1", "ps/0"
    host: str
    pid: int
    place: LauncherInfo  # its place in the job, such as its rank
    clock: str  # id of the clock, the same for all processes on one machine; "": not known
    state: Literal["alive", "ended", "lost"]
    url: str  # URL of its own page, through the hub: "/job/processes/ID/"
    steps: int
    steps_per_s: float | None  # None: not known yet, or the process has ended
    mean_s: float | None
    #: Median time between two steps; for several runs the mean of the medians, weighted by steps; None: not known.
    between_steps_s: float | None
    last_seen_at: float  # epoch seconds
    traces: int
    slow_steps: int | None  # number of slow steps; None: not known
    slow_text: str  # the most important sentence about the slow steps; "" if there are none
    time_s: dict[LedgerKind, float]  # parts of its wall time, which add up to it; empty: not known
    problem: str


class JobTrace(TypedDict):
    """One request to trace a step on several processes."""

    id: int
    title: str
    step: int | None  # the step on all processes; None: each process has a different step, or the step is not chosen yet
    steps: dict[str, int]  # process id -> number of the step that it was asked to trace
    run_title: str
    asked_at: float  # epoch seconds
    state: Literal["pending", "ready", "partial"]
    processes: list[str]  # ids of the processes that were asked for a trace
    ready: list[str]  # ids of the processes that have traced the step
    missing: dict[str, str]  # process id -> why it has no trace


class Job(TypedDict):
    name: str
    hub: str  # URL of the hub's page
    is_hub: bool
    processes: list[Process]
    traces: list[JobTrace]


class JobChanges(TypedDict):
    """Changes since the last message about the job; an entry replaces the one with the same id."""

    processes: list[Process]  # changed processes
    traces: list[JobTrace]  # changed traces, then new traces


class JobTraceRequest(TypedDict, total=False):
    processes: list[str]  # default: all processes that are alive
    run_title: str  # default: each process's busiest run


class ClockOffset(TypedDict):
    process: str
    offset_ns: float | None  # None, like the next two fields, if the offset from the first process's clock is not known
    drift_ppm: float | None
    uncertainty_ns: float | None
    matches: int  # number of common events (collectives, messages) from which the offset is computed


class CollectiveRow(TypedDict):
    name: str
    op: str
    bytes: float | None  # size of its result on one rank; None: not known
    last: str  # the process that arrived last
    spread_ns: float  # time from the first to the last arrival
    waited_ns: dict[str, float]  # process -> how long it waited for the last process


class Straggler(TypedDict):
    process: str
    waited_for_ns: float  # mean time for which the other processes waited for it
    waiting_ns: float  # time for which it waited for other processes
    slower_by_ns: float  # if there are no collectives: by how much its step is longer than the median of the other processes
    cause: Literal["compute", "input", "communication", "none", "uncertain"]
    text: str
    compute_ns: float
    input_ns: float
    exposed_communication_ns: float


class JobTensor(Transfer):
    """A transfer between processes of a job."""

    waited_ns: float  # part of its time in which the receiving process computed nothing


class JobAnalysis(TypedDict):
    clocks: list[ClockOffset]
    collectives: list[CollectiveRow]
    stragglers: list[Straggler]
    usual_suspects: list[Straggler]  # stragglers over all of the job's traces
    links: list[Link]
    tensors: list[JobTensor]  # the longest 5,000
    sentences: list[Sentence]
    findings: list[Finding]
