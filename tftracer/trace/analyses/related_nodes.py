"""Nodes that are the same work seen elsewhere: a launch and its kernels, the two ends of a transfer."""

from __future__ import annotations

import numpy as np

from tftracer.trace.analyses.dependencies import Graph
from tftracer.trace.analyses.physical_devices import ON_DEVICE, launch_of, runs_on
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.model import DeviceKind, NodeKind, Trace


def related_nodes(trace: Trace, graph: Graph | None, of: Int64) -> tuple[Int64, Int64]:
    """(node, what it is related to) for the nodes ``of``, sorted by node: launch and kernels in time order, then transfers."""
    wanted = np.zeros(trace.n, np.bool_)
    wanted[of] = True
    pairs = _launched(trace, wanted) if trace.launch is not None else _of_one_name(trace, wanted)
    if graph is not None:
        producer, used = graph.producer[graph.transfer].astype(np.int64), graph.consumer[graph.transfer].astype(np.int64)
        ends = wanted & (trace.kind == NodeKind.COMMUNICATION)
        pairs += [(used[ends[used]], producer[ends[used]]), (producer[ends[producer]], used[ends[producer]])]
    node = np.concatenate([pair[0] for pair in pairs])
    other = np.concatenate([pair[1] for pair in pairs])
    order = np.argsort(node, kind="stable")
    return node[order], other[order]


def _launched(trace: Trace, wanted: Bool) -> list[tuple[Int64, Int64]]:
    """As the source tells it."""
    launch = launch_of(trace).astype(np.int64)
    launched = np.flatnonzero(launch >= 0)
    by_launch = launched[np.argsort(trace.start[launched], kind="stable")]
    of_launch = by_launch[wanted[launch[by_launch]]]
    launched = launched[wanted[launched]]
    return [(launched, launch[launched]), (launch[of_launch], of_launch)]


def _of_one_name(trace: Trace, wanted: Bool) -> list[tuple[Int64, Int64]]:
    launches = runs_on(trace, DeviceKind.GPU)
    return [
        _same_name(trace, wanted & runs_on(trace, *ON_DEVICE, DeviceKind.REPEAT), launches),
        _same_name(trace, wanted & launches, runs_on(trace, *ON_DEVICE)),  # stream:all repeats them, and is no kernel of its own
    ]


def _same_name(trace: Trace, these: Bool, those: Bool) -> tuple[Int64, Int64]:
    """All pairs of one name on one GPU, the others in time order."""
    nodes = np.flatnonzero(these)
    others = np.flatnonzero(those)
    if len(nodes) < len(others):
        others = others[np.isin(trace.name[others], np.unique(trace.name[nodes]))]
    if not len(nodes) or not len(others):
        return nodes[:0], others[:0]
    parents = {parent: i for i, parent in enumerate(sorted({device.parent for device in trace.devices}))}
    parent = np.array([parents[device.parent] for device in trace.devices])
    key = parent[trace.device].astype(np.int64) * (len(trace.names) + 1) + trace.name
    others = others[np.lexsort((trace.start[others], key[others]))]
    low = np.searchsorted(key[others], key[nodes], "left")
    counts = np.searchsorted(key[others], key[nodes], "right") - low
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(nodes, counts), others[np.repeat(low, counts) + place]
