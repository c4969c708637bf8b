"""Communication of a step: transfers between processes, their links, and collectives.

- A *transfer* has a source and a destination: it is a RecvTensor on the receiving device, whose label names both. It lasts from
  the moment at which the sender began to send (by the sender's clock; TensorFlow moves this moment into the interval from request
  to arrival if it is outside) to the tensor's arrival. The time before the tensor was computed is not part of it.
- A *link* is all transfers from one device to another. *Wire* time is the union of their times; *waited for* is the part of
  the wire time in which the receiving process computed nothing.
- A *collective* is any other communication: Horovod, NCCL, TensorFlow's own, DDL, ops that match the user's pattern.
- *Exposed*: communication runs on some device and no device computes, as in the budget of the whole step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Communication, Link, OpRow, Transfer
from tftracer.trace.analyses import budget, ops, physical_devices
from tftracer.trace.analyses.budget import Activities
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.intervals import Cover, paced
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode import static_graph
from tftracer.trace.decode.device_names import process_of
from tftracer.trace.decode.labels import Received, parse_received
from tftracer.trace.model import NodeKind, Trace

MAX_TRANSFERS = 5_000
MAX_COLLECTIVES = 5_000


@dataclass(frozen=True)
class Transfers:
    """The transfers of a trace; ``node`` and ``link`` have one entry per transfer."""

    node: Int64
    link: Int64  # index into links
    tensors: dict[int, Received]  # label code -> the parsed label
    links: list[tuple[str, str]]  # source, destination
    without_link: Int64  # communicating nodes whose labels name no source and destination, such as collectives


def transfers(trace: Trace) -> Transfers:
    """Find the transfers. Each distinct label of a communicating node is parsed once."""
    nodes = np.flatnonzero(trace.kind == NodeKind.COMMUNICATION)
    labels, inverse = np.unique(trace.label[nodes], return_inverse=True)
    links: dict[tuple[str, str], int] = {}
    tensors: dict[int, Received] = {}
    link = np.full(len(labels), -1, np.int64)
    for i, label in enumerate(paced(labels.tolist())):
        received = parse_received(trace.labels[label])
        if received:
            tensors[label] = received
            link[i] = links.setdefault((received.source, received.destination), len(links))
    node_link = link[inverse] if len(nodes) else link
    return Transfers(nodes[node_link >= 0], node_link[node_link >= 0], tensors, list(links), nodes[node_link < 0])


def unrecorded(trace: Trace) -> dict[str, tuple[int, int]]:
    """Return title of process -> (received tensors without a RecvTensor in the trace, all received tensors).

    Processes that lack none are left out. Only partition graphs say what a process receives; without them the result is empty.
    """
    if not trace.partition_graphs or len({(d.job, d.task) for d in trace.devices if d.job}) < 2:
        return {}
    arrived = {(process_of(received.destination), received.tensor) for received in transfers(trace).tensors.values()}
    total, lost = Counter[str](), Counter[str]()
    for tensor, source, destination in paced(static_graph.receives(trace)):
        process = process_of(destination)
        if process_of(source) != process:
            total[process] += 1
            lost[process] += (process, tensor) not in arrived
    return {process: (lost[process], total[process]) for process in sorted(total) if lost[process]}


def communication(
    trace: Trace, findings: list[Finding], activities: Activities | None = None, work: ops.Work | None = None
) -> Communication:
    """Return the links sorted by waiting time, the longest transfers, and the collectives."""
    activities = activities or budget.activities(trace)
    all_transfers = transfers(trace)
    whole = activities.whole
    duration = trace.end[all_transfers.node] - trace.start[all_transfers.node]
    longest = largest_first(duration, MAX_TRANSFERS)
    return {
        "links": link_table(trace, all_transfers, activities),
        "transfers": [_transfer(trace, all_transfers, at) for at in paced(longest.tolist(), 500)],
        "transfers_total": len(all_transfers.node),
        "collectives": _collectives(trace, all_transfers, work),
        "total_ns": float(whole.communication.length),
        "exposed_ns": float((whole.communication - whole.compute).length),
        "findings": findings,
    }


def computing(trace: Trace, activities: Activities) -> dict[str, Cover]:
    """Return device -> the times in which its process computed."""
    by_device: dict[str, Cover] = {}
    for process in physical_devices.processes(trace):
        compute = activities.of_process(process).compute
        by_device.update((trace.devices[code].name, compute) for code in process.codes)
    return by_device


def link_table(trace: Trace, all_transfers: Transfers, activities: Activities) -> list[Link]:
    """Return one row for each link, the one with the longest waiting time first."""
    by_device = computing(trace, activities)
    order = np.argsort(all_transfers.link, kind="stable")
    bounds = np.searchsorted(all_transfers.link[order], np.arange(len(all_transfers.links) + 1))
    rows = [
        _link(trace, source, destination, all_transfers.node[order[bounds[i] : bounds[i + 1]]], by_device)
        for i, (source, destination) in enumerate(all_transfers.links)
    ]
    return sorted(rows, key=lambda row: (-row["waited_ns"], -row["wire_ns"], row["source"], row["destination"]))


def _link(trace: Trace, source: str, destination: str, nodes: Int64, computing: dict[str, Cover]) -> Link:
    wire = Cover.of(trace.start[nodes], trace.end[nodes])
    size = float(trace.bytes_moved[nodes].sum(dtype=np.float64))
    return {
        "source": source,
        "destination": destination,
        "messages": len(nodes),
        "bytes": size,
        "wire_ns": float(wire.length),
        "waited_ns": float((wire - computing.get(destination, Cover.empty())).length),
        "mean_bandwidth": size * 1e9 / wire.length if wire.length else 0.0,
        "longest": int(nodes[np.argmax(trace.end[nodes] - trace.start[nodes])]),
    }


def _transfer(trace: Trace, all_transfers: Transfers, at: int) -> Transfer:
    node = int(all_transfers.node[at])
    received = all_transfers.tensors[int(trace.label[node])]
    start, end, size = int(trace.start[node]), int(trace.end[node]), int(trace.bytes_moved[node])
    return {
        "node": node,
        "tensor": received.tensor,
        "op": trace.ops[trace.op[node]],
        "source": received.source,
        "destination": received.destination,
        "bytes": float(size),
        "start_ns": float(start),
        "end_ns": float(end),
        "bandwidth": size * 1e9 / (end - start) if end > start else 0.0,
    }


def _collectives(trace: Trace, all_transfers: Transfers, work: ops.Work | None) -> list[OpRow]:
    if not len(all_transfers.without_link):
        return []
    selected = np.zeros(trace.n, bool)
    selected[all_transfers.without_link] = True
    work = work or ops.work_of(trace)
    return ops.rows_by_name(trace, work.only(selected[work.node]), float(work.duration.sum()))[:MAX_COLLECTIVES]
