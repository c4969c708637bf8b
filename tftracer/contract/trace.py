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
    collapsed: bool  # whether the page shows it collapsed at first


class Timeline(TypedDict):
    """A whole trace, ready to draw (msgpack). Slices are sorted by (row, start); row r has row_offsets[r] : row_offsets[r+1].

    Times are ns since the trace's first start. Slices on a row do not overlap.
    """

    trace_id: int
    title: str
    nodes: int  # number of nodes in the trace; there may be fewer slices, because nodes without a valid time have none
    origin_ns: str  # epoch ns of time 0, decimal (too long for a double)
    duration_ns: float
    lanes: list[Lane]
    row_offsets: Column  # u4 [rows + 1]
    start: Column  # f8 [slices]
    duration: Column  # f8 or u4 [slices]
    delay: Column  # f4 [slices], time from scheduled to start; -1: unknown
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
    tab: Literal["ops", "budget", "critical-path", "memory", "communication", "scheduling", "ranks"]  # "ranks": only in a job


class Evidence(EvidencePlace):
    """The places on the timeline that show what a sentence says."""

    nodes: list[int]  # node indices, most important first, at most 50


class Sentence(TypedDict):
    code: str  # "input_bound", "communication_bound", "one_op", ..., "balanced": docs/analyses.rst lists them
    text: str  # what limits the step
    advice: str  # what to try next
    share: float  # part of the step that would go away at best, from 0 to 1
    numbers: dict[str, float]
    evidence: Evidence


class Verdict(TypedDict):
    sentences: list[Sentence]  # most important first; one "balanced" sentence if nothing stands out
    step_ns: float  # from the first op to the last op
    whole_ns: float  # the base of the shares: duration of the step's call without tracing
    shares_of: str  # for lists of traces: a sentence that says which time is 100% in the first sentence; "": not needed
    findings: list[Finding]


class OpRow(TypedDict):
    key: str  # op type, node name or scope
    op: str  # op type ("" for a scope)
    device: str  # "": several devices, or not known
    count: int  # executions; a launch with its kernels is one
    total_ns: float
    self_ns: float
    mean_ns: float
    max_ns: float
    share: float  # share of the sum of all counted work
    host_ns: float  # time on the host: CPU ops, launches
    device_ns: float  # time of kernels and copies on a GPU, under the op that launched them
    delay_ns: float | None  # sum of the times from scheduled to start; None if no scheduling time is known
    node: int  # node of the longest execution


class ComputingOpRow(OpRow):
    """An OpRow with FLOPs and bytes (docs/analyses.rst): sums over executions with known values; None if there are none."""

    flops: float | None  # nominal floating-point operations of matrix ops
    flops_unknown: int  # executions with unknown FLOPs
    bytes: float | None  # compulsory traffic
    bytes_unknown: int


class OpStatistics(TypedDict):
    by: Literal["type", "name", "scope"]
    rows: list[ComputingOpRow]  # by total time, descending, at most 10,000
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
    parts_ns: dict[str, float | None]  # BudgetPart -> ns; scheduling: None if no scheduling time is known
    busy_ns: float


class Budget(TypedDict):
    step_ns: float
    whole: DeviceBudget  # the whole step: all devices together
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
    # What this execution waited for. ``op``: an input; ``transfer``: an input from another device; ``thread``: the previous op on
    # its thread; ``launch``: a kernel's launch; ``stream``: the previous kernel on its stream; ``time``: no dependency is known,
    # so the predecessor is the op that ended last before this one was scheduled; ``start``: no op had ended yet.
    reason: Literal["op", "transfer", "thread", "launch", "stream", "time", "start"]


class CriticalPath(TypedDict):
    steps: list[PathStep]  # in time order, at most 20,000
    left_out: int
    length_ns: float
    busy_ns: float  # time in ops; the rest are gaps
    by_op: list[OpRow]
    edges: Literal["partition_graph", "function_graph", "labels", "none"]
    slack_ns: Column | None  # f4 [nodes], by how much later each op could end; -1: not known; None in JSON
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
    output: int  # output slot; -1: not known, for example for a profile's allocations
    op: str
    device: str
    allocator: str
    bytes: float
    shape: str
    dtype: str
    alloc_ns: float
    free_ns: float
    last_consumer: int  # node that used it last; -1: not known


class Memory(TypedDict):
    curves: list[MemoryCurve]
    tensors: list[Tensor]  # the largest 5,000, by bytes
    tensors_total: int
    temporary: list[OpRow]  # ops by temporary memory; here total_ns is a number of bytes
    persistent_bytes: float
    findings: list[Finding]


CounterUnit = Literal["ops", "bytes", "share"]


class Counter(TypedDict):
    """A step function on the timeline's axis: value[i] is valid from point i to the next point, the last value to the end of the
    step."""

    key: str  # "running", "ready", "in-flight", "gpu-0", "memory-0": the same in every trace
    title: str
    unit: CounterUnit
    note: str  # what it does not include; "" if it includes everything
    gap_ns: Column  # u4 or f8 [points], time since the previous point; for the first point, since time 0
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
    mean_bandwidth: float  # bytes per second
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
    share_of_type: float  # share of the total time of its op type
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
    traffic_bytes: float | None  # minimum number of bytes that it has to read and write; None: not known
    source: str  # source device of a transfer
    destination: str
    related: list[NodeRef]  # the launch of a kernel, the kernels of a launch, the other end of a transfer
    launched_ns: float | None  # when the host launched a kernel or copy; None: not known
    facts: list[Fact]  # further details from a profile, such as a kernel's grid, block and registers
    hlo: str  # the text of an XLA op; "" if the profile does not have it


class Neighbourhood(TypedDict):
    """The graph around one node (GET .../nodes/INDEX/graph?depth=2)."""

    nodes: list[NodeRef]
    edges: list[list[int]]  # pairs of positions in nodes
    left_out: int


OpStatus = Literal["changed", "same", "unknown", "appeared", "vanished"]


class ComparedOp(TypedDict):
    """An op type, name or scope in two traces; if a trace does not have it, its count there is 0.

    ``changed``: the other traces of the runs show that it changed. ``unknown``: the two traces differ, but it may be chance.
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
    node_a: int  # node of the longest execution; -1 if there is none
    node_b: int


class Comparison(TypedDict):
    """A comparison of two traces (GET /api/compare?a=ID&b=ID&by=type)."""

    by: Literal["type", "name", "scope"]
    rows: list[ComparedOp]  # by the size of the difference, descending
    left_out: int
    step_a_ns: float
    step_b_ns: float
    budget_a: DeviceBudget
    budget_b: DeviceBudget
    summary: str  # what changed, or why no change is claimed
    traces: str  # how many traces of the runs the comparison is based on
    step_times: str  # the difference of the runs' step times, with its interval; "" for one run, or without steps
