"""Reads an XSpace, the profiler's file (xplane.proto): planes, their lines, and columns of the lines' events.

A plane is a host or a device, a line is a thread or a stream. An event refers to its kind in the plane's event metadata, and has
stats: named numbers and texts (xplane_stats.py). Events make up nearly the whole file, so NumPy finds them (message_spans.py) and
reads the three numbers that each event begins with; protobuf's parser reads the rest. Strings are read as bytes, because the
profiler writes some that are not UTF-8. Invalid bytes raise FormatError.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tftracer.errors import FormatError
from tftracer.trace.arrays.intervals import concatenated
from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.arrays.window import Window, blocks
from tftracer.trace.decode.message_spans import LINE_EVENTS, Spans, event_spans
from tftracer.trace.decode.node_fields import Messages, take
from tftracer.trace.decode.private_messages import BYTES, INT, REAL, UINT, Schema, message_classes
from tftracer.trace.decode.valid_times import LATEST_NS, MAX_NS
from tftracer.trace.decode.wire import LEN, VARINT, Field, next_field, read_varints

_MAX_PARTS = 1 << 16  # planes in a file, lines in a plane

#: The plane of the host's threads.
HOST = "/host:CPU"
#: Prefix of an eager op; its type follows.
EAGER = "EagerLocalExecute: "
#: Prefix of a stage of tf.data; its path follows.
STAGE = "Iterator::"
#: A turn of TensorFlow's executor on a thread; one execution of a function takes several turns.
TURN = "ExecutorState::Process"
#: The event around the traced step in our own profiles.
STEP_MARKER = "tftracer_step"
#: Planes that tftracer adds, for the edges of the step's graph: the partition graphs that ran (a RunMetadata), or else the
#: definitions of the step's functions (a FunctionDefLibrary). Other readers ignore them.
PARTITIONS_PLANE, DEFINITIONS_PLANE = "/tftracer:partition_graphs", "/tftracer:graph"

_PLANES, _LINES = 1, 3  # field numbers of XSpace and of XPlane
_ID, _NAME, _TIMESTAMP, EVENTS, _DISPLAY_NAME = 1, 2, 3, LINE_EVENTS, 11  # field numbers of XLine
METADATA_ID, OFFSET_PS, DURATION_PS, EVENT_STATS = range(1, 5)  # of XEvent
DOUBLE, UNSIGNED, SIGNED, TEXT, RAW, REFERENCE = range(2, 8)  # of XStat, after its metadata_id

_SCHEMA: Schema = {
    "Space": [
        ("planes", _PLANES, "Plane", True),
        ("errors", 2, BYTES, True),
        ("warnings", 3, BYTES, True),
        ("hostnames", 4, BYTES, True),
    ],
    "Plane": [
        ("name", 2, BYTES, False),
        ("lines", _LINES, BYTES, True),
        ("event_metadata", 4, "Entry", True),
        ("stat_metadata", 5, "Entry", True),
        ("stats", 6, "Stat", True),
    ],
    "Line": [
        ("id", _ID, INT, False),
        ("name", _NAME, BYTES, False),
        ("timestamp_ns", _TIMESTAMP, INT, False),
        ("events", EVENTS, BYTES, True),
        ("display_name", _DISPLAY_NAME, BYTES, False),
    ],
    "Entry": [("id", 1, INT, False), ("value", 2, "Metadata", False)],
    "Metadata": [
        ("name", 2, BYTES, False),
        ("content", 3, BYTES, False),
        ("display_name", 4, BYTES, False),
        ("stats", 5, "Stat", True),
    ],
    "Stat": [
        ("metadata_id", 1, INT, False),
        ("double_value", DOUBLE, REAL, False),
        ("uint64_value", UNSIGNED, UINT, False),
        ("int64_value", SIGNED, INT, False),
        ("str_value", TEXT, BYTES, False),
        ("bytes_value", RAW, BYTES, False),
        ("ref_value", REFERENCE, UINT, False),
    ],
}


@functools.lru_cache(maxsize=1)
def plane_messages() -> dict[str, Any]:
    """Return the classes of XSpace (``Space``) and of the messages in it."""
    return message_classes("tftracer.xplane", _SCHEMA)


@dataclass
class Line:
    """A thread, a stream, or a line that repeats other lines (``TensorFlow Ops``)."""

    id: int
    name: str
    timestamp_ns: int
    first: int  # its events are first : last (exclusive) of the plane's events
    last: int

    @property
    def thread(self) -> int:
        """The thread id of its nodes."""
        return self.id & 0xFFFFFFFFFFFF


@dataclass
class Events:
    """A plane's events, [n] each. Times are ns since the profile's start or the epoch, like the timestamps of the lines."""

    line: Int32  # index into the plane's lines
    kind: Int64  # id of the event metadata
    start: Int64
    duration: Int64
    raw: bytes  # the file
    first_byte: Int64  # position of the event's first byte in raw
    end_byte: Int64  # position after its last byte
    stats: Int64  # position of its first stat

    def __len__(self) -> int:
        return len(self.start)

    @functools.cached_property
    def end(self) -> Int64:
        return self.start + self.duration


@dataclass
class Plane:
    index: int  # in the space
    name: str
    lines: list[Line]
    events: Events
    message: Any  # the parsed XPlane, without its lines
    metadata: dict[int, Any]  # id -> message with name, display_name, stats
    stat_names: dict[int, str]
    stats: dict[str, int | float | str]  # of the plane itself

    @property
    def is_device(self) -> bool:
        return self.name.startswith("/device:")

    def stats_of_kind(self, kind: int) -> dict[str, int | float | str]:
        """Return the stats that all events of a kind share."""
        stats, names = self.metadata[kind].stats, self.stat_names
        return {names.get(stat.metadata_id, ""): value_of(stat, names) for stat in stats}

    @functools.cached_property
    def kind_names(self) -> dict[int, tuple[str, str]]:
        """(name, display name) of each kind of event."""
        return {number: (decoded(metadata.name), decoded(metadata.display_name)) for number, metadata in self.metadata.items()}

    @functools.cached_property
    def _kinds(self) -> dict[str, list[int]]:
        ids: dict[str, list[int]] = {}
        for number, (name, _) in self.kind_names.items():
            ids.setdefault(name, []).append(number)
        return ids

    def kind_name(self, kind: int) -> str:
        return self.kind_names.get(kind, ("", ""))[0]

    def kinds(self, *names: str) -> list[int]:
        """Return the ids of the kinds with these names."""
        return [number for name in names for number in self._kinds.get(name, ())]


@dataclass
class Space:
    planes: list[Plane]
    hostnames: list[str]
    errors: list[str]
    warnings: list[str]

    def plane(self, name: str) -> Plane | None:
        return next((plane for plane in self.planes if plane.name == name), None)


def read_space(raw: bytes) -> Space:
    """Read a serialized XSpace. Raises FormatError for invalid or truncated bytes."""
    planes, rest = _separated(raw, 0, len(raw), _PLANES)
    message = _parsed("Space", rest)
    texts = ([decoded(value) for value in values] for values in (message.hostnames, message.errors, message.warnings))
    return Space([_plane(raw, index, plane) for index, plane in enumerate(planes)], *texts)


def _separated(raw: bytes, low: int, high: int, number: int, last: int = 1 << 32) -> tuple[list[Field], bytes]:
    """Return (submessages with this number of the message raw[low:high], bytes of all its other fields).

    From the first field with a number above ``last`` on, all bytes count as other fields.
    """
    fields: list[Field] = []
    rest: list[bytes] = []
    at = low
    while at < high:
        field, behind = next_field(raw, at, high)
        if field.number == number and field.wire == LEN:
            fields.append(field)
        else:
            behind = behind if field.number <= last else high
            rest.append(raw[at:behind])
        if len(fields) + len(rest) > _MAX_PARTS:
            raise FormatError(f"Byte {at}: more than {_MAX_PARTS} planes or lines. Profile the step again.")
        at = behind
    return fields, b"".join(rest)


def _parsed(kind: str, raw: bytes) -> Any:
    try:
        return plane_messages()[kind].FromString(raw)
    except DecodeError as error:
        raise FormatError(f"This is no XSpace, or the file was cut short ({error}). Profile the step again.") from error


def with_plane(raw: bytes, plane_name: str, root: str, content: bytes) -> bytes:
    """Return the XSpace ``raw`` with DEFINITIONS_PLANE or PARTITIONS_PLANE added. ``root``: the name of the step's function."""
    space = plane_messages()["Space"]()
    entry = space.planes.add(name=plane_name.encode()).event_metadata.add(id=1)
    entry.value.name, entry.value.content = root.encode(), content
    return raw + bytes(space.SerializeToString())


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def value_of(stat: Any, names: dict[int, str]) -> int | float | str:
    """Return the value of a parsed XStat."""
    if stat.str_value:
        return decoded(stat.str_value)
    if stat.ref_value:
        return names.get(stat.ref_value, "")
    return stat.int64_value or stat.uint64_value or stat.double_value or 0


def _plane(raw: bytes, index: int, at: Field) -> Plane:
    low, high = at.offset, at.offset + at.size
    serialized, rest = _separated(raw, low, high, _LINES, last=_LINES)
    message = _parsed("Plane", rest)
    if message.lines:  # there are lines after the fields that the profiler writes last: search the whole plane
        serialized, rest = _separated(raw, low, high, _LINES)
        message = _parsed("Plane", rest)
    names = {entry.id: decoded(entry.value.name) for entry in message.stat_metadata}
    lines: list[Line] = []
    events: list[Spans] = []
    for line in serialized:
        events.append(event_spans(raw, line.offset, line.offset + line.size))
        first = lines[-1].last if lines else 0
        lines.append(Line(*_head(raw, events[-1].others), first, first + events[-1].nodes))
    return Plane(
        index=index,
        name=decoded(message.name),
        lines=lines,
        events=_events(lines, raw, events),
        message=message,
        metadata={entry.id: entry.value for entry in message.event_metadata},
        stat_names=names,
        stats={names.get(stat.metadata_id, ""): value_of(stat, names) for stat in message.stats},
    )


# ----------------------------------------------------------------------------------------------------------------- events


def _head(raw: bytes, others: Sequence[Field]) -> tuple[int, str, int]:
    """Return (id, name, timestamp in ns) of an XLine from its fields other than events."""
    numbers = {field.number: field.value for field in others if field.wire == VARINT}
    texts = {field.number: raw[field.offset : field.offset + field.size] for field in others if field.wire == LEN}
    name = texts.get(_NAME) or texts.get(_DISPLAY_NAME, b"")
    number, timestamp = (np.uint64(numbers.get(number, 0)).astype(np.int64) for number in (_ID, _TIMESTAMP))
    return int(number), decoded(name), int(timestamp)


def _events(lines: list[Line], raw: bytes, spans: list[Spans]) -> Events:
    begin = concatenated([part for of_line in spans for part in of_line.starts])
    end = concatenated([part for of_line in spans for part in of_line.ends])
    timestamps = np.array([line.timestamp_ns if 0 <= line.timestamp_ns <= LATEST_NS else 0 for line in lines], np.int64)
    counts = [line.last - line.first for line in lines]
    line_of_event = np.repeat(np.arange(len(lines), dtype=np.int32), counts)
    kind, start, duration, stats = (np.empty(len(begin), np.int64) for _ in range(4))
    for rows, window, low, high in blocks(raw, begin, end):
        three, at = _three_numbers(window, low, high)
        kind[rows], offset_ps, duration_ps = three
        np.floor_divide(offset_ps, 1000, out=start[rows])
        np.floor_divide(np.clip(duration_ps, 0, MAX_NS), 1000, out=duration[rows])
        np.add(at, window.low, out=stats[rows])
    start += np.repeat(timestamps, counts)
    return Events(line_of_event, kind, start, duration, raw, begin, end, stats)


def _three_numbers(window: Window, begin: Int64, end: Int64) -> tuple[list[Int64], Int64]:
    """Return (metadata_id, offset_ps and duration_ps of XEvents, 0 if missing; position of their first stat).

    The profiler writes these numbers first, in this order; events that differ are read by ``take``.
    """
    at, columns = begin.copy(), []
    for number in (METADATA_ID, OFFSET_PS, DURATION_PS):
        has = (window.bytes[at] == np.uint8(number << 3 | VARINT)) & (at < end)
        value, size = read_varints(window, at + 1)
        columns.append(value.view(np.int64) * has)
        at += (size + 1) * has
    odd = np.flatnonzero((at != end) & (window.bytes[at] != np.uint8(EVENT_STATS << 3 | LEN)))
    if len(odd):
        for column in columns:
            column[odd] = 0
        by_number = dict(zip((METADATA_ID, OFFSET_PS, DURATION_PS), columns))
        take(window, Messages(odd, begin[odd], end[odd]), by_number, 0, by_parent=True)
        at[odd] = begin[odd]
    return columns, at
