"""Lanes and rows: where each slice of a timeline is drawn, so that no two slices overlap on a row.

A lane is one device's compute, its communication, its work outside the step, the launches of a GPU, or one stream. It has as many
rows as the largest number of slices at the same time. A slice takes the row that was freed last, or the first row if all are
free. No Python loop over the slices (arrays/places_of_intervals.py). A slice of zero length takes one nanosecond, so that no
other slice covers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from tftracer.contract import trace as messages
from tftracer.contract.trace import LaneKind
from tftracer.trace.arrays.linear_regex import Pattern
from tftracer.trace.arrays.places_of_intervals import narrow, running_and_predecessors
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.device_names import sort_key
from tftracer.trace.model import Device, DeviceKind, NodeKind, Trace

_KINDS: dict[DeviceKind, LaneKind] = {
    DeviceKind.CPU: "compute",
    DeviceKind.GPU: "compute",
    DeviceKind.TPU: "compute",
    DeviceKind.STREAM: "kernel",
    DeviceKind.MEMCPY: "copy",
    DeviceKind.SYNC: "sync",
    DeviceKind.REPEAT: "repeat",
    DeviceKind.UNKNOWN: "other",
}


@dataclass
class Lane:
    """A horizontal band: rows first_row : first_row + rows of the layout."""

    id: int
    device: int  # index into trace.devices
    title: str
    kind: LaneKind
    group: str
    first_row: int
    rows: int
    slices: int
    busy_ns: int  # length of the union of its slices
    collapsed: bool  # whether the page shows it collapsed at first


@dataclass
class Layout:
    """The nodes of each row: row r has order[row_offsets[r] : row_offsets[r + 1]], sorted by start."""

    lanes: list[Lane] = field(default_factory=list)
    order: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))  # [slices] node indices by (row, start)
    row_offsets: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(1, np.uint32))  # [rows + 1]

    @property
    def rows(self) -> int:
        return len(self.row_offsets) - 1


def lane_messages(trace: Trace, layout: Layout) -> list[messages.Lane]:
    lanes = [{**vars(lane), "device": trace.devices[lane.device].name, "busy_ns": float(lane.busy_ns)} for lane in layout.lanes]
    return cast("list[messages.Lane]", lanes)


def lay_out(trace: Trace, device_pattern: str = "") -> Layout:
    """Lay out the lanes of a trace, or only of devices whose names match ``device_pattern`` (a regular expression).

    Nodes without a time are left out. Raises PatternError for an invalid pattern.
    """
    lanes: list[Lane] = []
    orders: list[Int64] = []
    counts: list[Int64] = []
    first_row = 0
    for device, kind, nodes in _bands(trace, _selected(trace.devices, device_pattern)):
        order, per_row, busy = _pack(nodes, trace.start[nodes], trace.end[nodes])
        lanes.append(
            Lane(
                id=len(lanes),
                device=device,
                title=_title(trace.devices[device], kind),
                kind=kind,
                group="",
                first_row=first_row,
                rows=len(per_row),
                slices=len(nodes),
                busy_ns=busy,
                collapsed=trace.devices[device].repeats or kind == "outside",
            )
        )
        orders.append(order)
        counts.append(per_row)
        first_row += len(per_row)
    if not lanes:
        return Layout()
    offsets = np.zeros(first_row + 1, np.uint32)
    np.cumsum(np.concatenate(counts), out=offsets[1:])
    return Layout(lanes, np.concatenate(orders), offsets)


def _selected(devices: list[Device], pattern: str) -> list[int]:
    """Return the indices of the devices to show, in display order."""
    shown = Pattern(pattern).search_all(StringTable.of([device.name for device in devices]))
    return sorted(np.flatnonzero(shown).tolist(), key=lambda i: sort_key(devices[i]))


def _bands(trace: Trace, devices: list[int]) -> list[tuple[int, LaneKind, Int64]]:
    """Return (device, kind, nodes) of each lane that has nodes."""
    outside = trace.kind == NodeKind.OUTSIDE
    timed = (trace.start >= 0) & ~outside
    communicates = trace.kind == NodeKind.COMMUNICATION
    launches = trace.kind == NodeKind.LAUNCH
    bands: list[tuple[int, LaneKind, Int64]] = []
    for device in devices:
        here = (trace.device == device) & timed
        kind = _KINDS[trace.devices[device].kind]
        if kind == "compute" and (here & launches).any():
            kind = "launch"
        elif kind == "compute" and (trace.kind[here] == NodeKind.INPUT).all() and here.any():
            kind = "input"
        parts: dict[LaneKind, Bool] = {kind: here & ~communicates, "communication": here & communicates}
        parts["outside"] = outside & (trace.device == device)
        bands += [(device, lane_kind, np.flatnonzero(nodes)) for lane_kind, nodes in parts.items() if nodes.any()]
    return bands


def _title(device: Device, kind: LaneKind) -> str:
    tail = {"communication": " communication", "launch": " launches", "outside": " outside the step"}.get(kind, "")
    return device.title + tail


def _pack(nodes: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, int]:
    """Return (nodes sorted by (row, start), number of slices in each row, length of the union) of one lane."""
    by_start = np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else np.arange(len(start))
    start = start[by_start]
    end = np.maximum(end[by_start], start + 1)
    row, busy = _rows(start, end)
    per_row = np.bincount(row)
    order = np.argsort(narrow(row, len(per_row)), kind="stable")
    return nodes[by_start[order]], per_row, busy


def _rows(start: Int64, end: Int64) -> tuple[Int64, int]:
    """Return (row of each slice, length of the union). Slices are sorted by start and not empty."""
    running, predecessor = running_and_predecessors(start, end)
    alone = running == 0  # nothing else runs when these start
    ended = predecessor[alone]  # the slice that ended last before each of them
    busy = int(end.max() + end[ended[ended >= 0]].sum() - start[alone].sum())
    stretch = np.cumsum(alone)  # number of the busy period that a slice belongs to
    first = alone | (predecessor < 0) | (stretch[predecessor] != stretch)
    return _inherited(running, predecessor, first), busy


def _inherited(running: Int64, predecessor: Int64, first: Bool) -> Int64:
    """Return each slice's row: ``running`` if it is the ``first`` on its row in a busy period, else its predecessor's row."""
    row = np.where(first, running, -1)
    todo = np.flatnonzero(~first)
    link = np.where(first, np.arange(len(running)), predecessor)
    while len(todo):  # pointer doubling: the distance to the first slice halves in each round
        link[todo] = link[link[todo]]
        row[todo] = row[link[todo]]
        todo = todo[row[todo] < 0]
    return row
