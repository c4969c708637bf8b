"""Matches the traces of one step: collectives that run on several ranks, and sends with their receives. No side effects.

A collective is identified by its node's name and, in loops, by its iteration. Horovod's ops start when a rank is ready, and
end when the result is available, which is nearly the same moment on all ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tftracer.job.analyses.clocks import Observation, from_ends, from_sends
from tftracer.job.analyses.process_traces import Owners, ProcessTrace, owners_of_nodes
from tftracer.trace.analyses.node_details import exec_stats
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.labels import parse_received
from tftracer.trace.decode.node_kinds import NO_COLLECTIVE
from tftracer.trace.model import NodeKind, Trace

MISSING = -1


@dataclass(frozen=True)
class Collectives:
    """The collectives of a step; times in ns since the epoch by each trace's own clock; MISSING if a trace does not have it."""

    names: list[str]
    ops: list[str]
    start: Int64  # [collectives, traces]
    end: Int64
    node: Int64  # index in the trace

    def __len__(self) -> int:
        return len(self.names)


def find_collectives(sources: Sequence[ProcessTrace]) -> Collectives:
    """Find the collectives that are in at least two of the traces, in order of their start."""
    seen: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for i, source in enumerate(sources):
        for key, occurrence in _occurrences(source.trace):
            seen[key].append((i, occurrence))
    shared = {key: where for key, where in seen.items() if len(where) > 1}
    shape = (len(shared), len(sources))
    start, end, node = (np.full(shape, MISSING, np.int64) for _ in range(3))
    ops = []
    for row, where in enumerate(shared.values()):
        for column, node_index in where:
            trace = sources[column].trace
            start[row, column] = trace.start[node_index] + trace.origin_ns
            end[row, column] = trace.end[node_index] + trace.origin_ns
            node[row, column] = node_index
        trace, node_index = sources[where[0][0]].trace, where[0][1]
        ops.append(str(trace.ops[int(trace.op[node_index])]))
    order = np.argsort(np.where(start == MISSING, np.iinfo(np.int64).max, start).min(axis=1), kind="stable")
    names = [name if not turn else f"{name} (turn {turn + 1})" for name, turn in shared]
    return Collectives([names[i] for i in order], [ops[i] for i in order], start[order], end[order], node[order])


def result_bytes(sources: Sequence[ProcessTrace], collectives: Collectives, limit: int) -> list[float | None]:
    """Return the bytes of each collective's result, for the first ``limit``, on the first rank that ran it; None: unknown."""
    first = (collectives.node != MISSING).argmax(axis=1)
    return [_bytes(sources[p].trace, int(collectives.node[row, p])) for row, p in enumerate(first[:limit].tolist())]


def _bytes(trace: Trace, node: int) -> float | None:
    """Return the bytes requested for all outputs of a node; an allocator may have given more."""
    described = [output.tensor_description.allocation_description for output in exec_stats(trace, node).output]
    return float(sum(each.requested_bytes or each.allocated_bytes for each in described)) or None


def _occurrences(trace: Trace) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield ``((name, iteration), node)`` of each collective in a trace, in order of start."""
    may_be_collective = np.array([NO_COLLECTIVE.fullmatch(op) is None for op in trace.ops], bool)
    is_collective = may_be_collective[trace.op] & (trace.kind == NodeKind.COMMUNICATION)
    turns: dict[int, int] = defaultdict(int)
    for node in sorted(np.flatnonzero(is_collective), key=lambda n: int(trace.start[n])):
        name = int(trace.name[node])
        yield (str(trace.names[name]), turns[name]), int(node)
        turns[name] += 1


def observations(sources: Sequence[ProcessTrace], owners: Owners, collectives: Collectives) -> list[Observation]:
    """Collect the observations of the owners' clocks: from the ends of collectives that two owners share, and from sends."""
    result: list[Observation] = []
    for i in range(1, len(sources)):
        present = collectives.end[:, i] != MISSING
        for first in range(i):
            both = present & (collectives.end[:, first] != MISSING)
            if both.any():
                result += from_ends(first, i, collectives.end[both, first], collectives.end[both, i])
                break
    for i, source in enumerate(sources):
        result += _from_transfers(source, owners_of_nodes(source, owners.of_device[i]))
    return result


def _from_transfers(source: ProcessTrace, owner: Int64) -> list[Observation]:
    """Collect observations of pairs of clocks from one trace's RecvTensors."""
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for sender, receiver, sent, received in _transfers(source.trace, owner):
        pairs[sender, receiver].append((sent, received))
    result = []
    for a, b in sorted({(min(pair), max(pair)) for pair in pairs}):
        result += from_sends(a, b, _times(pairs.get((a, b), [])), _times(pairs.get((b, a), [])))
    return result


def _times(moments: list[tuple[int, int]]) -> tuple[Int64, Int64]:
    both = np.array(moments, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _transfers(trace: Trace, owner: Int64) -> Iterator[tuple[int, int, int, int]]:
    """Yield ``(sender, receiver, sent, received)`` of each RecvTensor whose producer ran exactly once, on another process.

    A tensor is sent after its producer ended. That end counts as ``sent``: no later moment on the sender's clock is known.
    """
    devices = {device.name: code for code, device in enumerate(trace.devices)}
    producers = _nodes_run_once(trace)
    receives = np.array([op == "RecvTensor" for op in trace.ops], bool)
    for node in np.flatnonzero(receives[trace.op]):
        label = parse_received(str(trace.labels[int(trace.label[node])]))
        device = devices.get(label.source) if label else None
        if label is None or device is None:
            continue
        producer = producers.get((label.producer, device))
        if producer is not None and owner[producer] != owner[node]:
            times = (int(trace.end[producer]) + trace.origin_ns, int(trace.end[node]) + trace.origin_ns)
            yield int(owner[producer]), int(owner[node]), *times


def _nodes_run_once(trace: Trace) -> dict[tuple[str, int], int]:
    """Return (name, device) -> node, for the names that ran exactly once on that device."""
    if len(trace.devices) < 2:
        return {}
    key = trace.name.astype(np.int64) * len(trace.devices) + trace.device
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    once = first[counts == 1]
    return {(str(trace.names[int(trace.name[n])]), int(trace.device[n])): int(n) for n in once}
