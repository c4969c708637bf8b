"""Decodes serialized RunMetadata into the columns of a ``Trace``, without a Python object per node or a copy of the bytes.

First it finds the nodes (message_spans.py), then it reads them in blocks that fit into the cache (node_fields.py), with their
strings dictionary-coded (arrays/strings.py). As in protobuf, the last value of a scalar field counts, several messages of one
field are merged, and unknown fields are skipped. Unlike protobuf, it accepts text that is not UTF-8. All lengths and numbers
are checked; damaged bytes raise FormatError or TruncatedError with their position.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np

from tftracer.errors import FormatError, PatternError
from tftracer.trace.arrays.intervals import concatenated, is_in
from tftracer.trace.arrays.strings import Hashed, Hasher, StringTable, find, numbered, spans_in, table
from tftracer.trace.arrays.types import Bool, Int32, Int64, UInt64
from tftracer.trace.arrays.window import BLOCK, blocks
from tftracer.trace.decode import labels as labels_
from tftracer.trace.decode import wire
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.decode.message_spans import MAX_OTHERS, Spans, node_spans
from tftracer.trace.decode.node_fields import NodeColumns, read_nodes
from tftracer.trace.decode.node_kinds import node_kinds
from tftracer.trace.decode.valid_times import MAX_NS, valid_times
from tftracer.trace.decode.wire import LEN, Field
from tftracer.trace.model import UNKNOWN_TIME, Content, Device, DeviceKind, NodeKind, Span, Trace

_INVERSE_OF_125 = np.uint64(pow(125, -1, 1 << 61))
_TYPE_OF_DOUBLE = b"\n\x01T\x12\x020\x02"  # the attribute T of a NodeDef, if it is DT_DOUBLE
_EPOCH_NS = 10**15  # later times are epoch times; in a trace that has epoch times, earlier times are invalid


@dataclass
class Outline:
    """The positions of the parts of a RunMetadata."""

    devices: dict[str, int] = field(default_factory=dict)  # name -> code, in order
    device: list[tuple[int, Spans]] = field(default_factory=list)  # (code, nodes) of each DeviceStepStats
    partition_graphs: list[Span] = field(default_factory=list)
    cost_graph: Span | None = None


def outline(raw: bytes) -> Outline:
    """Find the parts of a RunMetadata. Raises FormatError and TruncatedError with the position of the byte."""
    contents = Outline()
    for top in _limited(wire.fields(raw, 0, len(raw))):
        if top.wire != LEN:
            continue
        if top.number == 1:
            for entry in _limited(wire.fields(raw, top.offset, top.offset + top.size)):
                if entry.number == 1 and entry.wire == LEN:
                    _add_device(contents, raw, entry.offset, entry.offset + entry.size)
        elif top.number == 2:
            contents.cost_graph = Span(top.offset, top.size)
        elif top.number == 3:
            contents.partition_graphs.append(Span(top.offset, top.size))
    return contents


def _limited(all_fields: Iterator[Field]) -> Iterator[Field]:
    for number, one in enumerate(all_fields):
        if number > MAX_OTHERS:
            raise FormatError(f"Byte {one.offset}: more than {MAX_OTHERS} entries in one message. Is this a RunMetadata?")
        yield one


def _add_device(contents: Outline, raw: bytes, low: int, high: int) -> None:
    """Add a DeviceStepStats.

    Several messages of one device are merged: parameter servers write ops in one, RecvTensors in another.
    """
    spans = node_spans(raw, low, high)
    name = ""
    for other in spans.others:
        if other.number == 1 and other.wire == LEN:
            name = raw[other.offset : other.offset + other.size].decode("utf-8", "replace")
    contents.device.append((contents.devices.setdefault(name, len(contents.devices)), spans))


@dataclass
class _Columns(NodeColumns):
    """The columns of all nodes. Positions are those in the file."""

    hasher: Hasher = field(init=False, default_factory=Hasher.random)
    name_hash: UInt64 = field(init=False)

    def __post_init__(self) -> None:
        self.name_hash = np.empty(len(self.start), np.uint64)


def decode_run_metadata(raw: bytes, communication_ops: str = "") -> Trace:
    """Decode a serialized RunMetadata. ``communication_ops``: see node_kinds.py.

    Nodes are in the order of the bytes; entries of one device are merged. A node without a time has UNKNOWN_TIME as start and
    end. Raises FormatError for invalid bytes, TruncatedError if the end is missing; both give the position of the byte.
    """
    contents = outline(raw)
    codes = np.array([code for code, _ in contents.device], np.int32)
    device = np.repeat(codes, [spans.nodes for _, spans in contents.device])
    offset = concatenated([part for _, spans in contents.device for part in spans.starts])
    end_byte = concatenated([part for _, spans in contents.device for part in spans.ends])
    contents.device.clear()
    columns = _read(raw, offset, end_byte)
    notes: list[str] = []
    origin = _set_times(columns, notes)
    trace = Trace(
        content=Content(raw),
        origin_ns=origin,
        devices=[parse_device(name) for name in contents.devices],
        names=StringTable.of([]),
        ops=StringTable.of([]),
        labels=StringTable.of([]),
        device=device,
        name=np.zeros(0, np.int32),
        op=np.zeros(0, np.int32),
        label=np.zeros(0, np.int32),
        kind=np.zeros(0, np.int8),
        start=columns.start,
        end=columns.end,
        op_start=columns.op_start,
        op_end=columns.op_end,
        scheduled=columns.scheduled,
        thread=columns.thread,
        offset=offset,
        size=np.subtract(end_byte, offset, out=end_byte),
        bytes_moved=np.zeros(len(offset), np.int64),
        partition_graphs=contents.partition_graphs,
        cost_graph=contents.cost_graph,
        notes=notes,
        may_be_double=_may_be_double(raw, contents.partition_graphs),
    )
    _set_strings(trace, columns)
    _set_kinds(trace, communication_ops)
    _set_bytes_moved(trace)
    return trace


def _may_be_double(raw: bytes, graphs: list[Span]) -> bool:
    """Return whether an op may compute in float64. If not, the graph and the outputs need not be read to find out."""
    return not graphs or any(raw.find(_TYPE_OF_DOUBLE, graph.offset, graph.offset + graph.size) >= 0 for graph in graphs)


def _set_kinds(trace: Trace, communication_ops: str) -> None:
    """Set the kinds. An invalid pattern, which may come from a file, is ignored with a note."""
    strings = trace.devices, trace.device, trace.names, trace.name, trace.ops, trace.op
    try:
        trace.kind = node_kinds(*strings, communication_ops)
    except PatternError as error:
        trace.kind = node_kinds(*strings)
        trace.notes.append(f"communication_ops_unused: {error}")


# ------------------------------------------------------------------------------------------------------------ the blocks


def _read(raw: bytes, start: Int64, end: Int64) -> _Columns:
    columns = _Columns(*(np.empty(len(start), np.int64) for _ in fields(NodeColumns)))
    for block, window, low, high in blocks(raw, start, end):
        nodes = read_nodes(window, low, high)
        columns.name_hash[block] = columns.hasher.spans(window, nodes.name_at, nodes.name_size)
        nodes.name_at += window.low
        nodes.label_at += window.low
        columns.put(block, nodes)
    return columns


# ------------------------------------------------------------------------------------------------------------------ times


def _set_times(columns: _Columns, notes: list[str]) -> int:
    """Make the times relative to the earliest start, in place, and return the earliest start.

    A node whose start is invalid gets UNKNOWN_TIME for all of its times. An invalid end becomes the start.
    """
    start, end = columns.start, columns.end
    if not len(start):
        return 0
    timed = valid_times(start, start >= (_EPOCH_NS if int(start.max()) >= _EPOCH_NS else 0))
    origin = int(start.min(where=timed, initial=np.iinfo(np.int64).max)) if timed.any() else 0
    wrong_end = (end < 0) | (end > MAX_NS)
    if wrong_end.any() or not timed.all():
        notes.append("bad_times")
        end[wrong_end] = 0
    start -= origin
    end += start
    duration = int(end.max(where=timed, initial=0))
    for low in range(0, len(start), BLOCK):  # in blocks, so that temporary arrays are smaller than the columns
        block = slice(low, low + BLOCK)
        _set_op_times(columns.op_start[block], columns.op_end[block], start[block], end[block])
        _set_scheduled(columns.scheduled[block], start[block], origin, duration)
    untimed = ~timed
    if untimed.any():
        for column in (start, end, columns.op_start, columns.op_end, columns.scheduled):
            column[untimed] = UNKNOWN_TIME
    return origin


def _set_op_times(op_start: Int64, op_end: Int64, start: Int64, end: Int64) -> None:
    """Make both relative to the origin, in place; in the file they are relative to the node's start.

    Ops without op_end_rel were not timed.
    """
    unknown = (op_end <= 0) | (op_start < 0) | (op_end < op_start)
    unknown |= op_end > end - start
    for column in (op_start, op_end):
        column += start
        column[unknown] = UNKNOWN_TIME


def _set_scheduled(scheduled: Int64, start: Int64, origin: int, duration: int) -> None:
    """Make the scheduling times relative to ``origin``, in place.

    If a time is after the node's start, or before it by more than the step's duration, it is read as TensorFlow up to 2.19
    writes it (``_undo_overflow``). At most one of the two readings is plausible. This is decided for each node, because the
    processes of one step may run different versions. If neither is plausible, the time is UNKNOWN_TIME.
    """
    recorded = scheduled != 0
    wrong = np.flatnonzero(recorded & ~_plausible(scheduled, start, origin, duration))
    if len(wrong):
        undone = _undo_overflow(scheduled[wrong])
        undone[~_plausible(undone, start[wrong], origin, duration)] = 0
        scheduled[wrong] = undone
    missing = scheduled == 0
    scheduled -= origin
    np.maximum(scheduled, 0, out=scheduled)
    scheduled[missing] = UNKNOWN_TIME


def _plausible(scheduled: Int64, start: Int64, origin: int, duration: int) -> Bool:
    delay = start + origin - scheduled
    return (scheduled > 0) & (delay >= 0) & (delay <= duration)


def _undo_overflow(scheduled: Int64) -> Int64:
    """Return the epoch nanoseconds that TensorFlow up to 2.19 multiplied by 1000, modulo 2^64; exact below 2^61 (the year 2043).

    1000 is 8 * 125: the factor 8 lost three high bits, and 125, being odd, has an inverse modulo 2^61.
    """
    value = scheduled.view(np.uint64) >> np.uint64(3)
    value *= _INVERSE_OF_125
    value &= np.uint64((1 << 61) - 1)
    return value.view(np.int64)


# ---------------------------------------------------------------------------------------------------------------- strings


def _set_strings(trace: Trace, columns: _Columns) -> None:
    trace.name, first = numbered(columns.name_hash)
    trace.names = table(trace.raw, columns.name_at[first], columns.name_size[first])
    trace.names.hashed = Hashed(columns.hasher, columns.name_hash[first])
    del columns.name_hash, columns.name_at, columns.name_size  # tens of MB of a large trace
    if len(trace.names) == trace.n:  # labels begin with the name, so all labels differ
        trace.label, first = np.arange(trace.n, dtype=np.int32), np.arange(trace.n)
    else:
        trace.label, first = numbered(_label_hashes(trace.raw, columns))
    trace.labels = table(trace.raw, columns.label_at[first], columns.label_size[first])
    op_of_label, trace.ops = spans_in(trace.labels, *labels_.op_spans(trace.labels))
    trace.op = op_of_label[trace.label]
    _name_transfers_and_kernels(trace)


def _label_hashes(raw: bytes, columns: _Columns) -> UInt64:
    hashes = np.empty(len(columns.label_at), np.uint64)
    for block, window, at, end in blocks(raw, columns.label_at, columns.label_at + columns.label_size):
        hashes[block] = columns.hasher.spans(window, at, end - at)
    return hashes


def _name_transfers_and_kernels(trace: Trace) -> None:
    """Name nodes whose label is not `name = Op(...)`: RecvTensor, and kernels, whose node name is `name:Op`."""
    received = np.flatnonzero(trace.name == find(trace.names, b"RecvTensor"))
    kernels = np.flatnonzero(trace.on_devices_where(is_gpu_trace))
    if len(received):
        trace.ops, trace.op[received] = _with_texts(trace.ops, ["RecvTensor"])
    if len(kernels):
        pair = trace.name[kernels].astype(np.int64) << 32 | trace.label[kernels]
        pairs, inverse = np.unique(pair, return_inverse=True)
        parsed = [labels_.kernel_name(trace.labels[int(p) & 0xFFFFFFFF], trace.names[int(p) >> 32]) for p in pairs]
        trace.names, names = _with_texts(trace.names, [name for name, _ in parsed])
        trace.ops, ops = _with_texts(trace.ops, [op for _, op in parsed])
        trace.name[kernels], trace.op[kernels] = names[inverse], ops[inverse]


def is_gpu_trace(device: Device) -> bool:
    """Return whether CUPTI recorded the device's nodes. TensorFlow's timeline.py checks the same parts of the name."""
    return "/stream:" in device.name or "/memcpy" in device.name or device.kind is DeviceKind.SYNC


def _with_texts(strings: StringTable, texts: list[str]) -> tuple[StringTable, Int32]:
    """Return (the table with the texts that it lacks added, the code of each text)."""
    codes = {text: code for code, text in enumerate(strings)}
    added = [text for text in dict.fromkeys(texts) if text not in codes]
    if added:
        codes.update(zip(added, itertools.count(len(strings))))
        more = StringTable.of(added)
        offsets = np.concatenate([strings.offsets, more.offsets[1:] + len(strings.data)])
        strings = StringTable(bytes(strings.data) + bytes(more.data), offsets)
    return strings, np.array([codes[text] for text in texts], np.int32)


def _set_bytes_moved(trace: Trace) -> None:
    """Set the bytes from the labels of transfers and copies; each distinct label is parsed once."""
    rows = np.flatnonzero(is_in(trace.kind, (NodeKind.COMMUNICATION, NodeKind.COPY, NodeKind.REPEAT)))
    codes, inverse = np.unique(trace.label[rows], return_inverse=True)
    moved = np.array([_bytes_in_label(trace.labels[code]) for code in codes.tolist()], np.int64)
    if len(rows):
        trace.bytes_moved[rows] = moved[inverse]


def _bytes_in_label(label: str) -> int:
    received = labels_.parse_received(label)
    return received.bytes if received else labels_.copied_bytes(label)
