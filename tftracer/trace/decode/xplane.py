"""The structure of an XSpace, the profiler's file (xplane.proto), as columns: planes, their lines, and the events on these.

A plane is a host or a device, a line a thread or a stream. Events name their kind by a number into the plane's event metadata,
and carry stats: named numbers and texts. protobuf's own parser takes the file apart, down to the events, which it leaves as
bytes: NumPy reads the three numbers that each begins with, and the stats of those rows whose answer needs them (``stats_of``).
Strings are read as bytes: the profiler writes some that are no UTF-8. What is no XSpace raises FormatError.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from tftracer.errors import FormatError
from tftracer.trace.arrays.types import Bool, Int32, Int64
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode.wire import LEN, VARINT, read_varints, walk

BLOCK = 1 << 15  # events that are read together: what is made of them fits the cache

METADATA_ID, OFFSET_PS, DURATION_PS, EVENT_STATS = range(1, 5)  # field numbers of XEvent
DOUBLE, UNSIGNED, SIGNED, TEXT, BYTES, REFERENCE = range(2, 8)  # of XStat, after its metadata_id

HOST = "/host:CPU"  # the plane of the host
#: A plane of our own behind the profiler's: the functions that the step ran, for its edges. Other readers pass it over.
GRAPH_PLANE = "/tftracer:graph"

_FIELDS = descriptor_pb2.FieldDescriptorProto
_INT, _BYTES, _UINT, _REAL = _FIELDS.TYPE_INT64, _FIELDS.TYPE_BYTES, _FIELDS.TYPE_UINT64, _FIELDS.TYPE_DOUBLE
#: message -> its fields: (name, number, type or message, repeated). Maps are what they are on the wire, lists of entries.
_SCHEMA: dict[str, list[tuple[str, int, Any, bool]]] = {
    "Space": [
        ("planes", 1, "Plane", True),
        ("errors", 2, _BYTES, True),
        ("warnings", 3, _BYTES, True),
        ("hostnames", 4, _BYTES, True),
    ],
    "Plane": [
        ("name", 2, _BYTES, False),
        ("lines", 3, "Line", True),
        ("event_metadata", 4, "Entry", True),
        ("stat_metadata", 5, "Entry", True),
        ("stats", 6, "Stat", True),
    ],
    "Line": [
        ("id", 1, _INT, False),
        ("name", 2, _BYTES, False),
        ("timestamp_ns", 3, _INT, False),
        ("events", 4, _BYTES, True),
        ("display_name", 11, _BYTES, False),
    ],
    "Entry": [("id", 1, _INT, False), ("value", 2, "Metadata", False)],
    "Metadata": [
        ("name", 2, _BYTES, False),
        ("content", 3, _BYTES, False),
        ("display_name", 4, _BYTES, False),
        ("stats", 5, "Stat", True),
    ],
    "Stat": [
        ("metadata_id", 1, _INT, False),
        ("double_value", DOUBLE, _REAL, False),
        ("uint64_value", UNSIGNED, _UINT, False),
        ("int64_value", SIGNED, _INT, False),
        ("str_value", TEXT, _BYTES, False),
        ("bytes_value", BYTES, _BYTES, False),
        ("ref_value", REFERENCE, _UINT, False),
    ],
}


@functools.lru_cache(maxsize=1)
def space_class() -> Any:
    """Of a pool of its own, which cannot clash with TensorFlow's."""
    file = descriptor_pb2.FileDescriptorProto(name="tftracer/xplane.proto", package="tftracer.xplane", syntax="proto3")
    for name, columns in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for column, number, kind, repeated in columns:
            label = _FIELDS.LABEL_REPEATED if repeated else _FIELDS.LABEL_OPTIONAL
            added = message.field.add(name=column, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = _FIELDS.TYPE_MESSAGE, f".tftracer.xplane.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    space = pool.FindMessageTypeByName("tftracer.xplane.Space")
    factory: Any = message_factory
    if hasattr(factory, "GetMessageClass"):
        return factory.GetMessageClass(space)
    return factory.MessageFactory(pool).GetPrototype(space)  # protobuf 3.20


@dataclass
class Line:
    """A thread, a stream, or a line that says again what others hold (``TensorFlow Ops``)."""

    id: int
    name: str
    first: int  # its events are first : last of the plane's
    last: int


@dataclass
class Events:
    """A plane's events, [n] each. Times are ns since the profile's start or the epoch, as the plane's lines have them."""

    line: Int32  # index into the plane's lines
    kind: Int64  # id of the event metadata
    start: Int64
    duration: Int64
    raw: bytes  # the serialized XEvents, one after another
    offset: Int64  # [n + 1] where each begins in raw


@dataclass
class Plane:
    name: str
    lines: list[Line]
    events: Events
    metadata: dict[int, Any]  # id -> message with name, display_name, stats
    stat_names: dict[int, str]
    stats: dict[str, int | float | str]  # of the plane itself

    def stats_of_kind(self, kind: int) -> dict[str, int | float | str]:
        """What the metadata of an event says of all events of its kind."""
        return {self.stat_names.get(stat.metadata_id, ""): self._value(stat) for stat in self.metadata[kind].stats}

    def _value(self, stat: Any) -> int | float | str:
        return _value(stat, self.stat_names)


@dataclass
class Space:
    planes: list[Plane]
    hostnames: list[str]
    errors: list[str]
    warnings: list[str]

    def plane(self, name: str) -> Plane | None:
        return next((plane for plane in self.planes if plane.name == name), None)


def read_space(raw: bytes) -> Space:
    """Raises FormatError for what is no XSpace, or is cut short."""
    return planes_of(parse(raw))


def parse(raw: bytes) -> Any:
    """The message, its events as bytes. FormatError for what is no XSpace, or is cut short."""
    try:
        return space_class().FromString(raw)
    except DecodeError as error:
        raise FormatError(f"This is no XSpace, or one that was cut short ({error}). Profile the step again.") from error


def planes_of(message: Any) -> Space:
    return Space([_plane(plane) for plane in message.planes], *map(_texts, (message.hostnames, message.errors, message.warnings)))


def with_graph(raw: bytes, root: str, library: bytes) -> bytes:
    """An XSpace with a plane that holds a serialized FunctionDefLibrary and the name of the function that the step ran."""
    space = space_class()()
    plane = space.planes.add(name=GRAPH_PLANE.encode())
    entry = plane.event_metadata.add(id=1)
    entry.value.name, entry.value.content = root.encode(), library
    return raw + bytes(space.SerializeToString())


def _texts(values: Sequence[bytes]) -> list[str]:
    return [value.decode("utf-8", "replace") for value in values]


def _plane(plane: Any) -> Plane:
    names = {entry.id: entry.value.name.decode("utf-8", "replace") for entry in plane.stat_metadata}
    lines: list[Line] = []
    parts: list[bytes] = []
    timestamps: list[int] = []
    for line in plane.lines:
        first = len(parts)
        parts.extend(line.events)
        lines.append(Line(line.id, (line.name or line.display_name).decode("utf-8", "replace"), first, len(parts)))
        timestamps.append(line.timestamp_ns)
    return Plane(
        name=plane.name.decode("utf-8", "replace"),
        lines=lines,
        events=_events(lines, parts, np.array(timestamps, np.int64)),
        metadata={entry.id: entry.value for entry in plane.event_metadata},
        stat_names=names,
        stats={names.get(stat.metadata_id, ""): _value(stat, names) for stat in plane.stats},
    )


def _value(stat: Any, names: dict[int, str]) -> int | float | str:
    if stat.str_value:
        return str(stat.str_value.decode("utf-8", "replace"))
    if stat.ref_value:
        return names.get(stat.ref_value, "")
    return stat.int64_value or stat.uint64_value or stat.double_value or 0


# ----------------------------------------------------------------------------------------------------------------- events


def _events(lines: list[Line], parts: list[bytes], timestamps: Int64) -> Events:
    offset = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offset[1:])
    raw = b"".join(parts)
    line = np.repeat(np.arange(len(lines), dtype=np.int32), [one.last - one.first for one in lines])
    numbers = [np.empty(len(parts), np.int64) for _ in range(3)]
    for rows, window, low, high in _blocks(raw, offset[:-1], offset[1:]):
        for column, values in zip(numbers, _three_numbers(window, low, high)):
            column[rows] = values
    kind, start, duration = numbers
    start //= 1000
    start += timestamps[line] if len(lines) else 0
    np.maximum(duration, 0, out=duration)
    duration //= 1000
    return Events(line, kind, start, duration, raw, offset)


def _blocks(raw: bytes, start: Int64, end: Int64) -> Iterator[tuple[slice, Window, Int64, Int64]]:
    """Messages in the order of their bytes, some together: (which, their window, starts and ends in it)."""
    for first in range(0, len(start), BLOCK):
        rows = slice(first, min(first + BLOCK, len(start)))
        low, high = int(start[rows].min()), int(end[rows].max())
        yield rows, Window(raw, low, high), start[rows] - low, end[rows] - low


def _three_numbers(window: Window, start: Int64, end: Int64) -> list[Int64]:
    """metadata_id, offset_ps and duration_ps of XEvents, 0 where missing. The profiler writes them first, in this order."""
    at, columns = start.copy(), []
    for number in (METADATA_ID, OFFSET_PS, DURATION_PS):
        has = (window.bytes[at] == np.uint8(number << 3 | VARINT)) & (at < end)
        value, size = read_varints(window, at + 1)
        columns.append(value.view(np.int64) * has)
        at += (size + 1) * has
    odd = np.flatnonzero((at != end) & (window.bytes[at] != np.uint8(EVENT_STATS << 3 | LEN)))
    if len(odd):
        _walk_numbers(window, start[odd], end[odd], odd, columns)
    return columns


def _walk_numbers(window: Window, start: Int64, end: Int64, rows: Int64, columns: list[Int64]) -> None:
    for column in columns:
        column[rows] = 0
    for one in walk(window, start, end):
        for number, column in zip((METADATA_ID, OFFSET_PS, DURATION_PS), columns):
            which = (one.number == number) & (one.wire == VARINT)
            column[rows[one.row[which]]] = one.value[which]


# ------------------------------------------------------------------------------------------------------------------ stats


@dataclass
class Stat:
    """One named stat of some events, [rows] each."""

    has: Bool
    number: Int64  # an integer, or a double's bits; of a reference, the id of the stat's metadata whose name is the text
    referring: Bool
    offset: Int64  # of a text in the events' raw bytes
    size: Int64

    @classmethod
    def missing(cls, n: int) -> Stat:
        numbers, offset, size = (np.zeros(n, np.int64) for _ in range(3))
        return cls(np.zeros(n, np.bool_), numbers, np.zeros(n, np.bool_), offset, size)

    def text(self, plane: Plane, row: int) -> str:
        if self.referring[row]:
            return plane.stat_names.get(int(self.number[row]), "")
        raw = plane.events.raw[self.offset[row] : self.offset[row] + self.size[row]]
        return raw.decode("utf-8", "replace")

    def texts(self, plane: Plane) -> list[str]:
        return [self.text(plane, row) for row in range(len(self.has))]

    def real(self) -> npt.NDArray[np.float64]:
        return self.number.view(np.float64)


def stats_of(plane: Plane, rows: Int64, names: Sequence[str]) -> dict[str, Stat]:
    """The named stats of the events ``rows`` (ascending)."""
    found = {name: Stat.missing(len(rows)) for name in names}
    ids = {number: found[name] for number, name in plane.stat_names.items() if name in found}
    if not ids or not len(rows):
        return found
    offset = plane.events.offset
    for block, window, low, high in _blocks(plane.events.raw, offset[rows], offset[rows + 1]):
        for one in walk(window, low, high):
            which = np.flatnonzero((one.number == EVENT_STATS) & (one.wire == LEN))
            if len(which):
                stat = one.offset[which]
                _read_stats(window, stat, stat + one.size[which], one.row[which] + block.start, ids)
    return found


def _read_stats(window: Window, start: Int64, end: Int64, owner: Int64, ids: dict[int, Stat]) -> None:
    named, kind, value, offset, size = (np.zeros(len(start), np.int64) for _ in range(5))
    for one in walk(window, start, end):
        which = (one.number == METADATA_ID) & (one.wire == VARINT)
        named[one.row[which]] = one.value[which]
        which = (one.number >= DOUBLE) & (one.number <= REFERENCE)
        row = one.row[which]
        kind[row], value[row], offset[row] = one.number[which], one.value[which], one.offset[which] + window.low
        size[row] = np.where(one.wire[which] == LEN, one.size[which], 0)
    for number, stat in ids.items():
        rows = np.flatnonzero(named == number)
        of = owner[rows]
        stat.has[of], stat.number[of], stat.referring[of] = True, value[rows], kind[rows] == REFERENCE
        stat.offset[of], stat.size[of] = offset[rows], size[rows]
