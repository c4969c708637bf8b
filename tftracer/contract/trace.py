"""One trace: its timeline and the answers of every analysis."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Column, Finding, Strings

LaneKind = Literal["compute", "communication", "copy", "kernel", "launch", "sync", "input", "repeat", "outside", "other"]


class Lane(TypedDict):
    """A horizontal band: rows first_row : first_row + rows."""

    id: int
    device: str  # as in the trace
    title: str
    kind: LaneKind
    group: str  # "" or the rank's or process's name, in a job's timeline
    first_row: int
    rows: int
    slices: int
    busy_ns: float  # length of the union of its slices
    collapsed: bool  # initially


class Timeline(TypedDict):
    """A whole trace, ready to draw (msgpack). Slices are sorted by (row, start); row r has row_offsets[r] : row_offsets[r+1].

    Times are ns since the trace's first start. Slices on a row do not overlap.
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
    kind: Column  # u1 [slices], NodeKind: 0 compute 1 communication 2 copy 3 launch 4 sync 5 input 6 control 7 repeat 8 outside
    critical: Column  # u1 [slices], 1: on the critical path
    names: Strings
    ops: Strings
    has_cost_graph: bool
    findings: list[Finding]


class EvidencePlace(TypedDict, total=False):
    start_ns: float
    end_ns: float
    op: str  # an op type to search for
    lane: str  # a device
    tab: Literal["ops", "budget", "critical-path", "memory", "communication", "scheduling", "ranks"]  # ranks: a job's


class Evidence(EvidencePlace):
    """The places on the timeline that show what a sentence says."""

    nodes: list[int]  # node indices, most important first, at most 50


class Sentence(TypedDict):
    code: str  # "input_bound", "communication_bound", "one_op", ..., "balanced": docs/analyses.rst lists them
    text: str  # what limits the step
    advice: str  # what to try next
    share: float  # of the step, 0..1: the rank
    numbers: dict[str, float]
    evidence: Evidence


class Verdict(TypedDict):
    sentences: list[Sentence]  # most important first; one "balanced" sentence if nothing stands out
    step_ns: float  # from the first op to the last
    whole_ns: float  # the base of the shares: duration of the step's call without tracing
    findings: list[Finding]


class OpRow(TypedDict):
    key: str  # op type, node name or scope
    op: str  # op type ("" for a scope)
    device: str  # "": several, or not given
    count: int  # executions; a launch with its kernels is one
    total_ns: float
    self_ns: float
    mean_ns: float
    max_ns: float
    share: float  # of the sum of all counted work
    host_ns: float  # on the host: CPU ops, launches
    device_ns: float  # kernels on a GPU, joined by name
    delay_ns: float | None  # sum of scheduled to start; None if no scheduling time is known
    node: int  # the longest execution


class ComputingOpRow(OpRow):
    """With FLOPs and bytes (docs/analyses.rst): sums over the executions for which they are known, None if for none."""

    flops: float | None  # nominal floating-point operations of matrix ops
    flops_unknown: int  # executions with unknown FLOPs
    bytes: float | None  # compulsory traffic
    bytes_unknown: int


class OpStatistics(TypedDict):
    by: Literal["type", "name", "scope"]
    rows: list[ComputingOpRow]  # by total, descending, at most 10,000
    left_out: int
    total_ns: float
    findings: list[Finding]


BudgetPart = Literal[
    "compute", "python", "exposed_communication", "hidden_communication", "copies", "input", "scheduling", "launch_gap", "idle"
]


class DeviceBudget(TypedDict):
    """How a device spent the step. The parts add up to step_ns, except hidden_communication, which overlaps compute."""

    device: str
    title: str
    parts_ns: dict[str, float | None]  # BudgetPart -> ns; scheduling: None where no scheduling time is known
    busy_ns: float


class Budget(TypedDict):
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
    # What the step waited for before this: an input (``op``, ``transfer``: from another device), the op that ran before it on its
    # thread, a kernel's launch, the kernel before it on its stream; ``time``: no dependency is known, the predecessor is the op
    # that ended last before this one was scheduled; ``start``: nothing had ended yet.
    reason: Literal["op", "transfer", "thread", "launch", "stream", "time", "start"]


class CriticalPath(TypedDict):
    steps: list[PathStep]  # in time order, at most 20,000
    left_out: int
    length_ns: float
    busy_ns: float  # in ops, the rest is gaps
    by_op: list[OpRow]
    edges: Literal["partition_graph", "function_graph", "labels", "none"]
    slack_ns: Column | None  # f4 [nodes], by how much later each op could end, -1: not known; only in msgpack, None in JSON
    findings: list[Finding]


class MemoryCurve(TypedDict):
    allocator: str
    device: str
    time_ns: list[float]  # at most 4,000 points; the peak is one of them
    bytes: list[float]
    peak_bytes: float
    peak_ns: float


class Tensor(TypedDict):
    node: int  # -1: not known
    name: str
    output: int  # slot, -1: not known, as for a profile's allocations
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
    temporary: list[OpRow]  # total_ns holds bytes: ops by temporary memory
    persistent_bytes: float
    findings: list[Finding]


CounterUnit = Literal["ops", "bytes", "share"]


class Counter(TypedDict):
    """A step function on the timeline's axis: value[i] from point i to the next, the last one to the end of the step."""

    key: str  # "running", "ready", "in-flight", "gpu-0", "memory-0": always the same
    title: str
    unit: CounterUnit
    note: str  # what it does not include; "": nothing
    gap_ns: Column  # u4 or f8 [points], distance from the point before; of the first one from 0
    value: Column  # u1, u2, u4 or f8 [points]


class MissingCounter(TypedDict):
    title: str
    reason: str


class Counters(TypedDict):
    """Counters over the time of a step (msgpack)."""

    counters: list[Counter]
    missing: list[MissingCounter]  # counters that the trace has no data for


class Link(TypedDict):
    source: str
    destination: str
    messages: int
    bytes: float
    wire_ns: float  # union of the transfers
    waited_ns: float  # part of wire_ns in which the receiving process computed nothing
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
    total_ns: float | None  # None, like the next three, if no scheduling time is known
    p50_ns: float | None
    p95_ns: float | None
    max_ns: float | None
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


class Fact(TypedDict):
    """A detail of a node from the source of its trace."""

    name: str
    value: str


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
    flops: float | None  # nominal floating-point operations of a matrix op; None: not known; 0 for other ops
    traffic_bytes: float | None  # that it has to read and write at least; None: not known
    source: str  # of a transfer
    destination: str
    related: list[NodeRef]  # the launch of a kernel, the kernels of a launch, the other end of a transfer
    launched_ns: float | None  # when the host launched a kernel or copy; None: not known
    facts: list[Fact]  # of a profile: further recorded details, e.g. a kernel's grid, block and registers
    hlo: str  # an op of XLA as XLA prints it; "" if the profile does not have it


class Neighbourhood(TypedDict):
    """The graph around one node (GET .../nodes/INDEX/graph?depth=2)."""

    nodes: list[NodeRef]
    edges: list[list[int]]  # pairs of positions in nodes
    left_out: int


OpStatus = Literal["changed", "same", "unknown", "appeared", "vanished"]


class ComparedOp(TypedDict):
    """An op type, name or scope in two traces; a side on which it does not run has count 0.

    ``changed``: the runs' other traces show that it changed. ``unknown``: the two traces differ, but it may be chance.
    """

    key: str
    op: str
    status: OpStatus
    statistic: str  # what the runs' traces show, in a few words
    count_a: int
    count_b: int
    total_a_ns: float
    total_b_ns: float
    delta_ns: float  # b - a
    share_a: float
    share_b: float
    node_a: int  # the longest execution, -1 if it does not run
    node_b: int


class Comparison(TypedDict):
    """A comparison of two traces (GET /api/compare?a=ID&b=ID&by=type)."""

    by: Literal["type", "name", "scope"]
    rows: list[ComparedOp]  # those that the runs' traces show first, by the size of the change, descending
    left_out: int
    step_a_ns: float
    step_b_ns: float
    budget_a: DeviceBudget
    budget_b: DeviceBudget
    summary: str  # what changed, or why nothing is claimed
    traces: str  # how many traces of the runs the ops are compared with
    step_times: str  # the shift of the runs' recorded steps, with its interval; "" for one run, or without steps
