"""A session, its runs, their steps and the records of their traces."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Column, Finding
from tftracer.contract.machine import GpuDevice, MeasuredRoof
from tftracer.contract.stalls import SlowSteps

#: Why a step was traced. user: on request (page, trace_next). global: all steps are traced. script: the script's own RunOptions
#: requested it. slow: it was expected to be slow.
AskedBy = Literal["user", "global", "script", "slow"]


class LauncherInfo(TypedDict):
    """What the launcher says about a process of a job (None: not known)."""

    rank: int | None
    size: int | None
    local_rank: int | None
    role: str  # "worker", "ps", "chief"; "" if not known
    task: int | None
    launcher: str  # "horovod", "openmpi", "mpich", "pmix", "slurm", "tf_config", ""


class Problem(TypedDict):
    """Something that went wrong in the tracer itself; training went on."""

    code: str
    message: str
    at: float  # epoch seconds


class Session(TypedDict):
    id: str
    host: str
    pid: int
    rank: int | None
    place: LauncherInfo  # its place in the job, such as its rank
    tensorflow: str  # version; "" if not known
    tftracer: str
    python: str
    command: str  # the script's command line
    processor: str  # the CPU's model; "" if not known
    gpus: int | None
    gpu_devices: list[GpuDevice]  # in the order of their numbers; empty if not known
    measured_roof: MeasuredRoof | None  # rates of this machine that `tftracer roof --save` has measured
    started_at: float
    ended_at: float | None
    no_steps: str  # why there is no run yet, and what to do; "": there are runs, or the reason is not known
    active: bool  # whether a TensorFlow session is open, or a compiled function runs or has just run
    trace_all: bool
    live: bool  # False: opened from a file
    file: str  # path of the file that a live session is written to, or that was opened; "" if in memory only
    steps_lost: int  # steps that were not counted because the queue was full
    slow_watch: Literal["", "on", "off"]  # whether slow steps are looked for; "": not known, for some files
    hook_cost_s: float | None  # seconds that the tracer adds to an untraced session.run, with cold caches
    call_cost_s: float | None  # the same for a call of a compiled function
    problems: list[Problem]
    cut: str  # how the file ends early, in words; "" if it is complete
    damage: str  # which records of the file are damaged or were skipped, in words; "" if none


class Bookmark(TypedDict):
    """A moment or a range of a trace's time that a user named."""

    name: str
    start_ns: float  # since the start of the step's first op
    end_ns: float | None  # None: a moment


class TraceRecord(TypedDict):
    """One trace in the lists: what is known about it without opening it.

    ``state``: a new trace is "pending" until it is analyzed; then it is sent again. A "broken" trace cannot be read. ``nodes``,
    ``devices``, ``findings`` and ``headline`` of a pending trace are not known.
    """

    id: int
    run_id: int
    step: int | None  # the run's step number, from 1; None: not known, for some files
    started_at: float
    duration_s: float | None  # wall time of the traced session.run or call; None: not known, for some files
    median_s: float | None  # median of the run's untraced steps when this step was traced
    nodes: int | None
    bytes: int  # size of the serialized RunMetadata or XSpace
    stored_bytes: int  # size on disk
    devices: list[str]
    asked_by: AskedBy
    findings: list[Finding]
    headline: str  # the verdict in short (verdict.headline), mainly its first sentence; "" if not computed
    note: str
    bookmarks: list[Bookmark]
    state: Literal["pending", "ready", "broken"]


class RunStatistics(TypedDict):
    """A run's step times in seconds. Traced steps count only if there are no others. None: not known."""

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
    recent_s: list[float]  # the last 60 step times, oldest first, for the sparkline


class RunWithoutTraces(RunStatistics):
    """A run in a live message. Its traces are sent in separate messages."""

    id: int
    origin: str  # "": a run of this process; else the file from which it was loaded into the session
    title: str
    fetches: list[str]
    feeds: list[str]
    options: str
    definition: str  # for a compiled function: "train.py:12", "Keras, 8 batches a step"; "" for a session.run
    graph_on_request: bool  # whether the graph that a compiled function executes is not known, but can be requested with a trace
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
    """Answer to POST /api/session/file: the content of the file was added to the session."""

    ok: Literal[True]
    runs: int
    traces: int
    cut: str  # as in Session
    damage: str
