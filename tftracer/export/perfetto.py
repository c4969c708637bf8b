"""Perfetto's own trace format: a track for each device, with one for each row under it; slices with their flows; counters.

The wire format is written directly (field numbers from perfetto_trace.proto; the tests read it with Perfetto's own generated
classes). All numbers of a packet have a fixed width, because a varint may be padded: the packets of thousands of slices are one
NumPy matrix of bytes. Times are nanoseconds since the epoch. The sequence number and the flows are derived from the trace, the
tracks from the devices' names and the rank, so that files of several traces can be concatenated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2s
from typing import IO

import numpy as np
import numpy.typing as npt

from tftracer.export.tracks import UNNAMED, Tracks, tracks_of
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.wire import message_field, number_field, text_field
from tftracer.trace.model import NodeKind, Trace

Bytes = npt.NDArray[np.uint8]

_CHUNK = 1 << 15  # slices: 4 MB of packets
_BEGIN, _END, _COUNTER = 1, 2, 4
_SIZE_BYTES = 3  # CounterDescriptor.UNIT_SIZE_BYTES
_EXPLICIT = 3  # TrackDescriptor.EXPLICIT: children in the order of sibling_order_rank
_REALTIME, _BOOTTIME = 1, 6
_CLEARED, _NEEDS_STATE = 1, 2
_NODE, _LABEL = 1, 2  # interned names of the debug annotations


def write_perfetto(answers: Answers, file: IO[bytes]) -> None:
    """Write one trace as a ``perfetto.protos.Trace``: ui.perfetto.dev and its trace processor open it."""
    trace, tracks = answers.trace, tracks_of(answers.trace, answers.layout)
    sequence = _hash(f"{trace.origin_ns} {trace.n} {trace.duration_ns}") & 0x7FFFFFFF | 1
    file.write(_clock(sequence))
    file.write(_interned(trace, sequence))
    rank = "" if answers.context.rank is None else f"rank {answers.context.rank} "
    for packet in _descriptors(tracks, sequence, rank):
        file.write(packet)
    flows = _Flows(answers, tracks, sequence)
    uuids = np.array([_uuid(rank + row.device, row.title) for row in tracks.rows] or [0], np.int64)
    for first in range(0, len(tracks.node), _CHUNK):
        file.write(_slices(trace, tracks, slice(first, first + _CHUNK), uuids, flows, sequence))
    for packet in _counters(answers, sequence, rank):
        file.write(packet)


# ------------------------------------------------------------------------------------------------------------ wire format


def _packet(sequence: int, *parts: bytes) -> bytes:
    return message_field(1, *parts, number_field(10, sequence))


def _padded(values: Int64, width: int) -> Bytes:
    """[n, width]: varints of exactly ``width`` bytes."""
    cells = np.empty((len(values), width), np.uint8)
    for i in range(width):
        cells[:, i] = (values >> (7 * i)) & 0x7F | (0x80 if i < width - 1 else 0)
    return cells


def _same(data: bytes, rows: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(data, np.uint8), (rows, len(data)))


def _hash(text: str) -> int:
    return int.from_bytes(blake2s(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 2


def _uuid(device: str, row: str = "") -> int:
    return _hash(f"{device}\0{row}") | 1


# ---------------------------------------------------------------------------------------- clock, strings, tracks


def _clock(sequence: int) -> bytes:
    """The trace's clock is the time since the epoch. Every file says so for one moment: in joined files it may not run back."""
    clocks = [message_field(1, number_field(1, clock), number_field(2, 1)) for clock in (_BOOTTIME, _REALTIME)]
    return _packet(sequence, number_field(8, 1), message_field(6, *clocks))


def _interned(trace: Trace, sequence: int) -> bytes:
    """Each name once: op types, categories and annotations. Node names, then labels, are the values of annotations."""
    names = [op or "unknown" for op in trace.ops]
    values = _strings(29, trace.names, 1) + _strings(29, trace.labels, 1 + len(trace.names))
    body = message_field(
        12,
        *(message_field(1, number_field(1, kind + 1), text_field(2, kind.name.lower())) for kind in NodeKind),
        *(message_field(2, number_field(1, i + 1), text_field(2, name)) for i, name in enumerate(names)),
        *(message_field(3, number_field(1, i), text_field(2, name)) for i, name in ((_NODE, "node"), (_LABEL, "label"))),
        values,
    )
    return _packet(sequence, body, number_field(13, _CLEARED))


def _strings(field: int, table: StringTable, first: int) -> bytes:
    data, offsets = bytes(table.data), table.offsets.tolist()
    return b"".join(
        [
            message_field(field, number_field(1, first + i), message_field(2, data[low:high]))
            for i, (low, high) in enumerate(_pairs(offsets))
        ]
    )


def _pairs(offsets: list[int]) -> Iterable[tuple[int, int]]:
    return zip(offsets, offsets[1:])


def _descriptors(tracks: Tracks, sequence: int, rank: str) -> Iterator[bytes]:
    for order, device in enumerate(tracks.devices):
        name, place = rank + device, number_field(12, order)
        fields = number_field(1, _uuid(name)), text_field(2, name), number_field(11, _EXPLICIT), place
        yield _packet(sequence, message_field(60, *fields))
    for order, row in enumerate(tracks.rows):
        uuid, parent = _uuid(rank + row.device, row.title), _uuid(rank + row.device)
        fields = number_field(1, uuid), number_field(5, parent), text_field(2, row.title), number_field(12, order)
        yield _packet(sequence, message_field(60, *fields))


# ----------------------------------------------------------------------------------------------------------------- slices


class _Flows:
    """The data edges between rows, as the outgoing and incoming flows of packets."""

    def __init__(self, answers: Answers, tracks: Tracks, sequence: int) -> None:
        trace, graph = answers.trace, answers.graph
        row = np.full(trace.n, -1, np.int64)
        row[tracks.node] = tracks.row
        made, used = graph.producer.astype(np.int64), graph.consumer.astype(np.int64)
        drawn = ~graph.control & (row[made] >= 0) & (row[used] >= 0) & (row[made] != row[used])
        drawn &= trace.start[made] <= trace.start[used]
        made, used = made[drawn], used[drawn]
        identity = np.arange(len(made), dtype=np.int64) + (sequence << 32)
        node = np.concatenate([made, used])
        order = np.argsort(node, kind="stable")
        tags = np.concatenate([_same(b"\xf9\x02", len(made)), _same(b"\x81\x03", len(used))])
        numbers = np.concatenate([identity, identity]).astype("<i8").view(np.uint8).reshape(-1, 8)
        self._cells = np.concatenate([tags, numbers], axis=1)[order]
        self._offsets = np.searchsorted(node[order], np.arange(trace.n + 1))

    def of(self, nodes: Int64) -> tuple[Bytes, Int64]:
        """(the ten-byte fields of these nodes, joined; how many each node has)."""
        low, counts = self._offsets[nodes], self._offsets[nodes + 1] - self._offsets[nodes]
        first = np.cumsum(counts) - counts
        index = np.repeat(low - first, counts) + np.arange(int(counts.sum()))
        return self._cells[index], counts


def _slices(trace: Trace, tracks: Tracks, at: slice, uuids: Int64, flows: _Flows, sequence: int) -> bytes:
    """Begin and end of each slice, in order: on a row, an end comes before the begin at the same moment."""
    node = tracks.node[at]
    track = uuids[tracks.row[at]]
    cells, counts = flows.of(node)
    begin = _begin(trace, node, track, counts, sequence)
    end = _event(trace.end[node] + trace.origin_ns, _END, track, np.zeros((len(node), 0), np.uint8), 0 * counts, sequence)
    sizes = begin.shape[1] + 10 * counts + end.shape[1]
    place = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    out[place[:, None] + np.arange(begin.shape[1])] = begin
    own = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
    out[(np.repeat(place + begin.shape[1], counts) + 10 * own)[:, None] + np.arange(10)] = cells
    out[(place + sizes - end.shape[1])[:, None] + np.arange(end.shape[1])] = end
    return out.tobytes()


def _begin(trace: Trace, node: Int64, track: Int64, flows: Int64, sequence: int) -> Bytes:
    n = len(node)
    name = trace.name[node].astype(np.int64) + 1
    label = trace.label[node].astype(np.int64) + 1 + len(trace.names)
    fields = np.concatenate(
        [
            _same(b"\x50", n),  # name_iid
            _padded(trace.op[node].astype(np.int64) + 1, 5),
            _same(b"\x18", n),  # category_iids
            _padded(trace.kind[node].astype(np.int64) + 1, 1),
            _same(b"\x22\x09\x08" + bytes([_NODE]) + b"\x88\x01", n),  # debug_annotations { name_iid string_value_iid }
            _padded(name, 5),
            _same(b"\x22\x09\x08" + bytes([_LABEL]) + b"\x88\x01", n),
            _padded(label, 5),
        ],
        axis=1,
    )
    return _event(trace.start[node] + trace.origin_ns, _BEGIN, track, fields, flows, sequence)


def _event(times: Int64, kind: int, track: Int64, fields: Bytes, flows: Int64, sequence: int) -> Bytes:
    """TracePackets, each with a TrackEvent, up to the flows that follow; the lengths include those."""
    n = len(times)
    inner = np.concatenate([_same(b"\x48" + bytes([kind]) + b"\x58", n), _padded(track, 9), fields], axis=1)
    head = np.concatenate(
        [
            _same(b"\x40", n),  # timestamp
            _padded(times, 9),
            _same(b"\x68" + bytes([_NEEDS_STATE]) + b"\x50", n),  # sequence_flags, trusted_packet_sequence_id
            _padded(np.full(n, sequence, np.int64), 5),
            _same(b"\x5a", n),  # track_event
            _padded(inner.shape[1] + 10 * flows, 4),
        ],
        axis=1,
    )
    size = _padded(head.shape[1] + inner.shape[1] + 10 * flows, 4)
    return np.concatenate([_same(b"\x0a", n), size, head, inner], axis=1)


# --------------------------------------------------------------------------------------------------------------- counters


def _counters(answers: Answers, sequence: int, rank: str) -> Iterator[bytes]:
    origin = answers.trace.origin_ns
    for curve in answers.curves:
        device = rank + curve["device"]
        uuid, parent = _uuid(device, f"memory {curve['allocator']}"), _uuid(device)
        yield _packet(
            sequence,
            message_field(
                60,
                number_field(1, uuid),
                number_field(5, parent),
                text_field(2, curve["allocator"] or UNNAMED),
                message_field(8, number_field(3, _SIZE_BYTES)),
            ),
        )
        for time, size in zip(curve["time_ns"], curve["bytes"]):
            event = message_field(
                11, number_field(9, _COUNTER), number_field(11, uuid), number_field(30, int(size) & (1 << 64) - 1)
            )
            yield _packet(sequence, number_field(8, int(time) + origin), event)
