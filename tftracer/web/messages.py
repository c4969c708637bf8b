"""The wire contract: every JSON and msgpack body that the server answers and the page reads.

The page's types (frontend/src/client/messages.ts) are generated from this file by ``python -m tftracer.web.typescript``;
a test fails when they are stale. Units are in the names: ``_s`` seconds, ``_ns`` nanoseconds, ``_at`` epoch seconds.
``trace/answers.py`` builds the analyses, ``session/`` the rest.
"""

from __future__ import annotations

from typing import Literal, TypedDict, Union

# --------------------------------------------------------------------------------------------------------- basic shapes


class Column(TypedDict):
    """A NumPy array on the wire: little-endian, C order. dtype: u1 u2 u4 i1 i2 i4 f4 f8 (never 64-bit integers)."""

    dtype: Literal["u1", "u2", "u4", "i1", "i2", "i4", "f4", "f8"]
    data: bytes


class Strings(TypedDict):
    """Distinct strings as one UTF-8 blob; string i lies at offsets[i] : offsets[i + 1]."""

    data: bytes
    offsets: Column


class ErrorBody(TypedDict):
    code: str
    message: str


class ErrorMessage(TypedDict):
    error: ErrorBody


class Finding(TypedDict):
    """Something that a trace lacks or that makes it doubtful, with its remedy."""

    code: str  # e.g. "truncated", "no_gpu_events", "no_partition_graph", "bad_times", "devices_hidden"
    severity: Literal["info", "warning", "error"]
    message: str
    remedy: str


# --------------------------------------------------------------------------------------------------- sessions and runs


class Place(TypedDict):
    """Where the process stands in its job (None: not known)."""

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
    place: Place
    tensorflow: str  # version, "" where not known
    tftracer: str
    python: str
    command: str  # the script's command line
    gpus: int | None
    started_at: float
    ended_at: float | None
    active: bool  # a hooked session is open now
    trace_all: bool
    live: bool  # False: reopened from a file
    file: str  # the spool or the file; "" if in memory only
    steps_lost: int  # steps that were not counted because the queue was full
    hook_cost_s: float | None  # what the tracer adds to an untraced step that leaves it cold caches
    problems: list[Problem]
    cut: str  # of a file that was cut short: what was lost, in words


class TraceRecord(TypedDict):
    """One trace in the lists: what is known of it without opening it.

    Of a trace that has just come, ``nodes``, ``devices``, ``findings`` and ``headline`` are empty; it is told again with them.
    """

    id: int
    run_id: int
    step: int  # the run's step number, from 1
    started_at: float
    duration_s: float  # wall time of the traced session.run
    median_s: float | None  # the run's median untraced step when it was traced
    nodes: int
    bytes: int  # serialized RunMetadata
    stored_bytes: int  # as kept on disk
    devices: list[str]
    asked_by: Literal["user", "global", "script"]  # on the page or by trace_next; by global tracing; the script's own RunOptions
    findings: list[Finding]
    headline: str  # the verdict's first sentence, "" if not computed
    note: str
    state: Literal["ready", "broken"]


class Run(TypedDict):
    id: int
    origin: str  # "": this process ran it; else the file from which it was loaded into the session
    title: str
    fetches: list[str]
    feeds: list[str]
    options: str
    steps: int
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    min_s: float | None
    max_s: float | None
    last_s: float | None
    first_run_at: float | None
    last_run_at: float | None
    pending_traces: int
    between_steps_s: float | None  # median time outside session.run between two steps
    traced_overhead_s: float | None  # median of (traced step - median untraced step)
    recent_s: list[float]  # the last 60 step times, oldest first: the sparkline
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


class TraceRequest(TypedDict):
    steps: int


class TracingRequest(TypedDict):
    all: bool


class NoteRequest(TypedDict):
    note: str


class Ok(TypedDict):
    ok: Literal[True]


class Loaded(TypedDict):
    """Answer to POST /api/session/file: what the file held was added to the session."""

    ok: Literal[True]
    runs: int
    traces: int
    cut: str


# ------------------------------------------------------------------------------------------------------------- timeline

LaneKind = Literal["compute", "communication", "copy", "kernel", "launch", "sync", "input", "repeat", "other"]


class Lane(TypedDict):
    """One horizontal band: rows first_row : first_row + rows."""

    id: int
    device: str  # as in the trace
    title: str
    kind: LaneKind
    group: str  # "" or the rank's or process's name, in a job's timeline
    first_row: int
    rows: int
    slices: int
    busy_ns: float  # length of the union of its slices
    collapsed: bool  # to begin with


class Timeline(TypedDict):
    """A whole trace, ready to draw (msgpack). Slices are sorted by (row, start); row r holds row_offsets[r] : row_offsets[r+1].

    Times are ns since the trace's first start. On a row no two slices overlap.
    """

    trace_id: int
    title: str
    nodes: int  # in the trace; slices may be fewer (nodes without a valid time)
    origin_ns: str  # epoch ns of time 0, decimal (too long for a double)
    duration_ns: float
    lanes: list[Lane]
    row_offsets: Column  # u4 [rows + 1]
    start: Column  # f8 [slices]
    duration: Column  # f8 or u4 [slices]
    delay: Column  # f4 [slices], scheduled to start; -1 unknown
    node: Column  # u4 [slices], index of the node in the trace
    name: Column  # u4 [slices], into names
    op: Column  # u2 or u4 [slices], into ops
    kind: Column  # u1 [slices], NodeKind: 0 compute 1 communication 2 copy 3 launch 4 sync 5 input 6 control 7 repeat
    critical: Column  # u1 [slices], 1: on the critical path
    names: Strings
    ops: Strings
    findings: list[Finding]


# ------------------------------------------------------------------------------------------------------------- analyses


class EvidencePlace(TypedDict, total=False):
    start_ns: float
    end_ns: float
    op: str  # an op type to search for
    lane: str  # a device
    tab: Literal["ops", "budget", "critical-path", "memory", "communication", "scheduling", "ranks"]  # ranks: a job's


class Evidence(EvidencePlace):
    """Where on the timeline a sentence can be seen."""

    nodes: list[int]  # node indices, the most telling first, at most 50


class Sentence(TypedDict):
    code: str  # "input_bound", "communication_bound", "one_op", ..., "balanced": docs/analyses.rst lists them
    text: str  # what holds the step back
    advice: str  # what to try next
    share: float  # of the step, 0..1: the rank
    numbers: dict[str, float]
    evidence: Evidence


class Verdict(TypedDict):
    sentences: list[Sentence]  # the most important first; one "balanced" sentence if nothing stands out
    step_ns: float
    findings: list[Finding]


class OpRow(TypedDict):
    key: str  # op type, node name or scope
    op: str  # op type ("" for a scope)
    device: str  # "" : all of them
    count: int
    total_ns: float
    self_ns: float
    mean_ns: float
    max_ns: float
    share: float  # of the sum of all counted work
    host_ns: float  # on the host: CPU ops, launches
    device_ns: float  # kernels on a GPU, joined by name
    delay_ns: float  # sum of scheduled to start
    node: int  # the longest execution


class OpStatistics(TypedDict):
    by: Literal["type", "name", "scope"]
    rows: list[OpRow]  # by total, descending, at most 10,000
    left_out: int
    total_ns: float
    findings: list[Finding]


BudgetPart = Literal[
    "compute", "exposed_communication", "hidden_communication", "copies", "input", "scheduling", "launch_gap", "idle"
]


class DeviceBudget(TypedDict):
    """Where a device's step went; the parts but hidden_communication add up to step_ns (hidden runs under compute)."""

    device: str
    title: str
    parts_ns: dict[str, float]  # BudgetPart -> ns
    busy_ns: float


class Breakdown(TypedDict):
    step_ns: float
    whole: DeviceBudget
    devices: list[DeviceBudget]
    findings: list[Finding]


class PathStep(TypedDict):
    node: int
    name: str
    op: str
    device: str
    start_ns: float
    end_ns: float
    wait_ns: float  # gap before it on the path
    # Why the predecessor precedes: a data edge, a send/recv pair, a kernel after its launch, a kernel after the one before it
    # on its stream, no known edge but the op that ended last before it was scheduled (labels alone lack control edges), nothing.
    reason: Literal["op", "transfer", "launch", "stream", "time", "start"]


class CriticalPath(TypedDict):
    steps: list[PathStep]  # in time order, at most 20,000
    left_out: int
    length_ns: float
    busy_ns: float  # in ops, the rest is gaps
    by_op: list[OpRow]
    edges: Literal["partition_graph", "labels", "none"]
    slack_ns: Column | None  # f4 [nodes], how much later each op could end; msgpack clients only, None in JSON
    findings: list[Finding]


class MemoryCurve(TypedDict):
    allocator: str
    device: str
    time_ns: list[float]  # at most 4,000 points; the peak is one of them
    bytes: list[float]
    peak_bytes: float
    peak_ns: float


class Tensor(TypedDict):
    node: int
    name: str
    output: int
    op: str
    device: str
    allocator: str
    bytes: float
    shape: str
    dtype: str
    alloc_ns: float
    free_ns: float
    last_consumer: int  # node, -1: none known


class Memory(TypedDict):
    curves: list[MemoryCurve]
    tensors: list[Tensor]  # the largest 5,000, by bytes
    tensors_total: int
    at_peak: list[Tensor]  # of the allocator with the largest peak, at most 500
    temporary: list[OpRow]  # total_ns holds bytes: ops by temporary memory
    persistent_bytes: float
    findings: list[Finding]


class Link(TypedDict):
    source: str
    destination: str
    messages: int
    bytes: float
    wire_ns: float  # union of the transfers
    waited_ns: float  # time in which the destination ran nothing else
    mean_bandwidth: float  # bytes a second
    longest: int  # node


class Transfer(TypedDict):
    node: int
    tensor: str
    op: str
    source: str
    destination: str
    bytes: float
    start_ns: float
    end_ns: float
    bandwidth: float


class Communication(TypedDict):
    links: list[Link]
    transfers: list[Transfer]  # the longest 5,000
    transfers_total: int
    collectives: list[OpRow]
    total_ns: float
    exposed_ns: float
    findings: list[Finding]


class DelayRow(TypedDict):
    node: int
    name: str
    op: str
    device: str
    start_ns: float
    delay_ns: float
    duration_ns: float


class Scheduling(TypedDict):
    rows: list[DelayRow]  # the longest 1,000
    known: int  # nodes with a valid scheduled time
    total_ns: float
    p50_ns: float
    p95_ns: float
    max_ns: float
    histogram_ns: list[float]  # upper bounds
    histogram_count: list[int]
    findings: list[Finding]


class CostRow(TypedDict):
    node: int
    name: str
    op: str
    device: str
    estimated_ns: float
    measured_ns: float
    memory_bytes: float


class CostGraph(TypedDict):
    rows: list[CostRow]
    findings: list[Finding]


class NodeRef(TypedDict):
    node: int  # -1: in the graph, but not executed in this trace
    name: str
    op: str
    device: str


class Output(TypedDict):
    slot: int
    dtype: str
    shape: str
    bytes: float
    allocator: str


class NodeDetail(TypedDict):
    """Everything about one node, read from the raw bytes."""

    node: int
    name: str
    op: str
    label: str
    device: str
    device_title: str
    scope: str
    thread: str  # decimal
    kind: int
    start_ns: float
    end_ns: float
    duration_ns: float
    op_start_ns: float | None
    op_end_ns: float | None
    scheduled_ns: float | None
    delay_ns: float | None
    share_of_type: float  # of its op type's total
    share_of_step: float
    critical: bool
    slack_ns: float | None
    inputs: list[NodeRef]
    consumers: list[NodeRef]
    control_inputs: list[NodeRef]
    outputs: list[Output]
    temporary_bytes: float
    persistent_bytes: float
    bytes_moved: float
    source: str  # of a transfer
    destination: str
    related: list[NodeRef]  # the launch of a kernel, the kernels of a launch, the other end of a transfer


class Neighbourhood(TypedDict):
    """The graph around one node (GET .../nodes/INDEX/graph?depth=2)."""

    nodes: list[NodeRef]
    edges: list[list[int]]  # pairs of positions in nodes
    left_out: int


class ComparedOp(TypedDict):
    """An op type, name or scope in two traces; a side where it does not run has count 0."""

    key: str
    op: str
    status: Literal["changed", "same", "appeared", "vanished"]
    count_a: int
    count_b: int
    total_a_ns: float
    total_b_ns: float
    delta_ns: float  # b - a
    share_a: float
    share_b: float
    node_a: int  # the longest execution, -1 where it does not run
    node_b: int


class Comparison(TypedDict):
    """Two traces beside each other (GET /api/compare?a=ID&b=ID&by=type)."""

    by: Literal["type", "name", "scope"]
    rows: list[ComparedOp]  # by the size of the change, descending
    left_out: int
    step_a_ns: float
    step_b_ns: float
    budget_a: DeviceBudget
    budget_b: DeviceBudget
    summary: str  # what changed, in a sentence


# ---------------------------------------------------------------------------------------------------------- the job (hub)


class Process(TypedDict):
    id: str
    title: str  # "rank 0", "worker/1", "ps/0"
    host: str
    pid: int
    place: Place
    clock: str  # the same for processes that one machine's clock times; "": not known
    state: Literal["alive", "ended", "lost"]
    url: str  # of its own page, reachable through the hub: "/job/processes/ID/"
    steps: int
    steps_per_s: float | None
    mean_s: float | None
    last_seen_at: float
    traces: int
    problem: str


class JobTrace(TypedDict):
    """The same step traced on several processes."""

    id: int
    title: str
    step: int  # the same on all; 0: each process's own, or not chosen yet
    steps: dict[str, int]  # process id -> number of the step that it was asked to trace
    run_title: str
    asked_at: float
    state: Literal["pending", "ready", "partial"]
    processes: list[str]  # ids that were asked
    ready: list[str]
    missing: dict[str, str]  # id -> why


class Job(TypedDict):
    name: str
    hub: str  # URL of the hub's page
    is_hub: bool
    processes: list[Process]
    traces: list[JobTrace]


class JobChanges(TypedDict):
    """What changed since the last message about the job, in place of what has the same id."""

    processes: list[Process]  # known ones
    traces: list[JobTrace]  # known ones, then new ones


class JobTraceRequest(TypedDict, total=False):
    processes: list[str]  # default: all alive
    run_title: str  # default: each process's busiest run


class ClockOffset(TypedDict):
    process: str
    offset_ns: float
    drift_ppm: float
    uncertainty_ns: float
    matches: int


class CollectiveRow(TypedDict):
    name: str
    op: str
    bytes: float  # of its result on a rank; 0: the trace does not say
    last: str  # the process that came last
    spread_ns: float  # first to last arrival
    waited_ns: dict[str, float]


class Straggler(TypedDict):
    process: str
    waited_for_ns: float  # mean time that each of the others lost waiting for it
    waiting_ns: float  # that it lost itself, waiting for others
    slower_by_ns: float  # without collectives: its step's length beyond the others' median
    cause: Literal["compute", "input", "communication", "none"]
    text: str
    compute_ns: float
    input_ns: float
    exposed_communication_ns: float


class JobTensor(Transfer):
    """A transfer between processes of a job."""

    waited_ns: float  # of its time: the process that received it computed nothing


class JobAnalysis(TypedDict):
    clocks: list[ClockOffset]
    collectives: list[CollectiveRow]
    stragglers: list[Straggler]
    usual_suspects: list[Straggler]  # over all of the job's traces
    links: list[Link]
    tensors: list[JobTensor]  # the longest 5,000
    sentences: list[Sentence]
    findings: list[Finding]


# ------------------------------------------------------------------------------------------------------ live (WebSocket)


class Snapshot(TypedDict):
    """The first message of a connection; what follows are changes to it."""

    session: Session
    runs: list[Run]
    job: Job | None


class NewSteps(TypedDict):
    run_id: int
    first_step: int
    start_at: list[float]
    duration_s: list[float]


class SnapshotMessage(TypedDict):
    type: Literal["snapshot"]
    payload: Snapshot


class SessionUpdate(TypedDict):
    type: Literal["session"]
    payload: Session


class RunUpdate(TypedDict):
    type: Literal["run"]
    payload: Run


class TraceUpdate(TypedDict):
    type: Literal["trace"]
    payload: TraceRecord


class TraceRemoved(TypedDict):
    type: Literal["trace_removed"]
    payload: TraceRecord


class StepsUpdate(TypedDict):
    type: Literal["steps"]
    payload: NewSteps


class JobUpdate(TypedDict):
    type: Literal["job"]
    payload: Job


class JobChangesUpdate(TypedDict):
    """Sent in place of the whole job where no process came, went or changed its name."""

    type: Literal["job_changes"]
    payload: JobChanges


class Closing(TypedDict):
    type: Literal["closing"]
    payload: ErrorBody


LiveMessage = Union[
    SnapshotMessage,
    SessionUpdate,
    RunUpdate,
    TraceUpdate,
    TraceRemoved,
    StepsUpdate,
    JobUpdate,
    JobChangesUpdate,
    Closing,
]


# ------------------------------------------------------------------------------------------------------ standalone page


class NodeDetails(TypedDict):
    """The NodeDetail of every node, as columns [nodes]; the page puts one together when it is asked for (client/details.ts).

    A column that is 0 throughout is empty. Lists of a node's links and outputs are ``*_offsets`` [nodes + 1] into columns of
    their own. Times are ns, -1: not known.
    """

    nodes: int
    duration_ns: float  # of the step
    devices: list[str]
    device_titles: list[str]
    names: Strings
    ops: Strings
    labels: Strings  # what follows `name = Op` in the labels that begin like this, whole labels otherwise
    device: Column
    name: Column  # into names
    op: Column
    label: Column
    short: Column  # u1 [labels], 1: `name = Op` was left out
    kind: Column
    critical: Column
    thread: Column
    start: Column
    duration: Column
    op_start: Column  # ns after the node's start
    op_end: Column  # ns before the node's end
    delay: Column
    share_of_type: Column
    slack: Column
    bytes_moved: Column
    temporary_bytes: Column
    persistent_bytes: Column
    source: Column  # of a transfer, into places
    destination: Column
    places: list[str]
    input_offsets: Column
    input: Column  # nodes
    input_control: Column  # u1, 1: a control input
    related_offsets: Column
    related: Column  # nodes
    output_offsets: Column
    output_slot: Column
    output_bytes: Column
    output_dtype: Column  # into dtypes
    output_shape: Column  # into shapes
    output_allocator: Column  # into allocators
    dtypes: list[str]
    shapes: list[str]
    allocators: list[str]


class OpColumns(TypedDict):
    """The rows of an OpStatistics as columns (client/tables.ts)."""

    keys: Strings | None  # None: those of NodeDetails' names
    key: Column  # into keys
    op: Column  # into NodeDetails' ops, -1: ""
    device: Column  # into NodeDetails' devices, -1: ""
    count: Column
    total_ns: Column
    self_ns: Column
    max_ns: Column
    device_ns: Column
    delay_ns: Column
    node: Column


class TensorColumns(TypedDict):
    """Tensors as columns; the rest of them NodeDetails says of their nodes and outputs."""

    node: Column
    output: Column  # into NodeDetails' outputs
    bytes: Column
    alloc_ns: Column
    free_ns: Column
    last_consumer: Column


class CurveColumns(TypedDict):
    """A MemoryCurve with its points as columns."""

    allocator: str
    device: str
    time_ns: Column
    bytes: Column
    peak_bytes: float
    peak_ns: float


class Embedded(TypedDict):
    """What a standalone HTML page carries (msgpack, deflated, base64): answers under the paths that the live page asks for."""

    session: SessionMessage
    trace: TraceRecord
    answers: dict[str, bytes]  # "timeline", "verdict", "ops?by=type", ... -> msgpack body
    node_details: NodeDetails
