"""The details of one node, read from its raw bytes on request, and the graph around it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from tftracer.contract.trace import Neighbourhood, NodeDetail, NodeRef, Output
from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.dependencies import Graph
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.physical_devices import ON_DEVICE, runs_on
from tftracer.trace.arrays.groups import rows_of_groups
from tftracer.trace.arrays.intervals import distinct, is_in
from tftracer.trace.arrays.types import Bool, Float64, Int64
from tftracer.trace.decode.labels import parse_input, parse_label, parse_received
from tftracer.trace.decode.outputs_and_memory import dtype_name, message
from tftracer.trace.decode.tensor_shapes import dims_of, shape_text
from tftracer.trace.model import DeviceKind, NodeKind, Trace

#: Maximum links of each kind in a node's details; a constant in a loop can have a million consumers.
MAX_LINKS = 200


def related_nodes(trace: Trace, graph: Graph, nodes: Int64) -> tuple[Int64, Int64]:
    """Return pairs (one of ``nodes``, related node) as two arrays, sorted by the first.

    The related nodes of one node: first its launch or its kernels, in time order, then the other ends of its transfers.
    """
    wanted = np.zeros(trace.n, np.bool_)
    wanted[nodes] = True
    pairs = _recorded_launches(trace, wanted) if trace.launch is not None else _launches_by_name(trace, wanted)
    producer, consumer = graph.producer[graph.transfer].astype(np.int64), graph.consumer[graph.transfer].astype(np.int64)
    ends = wanted & (trace.kind == NodeKind.COMMUNICATION)
    pairs += [(consumer[ends[consumer]], producer[ends[consumer]]), (producer[ends[producer]], consumer[ends[producer]])]
    node = np.concatenate([pair[0] for pair in pairs])
    related = np.concatenate([pair[1] for pair in pairs])
    order = np.argsort(node, kind="stable")
    return node[order], related[order]


def _recorded_launches(trace: Trace, wanted: Bool) -> list[tuple[Int64, Int64]]:
    launch = launch_of(trace).astype(np.int64)
    launched = np.flatnonzero(launch >= 0)
    by_start = launched[np.argsort(trace.start[launched], kind="stable")]
    kernels = by_start[wanted[launch[by_start]]]
    launched = launched[wanted[launched]]
    return [(launched, launch[launched]), (launch[kernels], kernels)]


def _launches_by_name(trace: Trace, wanted: Bool) -> list[tuple[Int64, Int64]]:
    launches = runs_on(trace, DeviceKind.GPU)
    return [
        _same_name(trace, wanted & runs_on(trace, *ON_DEVICE, DeviceKind.REPEAT), launches),
        _same_name(trace, wanted & launches, runs_on(trace, *ON_DEVICE)),  # without stream:all, which repeats the kernels
    ]


def _same_name(trace: Trace, first: Bool, second: Bool) -> tuple[Int64, Int64]:
    """Return all pairs of a node of ``first`` and one of ``second`` with the same name on the same GPU.

    The pairs of one node are in time order of their second nodes.
    """
    nodes = np.flatnonzero(first)
    others = np.flatnonzero(second)
    if len(nodes) < len(others):
        others = others[is_in(trace.name[others], distinct(trace.name[nodes]))]
    if not len(nodes) or not len(others):
        return nodes[:0], others[:0]
    parents = {parent: i for i, parent in enumerate(sorted({device.parent for device in trace.devices}))}
    parent = np.array([parents[device.parent] for device in trace.devices])
    key = parent[trace.device].astype(np.int64) * (len(trace.names) + 1) + trace.name
    others = others[np.lexsort((trace.start[others], key[others]))]
    low = np.searchsorted(key[others], key[nodes], "left")
    which, place = rows_of_groups(np.searchsorted(key[others], key[nodes], "right") - low)
    return nodes[which], others[low[which] + place]


def node_ref(trace: Trace, index: int) -> NodeRef:
    return {
        "node": index,
        "name": trace.names[trace.name[index]],
        "op": trace.ops[trace.op[index]],
        "device": trace.devices[trace.device[index]].name,
    }


def node_detail(
    trace: Trace, index: int, graph: Graph, *, critical: bool, slack_ns: float | None, arithmetic: Arithmetic
) -> NodeDetail:
    """Return a node's details. ``critical``, ``slack_ns``: from the critical path."""
    device, name, label = trace.devices[trace.device[index]], trace.names[trace.name[index]], trace.labels[trace.label[index]]
    start, end = int(trace.start[index]), int(trace.end[index])
    scheduled = _time(trace.scheduled, index)
    received = parse_received(label)
    stats = exec_stats(trace, index)
    inputs, control_inputs = _inputs(trace, index, graph, label)
    return {
        "node": index,
        "name": name,
        "op": trace.ops[trace.op[index]],
        "label": label,
        "device": device.name,
        "device_title": device.title,
        "scope": name.rpartition("/")[0],
        "thread": str(int(trace.thread[index])),
        "kind": int(trace.kind[index]),
        "start_ns": float(start),
        "end_ns": float(end),
        "duration_ns": float(end - start),
        "op_start_ns": _time(trace.op_start, index),
        "op_end_ns": _time(trace.op_end, index),
        "scheduled_ns": scheduled,
        "delay_ns": None if scheduled is None else start - scheduled,
        "share_of_type": _share_of_type(trace, index),
        "share_of_step": (end - start) / max(trace.duration_ns, 1),
        "critical": critical,
        "slack_ns": slack_ns,
        "inputs": inputs,
        "consumers": _refs(trace, graph.consumers_of(index)),
        "control_inputs": control_inputs,
        "outputs": outputs(stats),
        "temporary_bytes": float(stats.memory_stats.temp_memory_size),
        "persistent_bytes": float(stats.memory_stats.persistent_memory_size),
        "bytes_moved": float(trace.bytes_moved[index]),
        "flops": _known(arithmetic.flops, index),
        "traffic_bytes": _known(arithmetic.bytes, index),
        "source": received.source if received else "",
        "destination": received.destination if received else "",
        "related": _refs(trace, related_nodes(trace, graph, np.array([index]))[1]),
        "launched_ns": None if trace.launched_at is None else _time(trace.launched_at, index),
        "facts": [{"name": name, "value": value} for name, value in trace.details.facts(index)] if trace.details else [],
        "hlo": trace.details.hlo(index) if trace.details else "",
    }


def exec_stats(trace: Trace, index: int) -> Any:
    """Return the NodeExecStats as a protobuf message; an empty one for a trace without raw bytes."""
    low = int(trace.offset[index])
    return message("NodeExecStats", trace.raw[low : low + int(trace.size[index])])


def outputs(stats: Any) -> list[Output]:
    """Return the output tensors of a NodeExecStats."""
    return [
        {
            "slot": output.slot,
            "dtype": dtype_name(output.tensor_description.dtype),
            "shape": _shape(output.tensor_description),
            "bytes": float(_bytes(output.tensor_description.allocation_description)),
            "allocator": output.tensor_description.allocation_description.allocator_name,
        }
        for output in stats.output
    ]


def _shape(tensor: Any) -> str:
    return shape_text(dims_of(tensor.shape) if tensor.HasField("shape") else None)


def _bytes(allocation: Any) -> int:
    return int(allocation.allocated_bytes or allocation.requested_bytes)


def _time(column: Int64, index: int) -> float | None:
    value = int(column[index])
    return None if value < 0 else float(value)


def _known(column: Float64, index: int) -> float | None:
    value = float(column[index])
    return None if np.isnan(value) else value


def _share_of_type(trace: Trace, index: int) -> float:
    """Return the node's share of the time of all counted nodes of its op type."""
    same = (trace.op == trace.op[index]) & trace.counted
    total = int((trace.end[same] - trace.start[same]).sum())
    return float(trace.end[index] - trace.start[index]) / total if total else 0.0


def _inputs(trace: Trace, index: int, graph: Graph, label: str) -> tuple[list[NodeRef], list[NodeRef]]:
    """Return (data inputs, control inputs). If the graph has no edges to the node, data inputs come from the label: node -1."""
    edges = graph.in_edges(index)
    data = _refs(trace, graph.producer[edges[~graph.control[edges]]])
    control = _refs(trace, graph.producer[edges[graph.control[edges]]])
    if not len(edges):
        sources = [parse_input(text) for text in parse_label(label).inputs]
        names = [source.name for source in sources if not source.control][:MAX_LINKS]
        data += [{"node": -1, "name": name, "op": "", "device": ""} for name in names]
    return data, control


def _refs(trace: Trace, nodes: Any) -> list[NodeRef]:
    return [node_ref(trace, i) for i in list(dict.fromkeys(nodes[: 2 * MAX_LINKS].tolist()))[:MAX_LINKS]]


def neighbourhood(trace: Trace, graph: Graph, index: int, depth: int, limit: int) -> Neighbourhood:
    """Return the ``limit`` nearest nodes that are at most ``depth`` edges away, nearest first, and the edges among them.

    ``left_out`` in the result: the number of nodes that were found but left out because of ``limit``.
    """
    position = {index: 0}
    queue = deque([(index, 0)])
    left_out: set[int] = set()
    while queue:
        node, distance = queue.popleft()
        if distance >= depth:
            continue
        for other in [*graph.inputs_of(node).tolist(), *graph.consumers_of(node).tolist()]:
            if other not in position and len(position) < limit:
                position[other] = len(position)
                queue.append((other, distance + 1))
            elif other not in position:
                left_out.add(other)
    return {
        "nodes": [node_ref(trace, node) for node in position],
        "edges": _edges_among(graph, position),
        "left_out": len(left_out),
    }


def _edges_among(graph: Graph, position: dict[int, int]) -> list[list[int]]:
    """Return [producer, consumer] of each edge among these nodes, as positions. ``position``: node -> its position."""
    pairs: dict[tuple[int, int], None] = {}
    for node, at in position.items():
        for producer in graph.inputs_of(node).tolist():
            if producer in position:
                pairs[position[producer], at] = None
    return [list(pair) for pair in pairs]
