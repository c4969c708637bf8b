"""The traces of one step, from several processes, as one ``Trace`` on the reference clock. Pure NumPy.

The merged trace has the nodes of all processes' traces, one trace after the other, each on devices of its own, so all analyses
and the layout work on it as on any other trace. It has no raw bytes: a node's details come from the trace that recorded it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tftracer.job.analyses.process_traces import AlignedTrace, Owners, origin_of
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.arrays.intervals import concatenated
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.model import UNKNOWN_TIME, Content, Device, Trace


@dataclass(frozen=True)
class Merged:
    """A merged trace. ``first_node[i] : first_node[i + 1]`` are source i's nodes; ``groups`` names each merged device's owner."""

    trace: Trace
    first_node: list[int]
    groups: dict[str, str]

    def locate(self, node: int) -> tuple[int, int]:
        """Return (source, node in the source) of a merged node. Raises IndexError if there is no such node."""
        if not 0 <= node < self.first_node[-1]:
            raise IndexError(node)
        source = int(np.searchsorted(self.first_node, node, "right")) - 1
        return source, node - self.first_node[source]


def merge(aligned: Sequence[AlignedTrace], owners: Owners) -> Merged:
    """Merge all sources into one trace; its origin is the earliest start on the reference clock."""
    traces = [a.source.trace for a in aligned]
    origin = origin_of(aligned)
    first = np.cumsum([0, *(t.n for t in traces)])
    devices, groups = _devices(aligned, owners)
    names, name = _joined([t.names for t in traces], [t.name for t in traces])
    ops, op = _joined([t.ops for t in traces], [t.op for t in traces])
    labels, label = _joined([t.labels for t in traces], [t.label for t in traces])
    times = [a.since(origin) for a in aligned]
    shift = [a.start - a.source.trace.start - origin for a in aligned]
    zeros = np.zeros(int(first[-1]), np.int64)
    merged = Trace(
        content=Content(b""),
        origin_ns=origin,
        devices=devices,
        names=names,
        ops=ops,
        labels=labels,
        device=_numbered([t.device for t in traces], [len(t.devices) for t in traces]),
        name=name,
        op=op,
        label=label,
        kind=np.concatenate([t.kind for t in traces]) if traces else np.zeros(0, np.int8),
        start=concatenated([start for start, _ in times]),
        end=concatenated([end for _, end in times]),
        op_start=_shifted(traces, shift, lambda t: t.op_start),
        op_end=_shifted(traces, shift, lambda t: t.op_end),
        scheduled=_shifted(traces, shift, lambda t: t.scheduled),
        thread=concatenated([t.thread for t in traces]),
        offset=zeros,
        size=zeros,
        bytes_moved=concatenated([t.bytes_moved for t in traces]),
        launch=_launches(traces, first),
        notes=sorted({note for t in traces for note in t.notes}),
        source="job",
    )
    return Merged(merged, [int(n) for n in first], groups)


def _launches(traces: Sequence[Trace], first: Int64) -> Int64 | None:
    """Return [n] the node that launched each node, -1: none.

    Return None if no trace has launches from a profile; then launches are found by their names.
    """
    if all(trace.launch is None for trace in traces):
        return None
    launches = [launch_of(trace).astype(np.int64) for trace in traces]
    return concatenated([np.where(launch >= 0, launch + before, -1) for launch, before in zip(launches, first)])


def _devices(aligned: Sequence[AlignedTrace], owners: Owners) -> tuple[list[Device], dict[str, str]]:
    """Return each source's devices with distinct names, and the owner of each."""
    devices, groups = [], {}
    for i, a in enumerate(aligned):
        for device, owner in zip(a.source.trace.devices, owners.of_device[i]):
            title = _title(device, owners.titles[owner], a.source.title)
            parent = f"{a.source.title} {device.parent or device.name}"
            name = f"{a.source.title} {device.name}"
            # the owner's number is the task, so that the layout keeps each owner's lanes together and in order
            devices.append(replace(device, name=name, title=title, parent=parent, job="job", task=owner))
            groups[devices[-1].name] = owners.titles[owner]
    return devices, groups


def _title(device: Device, owner: str, recorder: str) -> str:
    """Return a lane's title without the owner, which the group shows. A server's lane also names the worker that recorded it."""
    unit = device.title[len(owner) + 1 :] if device.title.startswith(f"{owner} ") else device.title
    return unit if owner == recorder else f"{unit} for {recorder}"


def _shifted(traces: Sequence[Trace], shift: Sequence[Int64], column: Callable[[Trace], Int64]) -> Int64:
    """Shift a column of times as the nodes' starts were shifted. Unknown times stay unknown, others are at least 0."""
    moved = []
    for trace, by in zip(traces, shift):
        times = column(trace)
        moved.append(np.where(times == UNKNOWN_TIME, UNKNOWN_TIME, np.maximum(times + by, 0)))
    return concatenated(moved)


def _numbered(columns: Sequence[Int32], sizes: Sequence[int]) -> Int32:
    """Join columns of codes: each trace's codes are increased by the sum of the sizes before it."""
    before = np.cumsum([0, *sizes])
    sources = [(column + first).astype(np.int32) for column, first in zip(columns, before)]
    return np.concatenate(sources) if sources else np.zeros(0, np.int32)


def _joined(tables: Sequence[StringTable], codes: Sequence[Int32]) -> tuple[StringTable, Int32]:
    """Join the string tables and renumber ``codes``. Ranks usually run the same graph, so an equal table's numbers are reused."""
    if not tables:
        return StringTable.of([]), np.zeros(0, np.int32)
    code_of: dict[str, int] = {}
    maps: list[Int32] = []
    for i, table in enumerate(tables):
        same = next((j for j in range(min(i, 4)) if _is_same(tables[j], table)), None)
        if same is not None:
            maps.append(maps[same])
        else:
            maps.append(np.array([code_of.setdefault(text, len(code_of)) for text in table], np.int32))
    joined = [m[c] if len(m) else c for m, c in zip(maps, codes)]
    return StringTable.of(list(code_of)), np.concatenate(joined).astype(np.int32)


def _is_same(one: StringTable, other: StringTable) -> bool:
    return one.data == other.data and bool(np.array_equal(one.offsets, other.offsets))
