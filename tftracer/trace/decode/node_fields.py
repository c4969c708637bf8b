"""Reads the fields of many NodeExecStats at once.

TensorFlow writes a message's fields in ascending order, so one pass over the field numbers in that order reads nearly every node.
If the pass does not reach a node's end (fields in another order, unknown or repeated fields), the node is read again by
``walk``, which accepts any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.types import Bool, Int64, Rows
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode.wire import LEN, VARINT, of_kinds, read_varints, varint, walk

# field numbers of NodeExecStats (step_stats.proto)
NAME, START_US, OP_START_US, OP_END_US, END_US, MEMORY, OUTPUT, LABEL, SCHEDULED_US, THREAD = range(1, 11)
REFERENCED, MEMORY_STATS, START, OP_START, OP_END, END, SCHEDULED = range(11, 18)
RESOURCES = (OUTPUT, MEMORY_STATS)  # the submessages that outputs_and_memory.py reads

_TIMES = {START: START_US, OP_START: OP_START_US, OP_END: OP_END_US, END: END_US, SCHEDULED: SCHEDULED_US}
_REPEATS = 8  # how many repeats of a field the fast pass reads; ``walk`` reads rows with more

_LARGEST_US = np.int64((1 << 63) // 1000 - 1)


@dataclass(frozen=True)
class Messages(Rows):
    """Submessages of nodes. ``row``: the row that each belongs to. ``start``, ``end``: where its bytes are in the window."""

    row: Int64
    start: Int64
    end: Int64


@dataclass
class NodeColumns:
    """The fields of n nodes. Times in ns as in the message (epoch, or relative to the start), 0 if missing, -1 if invalid."""

    name_at: Int64
    name_size: Int64
    label_at: Int64
    label_size: Int64
    thread: Int64
    start: Int64
    op_start: Int64
    op_end: Int64
    end: Int64
    scheduled: Int64

    def put(self, rows: slice | Int64, part: NodeColumns) -> None:
        """Replace the values of these rows."""
        for name, values in vars(part).items():
            getattr(self, name)[rows] = values


def read_nodes(window: Window, start: Int64, end: Int64) -> NodeColumns:
    """Read the nodes at start[i] : end[i] of the window; positions are relative to it. Raises FormatError for invalid bytes."""
    fast = _Pass(window, start, end)
    columns = fast.read()
    unread = fast.unread()
    if len(unread):
        columns.put(unread, _read_any_order(window, start[unread], end[unread]))
    return columns


def read_messages(window: Window, start: Int64, end: Int64) -> dict[int, Messages]:
    """Read the submessages with the numbers ``RESOURCES``, sorted by row. Raises FormatError for invalid bytes."""
    fast = _Pass(window, start, end)
    fast.read()
    kept, rows = fast.kept, fast.unread()
    if len(rows):
        is_unread = np.zeros(len(start), np.bool_)
        is_unread[rows] = True
        unread = Messages(rows, start[rows], end[rows])
        for number, parts in kept.items():
            kept[number] = [
                *(part.only(~is_unread[part.row]) for part in parts),
                take(window, unread, {}, number, by_parent=True),
            ]
    return {number: by_row(parts) for number, parts in kept.items()}


def by_row(parts: list[Messages]) -> Messages:
    """Merge the parts, sorted by row; within a row they keep the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Messages(*np.zeros((3, 0), np.int64))
    row = np.concatenate([part.row for part in parts])
    order = np.argsort(row, kind="stable")
    start, end = np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts])
    return Messages(row[order], start[order], end[order])


def take(
    window: Window,
    messages: Messages,
    numbers: dict[int, Int64],
    inner: int,
    by_parent: bool = False,
    spans: Mapping[int, tuple[Int64, Int64]] = {},
) -> Messages:
    """Read varints and strings of messages into columns, by field number; return the submessages with field number ``inner``.

    If a field is repeated, its last value counts, as always in protobuf. The columns have a row for each message;
    with ``by_parent``, a row for each parent (``messages.row``).
    """
    rows = messages.row if by_parent else np.arange(len(messages.row))
    submessages: list[Messages] = []
    wanted = [*((number, VARINT) for number in numbers), *((number, LEN) for number in (*spans, inner) if number)]
    for fields in walk(window, messages.start, messages.end):
        for number, wire, which in of_kinds(fields, wanted):
            row = rows[fields.row[which]]
            if wire == VARINT:
                numbers[number][row] = fields.value[which]
            elif number == inner:
                start = fields.offset[which]
                submessages.append(Messages(row, start, start + fields.size[which]))
            else:
                offset, size = spans[number]
                offset[row], size[row] = fields.offset[which], fields.size[which]
    return by_row(submessages)


class _Pass:
    """One pass over the fields in ascending order; ``at`` is the current position in each row."""

    def __init__(self, window: Window, start: Int64, end: Int64) -> None:
        self.window = window
        self.at = start.copy()
        self.end = end
        self.bad: Bool = np.zeros(len(start), np.bool_)  # rows with an invalid field
        self.kept: dict[int, list[Messages]] = {number: [] for number in RESOURCES}  # submessages

    def read(self) -> NodeColumns:
        name = self.span(NAME)
        micros = {number: self.number(number) for number in (START_US, OP_START_US, OP_END_US, END_US)}
        self.skip_messages(MEMORY)
        self.skip_messages(OUTPUT)
        label = self.span(LABEL)
        micros[SCHEDULED_US] = self.number(SCHEDULED_US)
        thread = self.number(THREAD)
        self.skip_messages(REFERENCED)
        self.skip_messages(MEMORY_STATS)
        nanos = {number: self.number(number) for number in _TIMES}
        return NodeColumns(*name, *label, thread & 0xFFFFFFFF, *_times({**micros, **nanos}))

    def unread(self) -> Int64:
        """Return the rows whose end the pass did not reach, or whose fields are invalid."""
        return np.flatnonzero(self.bad | (self.at != self.end))

    def number(self, number: int) -> Int64:
        """Read a varint field, 0 if missing."""
        tag = varint(number << 3 | VARINT)
        matches = self.window.bytes[self.at] == tag[0]
        if len(tag) == 2:
            matches &= self.window.bytes[self.at + 1] == tag[1]
        if not matches.any():
            return np.zeros(len(matches), np.int64)
        value, size = read_varints(self.window, self.at + len(tag))
        self.bad |= matches & (size > 10)  # ``walk`` reads this row again, and raises
        size += len(tag)
        if not matches.all():
            value *= matches
            size *= matches
        self.at += size
        return value.view(np.int64)

    def span(self, number: int) -> tuple[Int64, Int64]:
        """Read (offset, size) of a string, size 0 if missing."""
        row = self.rows_at(number)
        offset, size = self.at.copy(), np.zeros(len(self.at), np.int64)
        offset[row], size[row] = self.spans_of_rows(row)
        return offset, size

    def skip_messages(self, number: int) -> None:
        for _ in range(_REPEATS):
            row = self.rows_at(number)
            if not len(row):
                return
            offset, size = self.spans_of_rows(row)
            if number in self.kept:
                self.kept[number].append(Messages(row, offset, offset + size))

    def rows_at(self, number: int) -> Int64:
        """Return the rows whose next field is this string or message."""
        return np.flatnonzero(self.window.bytes[self.at] == np.uint8(number << 3 | LEN))

    def spans_of_rows(self, row: Int64) -> tuple[Int64, Int64]:
        """Read (offset, size) of the messages at the current positions of these rows."""
        at = self.at[row] + 1
        value, size = read_varints(self.window, at)
        at += size
        length = value.view(np.int64)
        wrong = (length < 0) | (length > self.end[row] - at) | (size > 10)
        length[wrong] = 0
        self.bad[row] |= wrong
        self.at[row] = at + length
        return at, length


def _times(numbers: Mapping[int, Int64]) -> list[Int64]:
    """Return the times in ns. RecvTensor and GPU streams have only microseconds."""
    return [np.where(numbers[ns] != 0, numbers[ns], nanoseconds(numbers[micros])) for ns, micros in _TIMES.items()]


def nanoseconds(micros: Int64) -> Int64:
    """Convert to nanoseconds; -1 if the time is too large."""
    fits = (micros >= 0) & (micros <= _LARGEST_US)
    return np.where(fits, micros, 0) * 1000 - ~fits


def _read_any_order(window: Window, start: Int64, end: Int64) -> NodeColumns:
    n = len(start)
    numbers = {number: np.zeros(n, np.int64) for number in (*_TIMES, *_TIMES.values(), THREAD)}
    spans = {number: (np.zeros(n, np.int64), np.zeros(n, np.int64)) for number in (NAME, LABEL)}
    take(window, Messages(np.arange(n), start, end), numbers, 0, spans=spans)
    return NodeColumns(*spans[NAME], *spans[LABEL], numbers[THREAD] & 0xFFFFFFFF, *_times(numbers))
