"""Rows of a layout as the threads of a trace file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from tftracer.contract.trace import LaneKind
from tftracer.trace.arrays.types import Int64
from tftracer.trace.layout import Layout
from tftracer.trace.model import Trace

_KINDS: tuple[LaneKind, ...] = get_args(LaneKind)
_ROWS_OF_A_KIND = 100_000

#: What a counter is called whose allocator has no name: TensorFlow tells none for tensors that came over the network.
UNNAMED = "(unnamed allocator)"


@dataclass(frozen=True)
class Row:
    """One row of one lane."""

    device: str  # as in the trace
    title: str
    tid: int  # from 1; the same for the same row of the same kind of lane in every trace
    lane: int


@dataclass(frozen=True)
class Tracks:
    devices: list[str]  # in the order of their lanes
    rows: list[Row]
    node: Int64  # [slices] node indices, by (row, start)
    row: Int64  # [slices] indices into rows


def tracks_of(trace: Trace, layout: Layout) -> Tracks:
    """The layout's rows with names and numbers."""
    rows = [
        Row(
            trace.devices[lane.device].name,
            lane.title if not i else f"{lane.title} ({i + 1})",
            _KINDS.index(lane.kind) * _ROWS_OF_A_KIND + i + 1,
            lane.id,
        )
        for lane in layout.lanes
        for i in range(lane.rows)
    ]
    offsets = layout.row_offsets.astype(np.int64)
    counts: Int64 = offsets[1:] - offsets[:-1]
    return Tracks(
        list(dict.fromkeys(row.device for row in rows)),
        rows,
        layout.order,
        np.repeat(np.arange(len(rows)), counts),
    )
