"""The critical path, which is the chain of ops and waits that determines the step's length; and every op's slack.

*Path*: from the node that ends last, back to the predecessor that ended last, and so on to the step's first op. Predecessors
are (with the reason of the edge in parentheses)

- the producers of an op's inputs, along the edges of the partition graphs or of the labels (dependencies.py), including sends
  and receives across devices (``op``, ``transfer``);
- the previous op on its thread, if that op was still running when this op was scheduled: this op waited for the thread
  (``thread``; waits_for_threads.py);
- for a kernel its launch, and the kernel before it on its stream (``launch``, ``stream``);
- for an op without any of these, the op that had ended last when this op was scheduled (or when it started, if it started more
  than 20 µs later): on its own device, or if no op had ended there, on any device (``time``). Such ops exist because labels lack
  the control edges that TensorFlow added itself, and a trace may lack the ops of other processes.

An edge whose producer ended after its consumer cannot explain a wait and is ignored. Ends never decrease along the path, so the
time that each node adds and the gaps between nodes sum up to the length of the step.

*Slack*: how much later a node could end without the step ending later, if all durations stay the same:
``min(over consumers: latest end - duration) - end``, and for a node without consumers ``end of the step - end``. Slack is 0 along
a path without gaps.

The path needs a Python iteration for each of its nodes, slack one for each edge. The GIL is released between two batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import CriticalPath, OpRow, PathStep
from tftracer.trace.analyses import ops, physical_devices, waits_for_threads
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.arrays.columns import Coded, Values, rows_of
from tftracer.trace.arrays.groups import last_in_groups
from tftracer.trace.arrays.intervals import batches, paced
from tftracer.trace.arrays.types import Bool, Float64, Int8, Int32, Int64
from tftracer.trace.model import Trace

if TYPE_CHECKING:
    from tftracer.trace.analyses.dependencies import Graph

MAX_STEPS = 20_000
REASONS = ("op", "transfer", "thread", "launch", "stream", "time", "start")
_OP, _TRANSFER, _THREAD, _LAUNCH, _STREAM, _TIME, _START = range(7)


@dataclass(frozen=True)
class Edges:
    """Which node may have delayed which. Edges only lead forward in the order (end, start, index), so there is no cycle."""

    producer: Int32
    consumer: Int32
    reason: Int8
    rank: Int64  # [n] each node's position in the order (end, start, index)


def edges_of(trace: Trace, graph: Graph) -> Edges:
    """Collect the edges between counted nodes: those of the graph, waits for threads, launches of kernels, order in streams."""
    waiting, blocking = waits_for_threads.waits_for_threads(trace)
    launch = launch_of(trace)
    launched = np.flatnonzero(launch >= 0)
    earlier, later = _stream_order(trace)
    parts: list[tuple[Int64 | Int32, Int64 | Int32, int | Bool]] = [
        # First, because the graph's reason replaces this one if the graph has an edge between the same two nodes.
        (blocking, waiting, _THREAD),
        (graph.producer, graph.consumer, np.where(graph.transfer, _TRANSFER, _OP)),
        (launch[launched], launched, _LAUNCH),
        (earlier, later, _STREAM),
    ]
    producer = np.concatenate([p for p, _, _ in parts]).astype(np.int32)
    consumer = np.concatenate([c for _, c, _ in parts]).astype(np.int32)
    reason = np.concatenate([np.broadcast_to(np.int8(r), len(p)) for p, _, r in parts])
    rank = np.empty(trace.n, np.int64)
    rank[np.lexsort((trace.start, trace.end))] = np.arange(trace.n)
    keep = (rank[producer] < rank[consumer]) & trace.counted[producer] & trace.counted[consumer]
    return Edges(producer[keep], consumer[keep], reason[keep], rank)


def _stream_order(trace: Trace) -> tuple[Int64, Int64]:
    """Return (earlier, later) for neighbours on one stream of a GPU, in order of their start."""
    on_stream = np.flatnonzero(physical_devices.on_stream(trace))
    on_stream = on_stream[np.lexsort((trace.start[on_stream], trace.device[on_stream]))]
    same = trace.device[on_stream[1:]] == trace.device[on_stream[:-1]]
    return on_stream[:-1][same], on_stream[1:][same]


def last_predecessor(trace: Trace, edges: Edges) -> tuple[Int32, Int8]:
    """Return for each node the predecessor that ended last (-1: none), and the kind of edge (an index into REASONS)."""
    predecessor = np.full(trace.n, -1, np.int32)
    why = np.full(trace.n, _START, np.int8)
    order = np.argsort(edges.rank[edges.producer], kind="stable")
    predecessor[edges.consumer[order]] = edges.producer[order]  # if an index occurs several times, the last write stays
    why[edges.consumer[order]] = edges.reason[order]
    counted = np.flatnonzero(trace.counted)
    orphans = counted[predecessor[counted] < 0]  # nodes without a predecessor
    assumed = _ended_before(trace, edges.rank, counted, orphans)
    predecessor[orphans] = assumed
    why[orphans[assumed >= 0]] = _TIME
    return predecessor, why


def _ended_before(trace: Trace, rank: Int64, counted: Int64, orphans: Int64) -> Int64:
    """Return for each orphan the counted node that ended last before it was ready, on the same device if there is one.

    If there is none, on any device: before it was ready, or else before it started. -1 if no node had ended.
    """
    at_once = (trace.scheduled >= 0) & (trace.start - trace.scheduled <= waits_for_threads.NEXT_OP_NS)
    ready = np.where(at_once, trace.scheduled, trace.start)[orphans]
    device, anywhere = trace.device.astype(np.int64), np.zeros(trace.n, np.int64)
    by_rank, assumed = counted[np.argsort(rank[counted])], np.full(len(orphans), -1, np.int64)
    for group, moment in ((device, ready), (anywhere, ready), (anywhere, trace.start[orphans])):
        todo = np.flatnonzero(assumed < 0)
        node = orphans[todo]
        at = last_in_groups(group[by_rank], trace.end[by_rank], group[node], moment[todo])
        candidate = by_rank[at]
        assumed[todo] = np.where((at >= 0) & (rank[candidate] < rank[node]), candidate, -1)
    return assumed


def slack_of(trace: Trace, edges: Edges) -> Float64:
    """Return for each node the ns by which it could have ended later; -1 for nodes that are not counted."""
    latest, duration = [trace.duration_ns] * trace.n, (trace.end - trace.start).tolist()
    order = np.argsort(edges.rank[edges.consumer], kind="stable")[::-1]
    producer, consumer = edges.producer[order], edges.consumer[order]
    current, latest_start = -1, 0  # the consumer of the current edges, and its latest start
    for batch in batches(len(order), 20_000):
        part = slice(batch.start, batch.stop)
        for p, c in zip(producer[part].tolist(), consumer[part].tolist()):
            if c != current:
                current, latest_start = c, latest[c] - duration[c]
            if latest_start < latest[p]:
                latest[p] = latest_start
    slack = np.maximum(np.array(latest, np.float64) - trace.end, 0.0)
    slack[~trace.counted] = -1.0
    return slack


@dataclass(frozen=True)
class Path:
    """The path in time order."""

    node: Int64
    reason: Int8  # the kind of edge that leads to each node: index into REASONS
    reached: Int64  # when the previous node ended, in ns; 0 for the first node


def path_of(trace: Trace, edges: Edges) -> Path:
    counted = np.flatnonzero(trace.counted)
    best, why = last_predecessor(trace, edges)
    before, path = best.tolist(), [int(counted[np.argmax(edges.rank[counted])])] if len(counted) else []
    for _ in paced(range(trace.n), 20_000):  # no edge leads to a lower rank, so there is no cycle
        if not path or before[path[-1]] < 0:
            break
        path.append(before[path[-1]])
    nodes = np.array(path[::-1], np.int64)
    return Path(nodes, why[nodes], np.append(0, trace.end[nodes])[: len(nodes)])


def critical_path(
    trace: Trace, graph: Graph, findings: list[Finding], computed: Path | None = None, limit: int = MAX_STEPS
) -> CriticalPath:
    """Return the path: its last ``limit`` nodes, which lead to the step's end, and the path's time by op type.

    ``slack_ns`` stays None; callers that can send a column add it (``slack_of``).
    """
    path = computed or path_of(trace, edges_of(trace, graph))
    start, end = trace.start[path.node], trace.end[path.node]
    own = end - np.maximum(start, np.minimum(path.reached, end))  # time in which two neighbours overlap is the earlier one's
    left_out = max(len(path.node) - limit, 0)
    return {
        "steps": _steps(trace, path, slice(left_out, None)),
        "left_out": left_out,
        "length_ns": float(end[-1]) if len(end) else 0.0,
        "busy_ns": float(own.sum()),
        "by_op": _by_op(trace, path.node, own),
        "edges": graph.source,
        "slack_ns": None,
        "findings": findings,
    }


def _steps(trace: Trace, path: Path, shown: slice) -> list[PathStep]:
    node = path.node[shown]
    columns: dict[str, Values] = {
        **trace.node_columns(node),
        "end_ns": trace.end[node].astype(np.float64),
        "wait_ns": np.maximum(trace.start[node] - path.reached[shown], 0).astype(np.float64),
        "reason": Coded(path.reason[shown], REASONS),
    }
    return cast("list[PathStep]", rows_of(columns))


def _by_op(trace: Trace, nodes: Int64, own: Int64) -> list[OpRow]:
    """Sum up the path's time by op type. ``own``: [nodes] the time that each adds to the path."""
    rows = ops.rows_by_type(trace, nodes, trace.end[nodes] - trace.start[nodes], own)
    for row in rows:
        row["share"] = row["self_ns"] / trace.duration_ns if trace.duration_ns else 0.0
    return sorted(rows, key=lambda row: (-row["self_ns"], row["key"]))
