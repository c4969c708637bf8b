"""Reads names, ops, devices and inputs of a GraphDef's nodes from the bytes into NumPy columns; attributes are skipped.

Names are not decoded: their hashes (strings.py) are compared with the hashes of a trace's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.intervals import concatenated
from tftracer.trace.arrays.strings import Hasher, StringTable, equal_to, numbered, table
from tftracer.trace.arrays.types import Int32, Int64, UInt64
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode.labels import input_spans
from tftracer.trace.decode.message_spans import GRAPH_NODE, node_spans
from tftracer.trace.decode.wire import LEN, Fields, next_field, next_fields, of_kinds
from tftracer.trace.model import Span

_NAME, _OP, _INPUT, _DEVICE = 1, 2, 3, 4  # numbers of NodeDef's fields; 5 is its attributes
_TEXTS = [(number, LEN) for number in (_NAME, _OP, _INPUT, _DEVICE)]


@dataclass
class GraphNodes:
    """The nodes of one partition graph. The hashes are those of the hasher that ``read_graph`` gets."""

    name: UInt64  # [nodes] hashes
    device: Int32  # [nodes] codes into devices
    devices: StringTable
    of_op: Callable[[bytes], Int64]  # op type -> its nodes
    span: Callable[[int], bytes]  # node -> its serialized NodeDef
    node: Int64  # [inputs] the node that reads the input
    source: UInt64  # [inputs] hash of the name of the node that produces it
    slot: Int64  # [inputs] index of the producer's output; -1 for a control input
    text: Callable[[int], bytes]  # input -> the name of its producer


def read_graph(raw: bytes, span: Span, hasher: Hasher) -> GraphNodes:
    """Read the GraphDef at ``span``. Raises FormatError or TruncatedError for invalid bytes."""
    window = Window(raw, span.offset, span.offset + span.size)
    spans = node_spans(raw, span.offset, span.offset + span.size, GRAPH_NODE)
    start = concatenated(spans.starts) - window.low
    end = concatenated(spans.ends) - window.low
    columns = {number: np.zeros((2, len(start)), np.int64) for number in (_NAME, _OP, _DEVICE)}
    inputs: list[tuple[Int64, Int64, Int64]] = []
    for fields in leading_fields(window, start, end):
        for number, _, selected in of_kinds(fields, _TEXTS):
            row, offset, size = fields.row[selected], fields.offset[selected], fields.size[selected]
            if number == _INPUT:
                inputs.append((row, offset, size))
            else:
                columns[number][0, row], columns[number][1, row] = offset, size
    node, offset, size = (concatenated(column) for column in zip(*inputs)) if inputs else np.zeros((3, 0), np.int64)
    is_not_empty = size > 0
    node, offset, size = node[is_not_empty], offset[is_not_empty], size[is_not_empty]
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
    """Return (the code of each text, the distinct texts). ``offset`` is relative to the window."""
    codes, first = numbered(hasher.spans(window, offset, size))
    return codes, table(raw, offset[first] + window.low, size[first])


_MAX_ONE_BY_ONE = 8  # up to this many messages are read one by one


def leading_fields(window: Window, start: Int64, end: Int64) -> Iterator[Fields]:
    """Yield the fields up to number ``_DEVICE`` of the NodeDefs at start[i] : end[i], as ``wire.walk`` does.

    A NodeDef is read up to its first field with a higher number: protobuf writes fields in ascending order. When few messages
    are left, they are read one by one: one op with a thousand inputs would otherwise take a thousand rounds.
    """
    row = np.flatnonzero(start < end)
    at, stop = start[row], end[row]
    while len(row) > _MAX_ONE_BY_ONE:
        tag = window.bytes[at]
        wanted = (tag < (_DEVICE + 1) << 3) | (tag >= 0x80)
        if not wanted.all():
            row, at, stop = row[wanted], at[wanted], stop[wanted]
        fields, at = next_fields(window, row, at, stop)
        wanted = fields.number <= _DEVICE
        yield fields if wanted.all() else Fields(*(column[wanted] for column in fields))
        more = wanted & (at < stop)
        if not more.all():
            row, at, stop = row[more], at[more], stop[more]
    for one in zip(row.tolist(), at.tolist(), stop.tolist()):
        fields_of_one = _fields_of_one(window, *one)
        if fields_of_one:
            yield Fields(*np.array(fields_of_one, np.int64).T)


def _fields_of_one(window: Window, row: int, at: int, stop: int) -> list[tuple[int, ...]]:
    """Return the fields of one NodeDef up to number ``_DEVICE``."""
    data = window.bytes[at:stop].tobytes()  # indexing bytes takes half as long as indexing an array
    base, end, at = at, stop - at, 0
    fields: list[tuple[int, ...]] = []
    while at < end:
        field, at = next_field(data, at, end, window.low + base)
        if field.number > _DEVICE:
            break
        fields.append((row, field.number, field.wire, field.value & 0x7FFFFFFFFFFFFFFF, base + field.offset, field.size))
    return fields
