"""The nodes of a GraphDef as columns: names, ops, devices and inputs, read by NumPy from the bytes, attributes passed over.

Nothing is decoded for a node: what is compared with the names of a trace is its hash (strings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.intervals import concatenated
from tftracer.trace.arrays.strings import Hasher, StringTable, distinct, equal_to, table
from tftracer.trace.arrays.types import Int32, Int64, UInt64
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode.labels import input_spans
from tftracer.trace.decode.leading_fields import leading_fields
from tftracer.trace.decode.message_spans import GRAPH_NODE, node_spans
from tftracer.trace.decode.wire import LEN, of_kinds
from tftracer.trace.model import Span

_NAME, _OP, _INPUT, _DEVICE = 1, 2, 3, 4  # numbers of NodeDef's fields; 5 is its attributes
_TEXTS = [(number, LEN) for number in (_NAME, _OP, _INPUT, _DEVICE)]


@dataclass
class GraphNodes:
    """One partition graph. Hashes are the given hasher's."""

    name: UInt64  # [nodes] hashes
    device: Int32  # [nodes] codes into devices
    devices: StringTable
    of_op: Callable[[bytes], Int64]  # the nodes of an op type
    span: Callable[[int], bytes]  # a node's own bytes, by its number
    node: Int64  # [inputs] whose input it is
    source: UInt64  # [inputs] hash of the name of the node that it comes from
    slot: Int64  # [inputs] that node's output; -1 for control
    text: Callable[[int], bytes]  # the name of an input's node, by the input's number


def read_graph(raw: bytes, span: Span, hasher: Hasher) -> GraphNodes:
    """The nodes of the GraphDef at ``span``. FormatError and TruncatedError for bytes that are none."""
    window = Window(raw, span.offset, span.offset + span.size)
    spans = node_spans(raw, span.offset, span.offset + span.size, GRAPH_NODE)
    start = concatenated(spans.starts) - window.low
    end = concatenated(spans.ends) - window.low
    columns = {number: np.zeros((2, len(start)), np.int64) for number in (_NAME, _OP, _DEVICE)}
    inputs: list[tuple[Int64, Int64, Int64]] = []
    for fields in leading_fields(window, start, end, _DEVICE):
        for number, _, which in of_kinds(fields, _TEXTS):
            row, offset, size = fields.row[which], fields.offset[which], fields.size[which]
            if number == _INPUT:
                inputs.append((row, offset, size))
            else:
                columns[number][0, row], columns[number][1, row] = offset, size
    node, offset, size = (concatenated(column) for column in zip(*inputs)) if inputs else np.zeros((3, 0), np.int64)
    some = size > 0
    node, offset, size = node[some], offset[some], size[some]
    device, devices = _coded(window, raw, hasher, *columns[_DEVICE])
    first, length, slot, _ = input_spans(window.bytes, offset, offset + size)
    return GraphNodes(
        name=hasher.spans(window, *columns[_NAME]),
        device=device,
        devices=devices,
        of_op=lambda op: equal_to(op, window.bytes, *columns[_OP]),
        span=lambda i: window.bytes[start[i] : end[i]].tobytes(),
        node=node,
        source=hasher.spans(window, first, length),
        slot=slot,
        text=lambda i: window.bytes[first[i] : first[i] + length[i]].tobytes(),
    )


def _coded(window: Window, raw: bytes, hasher: Hasher, offset: Int64, size: Int64) -> tuple[Int32, StringTable]:
    codes, first = distinct(hasher.spans(window, offset, size))
    return codes, table(raw, offset[first] + window.low, size[first])
