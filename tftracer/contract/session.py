"""A session, its runs, their steps and the records of their traces."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Column, Finding
from tftracer.contract.machine import GpuDevice, MeasuredRoof
from tftracer.contract.stalls import SlowSteps

#: Why a step was traced: on the page or by trace_next; by global tracing; the script's own RunOptions; expected to be slow.
AskedBy = Literal["user", "global", "script", "slow"]


class LauncherInfo(TypedDict):
    """What the launcher says of a process of a job (None: not known)."""

    rank: int | None
    size: int | None
    local_rank: int | None
    role: str  # "worker", "ps", "chief", "" where nothing tells
    task: int | None
    launcher: str  # "horovod", "openmpi", "mpich", "pmix", "slurm", "tf_config", ""


class Problem(TypedDict):
    """Something that went wrong in the tracer itself; training went on."""

    code: str
    message: str
    at: float


class Session(TypedDict):
    id: str
    host: str
    pid: int
    rank: int | None
    place: LauncherInfo
    tensorflow: str  # version, "" where not known
    tftracer: str
    python: str
    command: str  # the script's command line
    processor: str  # the CPU's model, "" where not known
    gpus: int | None
    gpu_devices: list[GpuDevice]  # by their numbers; empty where not known
    measured_roof: MeasuredRoof | None  # of this machine, as `tftracer roof --save` found it
    started_at: float
    ended_at: float | None
    no_steps: str  # why there is no run yet, and what to do; "": there are runs, or nothing is known of it
    active: bool  # a hooked session is open, or a compiled function ran in the last seconds
    trace_all: bool
    live: bool  # False: reopened from a file
    file: str  # the spool or the file; "" if in memory only
    steps_lost: int  # steps that were not counted because the queue was full
    slow_watch: Literal["", "on", "off"]  # whether slow steps are looked for; "": a file did not tell
    hook_cost_s: float | None  # what the tracer adds to a session's untraced step that leaves it cold caches
    call_cost_s: float | None  # the same of a call of a compiled function
    problems: list[Problem]
    cut: str  # of a file that ends early: how, in words; "" where it was closed
    damage: str  # of a file: the records that are damaged or were skipped, in words; "" where there are none


class Bookmark(TypedDict):
    """A moment or a range of a trace's time that a user named."""

    name: str
    start_ns: float  # since the step's first start
    end_ns: float | None  # None: a moment


class TraceRecord(TypedDict):
    """One trace in the lists: what is known of it without opening it.

    ``state``: a trace that has just come is "pending" until it is analyzed, and is sent again then; a "broken" one cannot be
    read. ``nodes``, ``devices``, ``findings`` and ``headline`` of a pending trace are not known.
    """

    id: int
    run_id: int
    step: int | None  # the run's step number, from 1; None: a file did not tell
    started_at: float
    duration_s: float | None  # wall time of the traced session.run; None: a file did not tell
    median_s: float | None  # the run's median untraced step when it was traced
    nodes: int | None
    bytes: int  # serialized RunMetadata
    stored_bytes: int  # as kept on disk
    devices: list[str]
    asked_by: AskedBy
    findings: list[Finding]
    headline: str  # the verdict's first sentence, behind how many ops were recorded if not all; "" if not computed
    note: str
    bookmarks: list[Bookmark]
    state: Literal["pending", "ready", "broken"]


class RunStatistics(TypedDict):
    """A run's step times in seconds, traced steps left out unless there are no others. None: not known."""

    steps: int
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    min_s: float | None
    max_s: float | None
    last_s: float | None
    first_run_at: float | None
    last_run_at: float | None
    between_steps_s: float | None  # median time outside session.run between two steps
    traced_overhead_s: float | None  # median of (traced step - median untraced step)
    recent_s: list[float]  # the last 60 step times, oldest first: the sparkline


class RunWithoutTraces(RunStatistics):
    """What a live message says of a run: its traces have messages of their own."""

    id: int
    origin: str  # "": this process ran it; else the file from which it was loaded into the session
    title: str
    fetches: list[str]
    feeds: list[str]
    options: str
    definition: str  # of a compiled function: "train.py:12", "Keras, 8 batches a step"; "" of a session.run
    graph_on_request: bool  # of a compiled function: the graph that ran is not known, and can be requested with a trace
    pending_traces: int
    slow_steps: SlowSteps


class Run(RunWithoutTraces):
    traces: list[TraceRecord]


class SessionMessage(TypedDict):
    session: Session
    runs: list[Run]


class StepTimes(TypedDict):
    """A run's step times (msgpack), oldest first. Old steps are aggregated: an entry stands for ``count`` steps."""

    run_id: int
    step: Column  # f8, number of the entry's first step
    count: Column  # u4
    start_at: Column  # f8, epoch seconds of the first step's start
    mean_s: Column  # f4
    min_s: Column  # f4
    max_s: Column  # f4
    traced: Column  # f8, numbers of the steps that were traced


class Ok(TypedDict):
    ok: Literal[True]


class DownloadLink(TypedDict):
    """Answer to POST /api/links: the path of the download with a code that works once, within a minute."""

    path: str


class Loaded(TypedDict):
    """Answer to POST /api/session/file: what the file held was added to the session."""

    ok: Literal[True]
    runs: int
    traces: int
    cut: str  # as in Session
    damage: str
