"""Collects the nodes of a profile part by part, with the event that each comes from; and finds events within events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tftracer.trace.arrays.groups import last_in_groups
from tftracer.trace.arrays.intervals import concatenated, is_in, positions_in
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.xplane_reader import Plane
from tftracer.trace.model import Device

#: (name, display name) of a kind of event -> (node, op type) of its events; None if they are no nodes.
Named = Callable[[str, str], "tuple[str, str] | None"]
#: Kinds with ids below this are looked up in a table; the profiler numbers them from 1.
_MAX_TABLE_ID = 1 << 22


@dataclass
class Codes:
    """Numbers strings in the order in which they are added."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))

    def each(self, texts: list[str]) -> Int64:
        return np.array([self.code(text) for text in texts], np.int64)

    def table(self) -> StringTable:
        return StringTable.of(list(self.codes))


@dataclass
class Nodes:
    """The columns of nodes, which grow part by part."""

    devices: dict[str, Device] = field(default_factory=dict)
    names: Codes = field(default_factory=Codes)
    ops: Codes = field(default_factory=Codes)
    labels: Codes = field(default_factory=lambda: Codes({"": 0}))
    parts: list[dict[str, Int64]] = field(default_factory=list)
    n: int = 0

    def device(self, device: Device) -> int:
        self.devices.setdefault(device.name, device)
        return list(self.devices).index(device.name)

    def add(self, plane: Plane, rows: Int64, **columns: Int64 | Bool | int) -> Int64:
        """Add nodes for these events and return their numbers.

        columns, each [rows] or a scalar: device, name, op, label, bytes, outside, start, end, thread. Start, end and thread are
        the event's if they are missing; other missing columns are 0.
        """
        events = plane.events
        threads = np.array([line.thread for line in plane.lines] or [0], np.int64)
        given = {"start": events.start[rows], "end": events.end[rows], "thread": threads[events.line[rows]], **columns}
        part = {name: np.broadcast_to(np.asarray(given.get(name, 0), np.int64), len(rows)) for name in COLUMNS}
        self.parts.append({**part, "plane": np.full(len(rows), plane.index), "row": rows})
        self.n += len(rows)
        return np.arange(self.n - len(rows), self.n)

    def column(self, name: str) -> Int64:
        return concatenated([part[name] for part in self.parts])


COLUMNS = ("device", "name", "op", "label", "bytes", "outside", "start", "end", "thread")


class Kinds:
    """The codes of name and op type of a plane's events that are nodes. Events of one kind have the same codes, so ``named`` is
    called only once per kind."""

    def __init__(self, nodes: Nodes, plane: Plane, named: Named) -> None:
        ids, names, ops = [-1], [0], [0]
        for number, (name, display_name) in plane.kind_names.items():
            pair = named(name, display_name)
            if pair:
                ids.append(number)
                names.append(nodes.names.code(pair[0]))
                ops.append(nodes.ops.code(pair[1]))
        self.names, self.ops = np.array(names, np.int64), np.array(ops, np.int64)
        self._which = kind_table(plane, ids[1:])

    def rows(self) -> Int64:
        return np.flatnonzero(self._which)

    def name(self, rows: Int64) -> Int64:
        return self.names[self._which[rows]]

    def op(self, rows: Int64) -> Int64:
        return self.ops[self._which[rows]]


def kind_table(plane: Plane, ids: list[int]) -> Int64:
    """Return [events] the position of each event's kind in ``ids``, from 1; 0 for other kinds."""
    kinds = plane.events.kind
    if len(kinds) and int(kinds.min()) >= 0 and int(kinds.max()) < _MAX_TABLE_ID:
        table = np.zeros(int(kinds.max()) + 1, np.int64)
        for position, number in enumerate(ids, 1):
            if 0 <= number < len(table):
                table[number] = position
        return table[kinds]
    order = np.argsort(np.array(ids, np.int64), kind="stable")
    return np.append(order + 1, 0)[positions_in(np.array(ids, np.int64)[order], kinds)]


def of_kinds(plane: Plane, *names: str) -> Int64:
    """Return the events of the kinds with these names, ascending."""
    kinds = plane.kinds(*names)
    return np.flatnonzero(is_in(plane.events.kind, kinds)) if kinds else np.zeros(0, np.int64)


def innermost(plane: Plane, outer: Int64, rows: Int64) -> Int64:
    """Return [rows] the index in ``outer`` of the innermost event around each event's start, on the same line; -1 for none."""
    line, start, end = plane.events.line, plane.events.start, plane.events.end
    latest = last_in_groups(line[outer], start[outer], line[rows], start[rows])
    return np.where(np.append(end[outer], 0)[latest] >= start[rows], latest, -1)


def outermost(plane: Plane, outer: Int64, rows: Int64) -> Int64:
    """Return [rows] the index in ``outer`` of the outermost event around each event, on the same line; -1 for none."""
    events = plane.events
    order = outer[np.lexsort((-events.duration[outer], events.start[outer], events.line[outer]))]
    reached = _running_end(plane, order)
    top = order[
        np.append(True, (events.line[order[1:]] != events.line[order[:-1]]) | (events.start[order[1:]] >= reached[:-1]))[
            : len(order)
        ]
    ]
    within = innermost(plane, top, rows)
    position = np.searchsorted(outer, top)
    return np.where(within >= 0, position[np.maximum(within, 0)], -1) if len(top) else within


def _running_end(plane: Plane, order: Int64) -> Int64:
    """Return [order] the latest end of the events up to each one on its line. ``order`` is sorted by line and start."""
    events = plane.events
    until, line = events.end[order], events.line[order].astype(np.int64)
    if not len(order):
        return until
    low, stride = int(until.min()), int(until.max() - until.min()) + 1
    return np.maximum.accumulate(until - low + line * stride) - line * stride + low
