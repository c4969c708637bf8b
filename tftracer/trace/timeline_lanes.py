"""Lanes and rows: where each slice of a timeline is drawn, so that no two slices overlap on a row; and the page's message.

A lane is one device's compute, its communication, its work outside the step, the launches of a GPU, or one stream. It has as many
rows as the largest number of slices at the same time. A slice takes the row that was freed last, or the first row if all are
free. No Python loop over the slices (arrays/intervals.py). A slice of zero length takes one nanosecond, so that no
other slice covers it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Lane, LaneKind, Timeline
from tftracer.trace.arrays.columns import column, narrow, strings
from tftracer.trace.arrays.intervals import concatenated, running_and_predecessors
from tftracer.trace.arrays.linear_regex import Pattern
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.device_names import sort_key
from tftracer.trace.model import UNKNOWN_TIME, Device, DeviceKind, NodeKind, Trace, TraceContext

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
class Layout:
    """The nodes of each row: row r has order[row_offsets[r] : row_offsets[r + 1]], sorted by start."""

    lanes: list[Lane]
    order: Int64  # [slices] node indices by (row, start)
    row_offsets: npt.NDArray[np.uint32]  # [rows + 1]


def timeline(
    trace: Trace, laid_out: Layout, critical: Bool, context: TraceContext, findings: list[Finding], trace_id: int
) -> Timeline:
    """Build the message from which the page draws a trace: its slices as columns, in the order of the layout's rows.

    ``critical``: [n] whether each node is on the critical path.
    """
    order = laid_out.order
    start = trace.start[order]
    duration = trace.end[order] - start
    is_scheduled = trace.scheduled[order] != UNKNOWN_TIME
    delay = np.where(is_scheduled, start - trace.scheduled[order], -1)
    wide = duration.max(initial=0) >= 1 << 32
    return {
        "trace_id": trace_id,
        "title": context.title,
        "nodes": trace.n,
        "origin_ns": str(trace.origin_ns),
        "duration_ns": float(trace.duration_ns),
        "lanes": laid_out.lanes,
        "row_offsets": column(laid_out.row_offsets),
        "start": column(start.astype(np.float64)),
        "duration": column(duration.astype(np.float64 if wide else np.uint32)),
        "delay": column(delay.astype(np.float32)),
        "node": column(order.astype(np.uint32)),
        "name": column(trace.name[order].astype(np.uint32)),
        "op": column(narrow(trace.op[order], len(trace.ops))),
        "kind": column(trace.kind[order].astype(np.uint8)),
        "critical": column(critical[order]),
        "names": strings(trace.names),
        "ops": strings(trace.ops),
        "has_cost_graph": trace.cost_graph is not None,
        "findings": findings,
    }


def lay_out(trace: Trace, device_pattern: str = "") -> Layout:
    """Lay out the lanes of a trace, or only of devices whose names match ``device_pattern`` (a regular expression).

    Nodes without a time are left out. Raises PatternError for an invalid pattern.
    """
    lanes: list[Lane] = []
    orders: list[Int64] = []
    counts: list[Int64] = []
    first_row = 0
    for code, kind, nodes in _bands(trace, _selected(trace.devices, device_pattern)):
        order, per_row, busy = _pack(nodes, trace.start[nodes], trace.end[nodes])
        device = trace.devices[code]
        lanes.append(
            {
                "id": len(lanes),
                "device": device.name,
                "title": _title(device, kind),
                "kind": kind,
                "group": "",
                "first_row": first_row,
                "rows": len(per_row),
                "slices": len(nodes),
                "busy_ns": float(busy),
                "collapsed": device.repeats or kind == "outside",
            }
        )
        orders.append(order)
        counts.append(per_row)
        first_row += len(per_row)
    offsets = np.zeros(first_row + 1, np.uint32)
    np.cumsum(concatenated(counts), out=offsets[1:])
    return Layout(lanes, concatenated(orders), offsets)


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
    order = np.argsort(row.astype(np.min_scalar_type(len(per_row))), kind="stable")  # small integers sort fast
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
