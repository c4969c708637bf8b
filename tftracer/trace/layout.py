"""Lanes and rows: where each slice of a timeline is drawn, so that no two slices overlap on a row.

A lane is one device's compute, its communication, the launches of a GPU, one stream. A lane has as many rows as slices that
ever ran at once in it. A slice takes the row that was freed last; when all rows are free, it takes the first. No loop over
the slices (arrays/turns.py). A slice of no length is laid out as one of a nanosecond, so that nothing hides
behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tftracer.contract import trace as messages
from tftracer.contract.trace import LaneKind
from tftracer.trace.arrays.pattern import Pattern
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.turns import narrow, turns
from tftracer.trace.arrays.types import Int64
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
    """One horizontal band: rows first_row : first_row + rows of the layout."""

    id: int
    device: int  # index into trace.devices
    title: str
    kind: LaneKind
    group: str
    first_row: int
    rows: int
    slices: int
    busy_ns: int  # length of the union of its slices
    collapsed: bool  # to begin with


@dataclass
class Layout:
    """Row r holds the nodes order[row_offsets[r] : row_offsets[r + 1]], by start."""

    lanes: list[Lane] = field(default_factory=list)
    order: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))  # [slices] node indices by (row, start)
    row_offsets: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(1, np.uint32))  # [rows + 1]

    @property
    def rows(self) -> int:
        return len(self.row_offsets) - 1


def lane_messages(trace: Trace, layout: Layout) -> list[messages.Lane]:
    """The lanes as the wire carries them."""
    return [
        {
            "id": lane.id,
            "device": trace.devices[lane.device].name,
            "title": lane.title,
            "kind": lane.kind,
            "group": lane.group,
            "first_row": lane.first_row,
            "rows": lane.rows,
            "slices": lane.slices,
            "busy_ns": float(lane.busy_ns),
            "collapsed": lane.collapsed,
        }
        for lane in layout.lanes
    ]


def lay_out(trace: Trace, device_pattern: str = "") -> Layout:
    """The lanes of a trace, or of its devices whose names ``device_pattern`` (a regular expression) is found in.

    Nodes without a time are left out. Raises PatternError for a pattern that cannot be used.
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
    """Indices of the devices to show, in the order in which they are shown."""
    shown = Pattern(pattern).search_all(StringTable.of([device.name for device in devices]))
    return sorted(np.flatnonzero(shown).tolist(), key=lambda i: sort_key(devices[i]))


def _bands(trace: Trace, devices: list[int]) -> list[tuple[int, LaneKind, Int64]]:
    """(device, kind, its nodes) of each lane that has any."""
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
        parts: tuple[tuple[LaneKind, npt.NDArray[np.bool_]], ...]
        parts = (
            (kind, here & ~communicates),
            ("communication", here & communicates),
            ("outside", outside & (trace.device == device)),
        )
        bands += [(device, of, np.flatnonzero(nodes)) for of, nodes in parts if nodes.any()]
    return bands


def _title(device: Device, kind: LaneKind) -> str:
    tail = {"communication": " communication", "launch": " launches", "outside": " outside the step"}.get(kind, "")
    return device.title + tail


def _pack(nodes: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, int]:
    """(nodes by (row, start), slices in each row, length of the union) of one lane."""
    by_start = np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else np.arange(len(start))
    start = start[by_start]
    end = np.maximum(end[by_start], start + 1)
    row, busy = _rows(start, end)
    per_row = np.bincount(row)
    order = np.argsort(narrow(row, len(per_row)), kind="stable")
    return nodes[by_start[order]], per_row, busy


def _rows(start: Int64, end: Int64) -> tuple[Int64, int]:
    """(row of each, length of the union) of slices sorted by start, none of them empty."""
    running, before = turns(start, end)
    alone = running == 0  # nothing else runs when these start
    ended = before[alone]  # what ran last before each of them
    busy = int(end.max() + end[ended[ended >= 0]].sum() - start[alone].sum())
    stretch = np.cumsum(alone)  # from one moment at which nothing runs to the next
    first = alone | (before < 0) | (stretch[before] != stretch)
    return _inherited(running, before, first), busy


def _inherited(running: Int64, before: Int64, first: npt.NDArray[np.bool_]) -> Int64:
    """Each slice's row: that of the slice before it, back to one that has the row of its level."""
    row = np.where(first, running, -1)
    todo = np.flatnonzero(~first)
    link = np.where(first, np.arange(len(running)), before)
    while len(todo):  # pointer doubling: the distance to the first one halves in each round
        link[todo] = link[link[todo]]
        row[todo] = row[link[todo]]
        todo = todo[row[todo] < 0]
    return row
