"""Reads the stats (named numbers and texts) of a profile's events with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.intervals import concatenated, distinct
from tftracer.trace.arrays.strings import Hasher, numbered
from tftracer.trace.arrays.types import Bool, Int64, UInt64
from tftracer.trace.arrays.window import Window, blocks
from tftracer.trace.decode.wire import LEN, VARINT, varint, walk
from tftracer.trace.decode.xplane_reader import DOUBLE, EVENT_STATS, METADATA_ID, REFERENCE, Events, Plane, decoded

_SEARCH_BLOCK = 1 << 22  # bytes that are searched together


@dataclass
class Stat:
    """One named stat of some events, [rows] each."""

    plane: Plane
    has: Bool
    number: Int64  # an integer, or a double's bits; for a reference, the id of the stat metadata whose name is the text
    referring: Bool  # whether ``number`` is a reference
    offset: Int64  # position of a text in the events' raw bytes
    size: Int64

    @classmethod
    def missing(cls, plane: Plane, n: int) -> Stat:
        number, offset, size = (np.zeros(n, np.int64) for _ in range(3))
        return cls(plane, np.zeros(n, np.bool_), number, np.zeros(n, np.bool_), offset, size)

    def text(self, row: int) -> str:
        if self.referring[row]:
            return self.plane.stat_names.get(int(self.number[row]), "")
        return decoded(self.plane.events.raw[self.offset[row] : self.offset[row] + self.size[row]])

    def keys(self, hasher: Hasher) -> UInt64:
        """Return [rows] keys; 0 for rows without a text. Equal keys mean equal texts.

        A text may have two keys: one where the event has the text itself, another where it refers to it.
        """
        keys = np.zeros(len(self.has), np.uint64)
        direct = np.flatnonzero(self.has & ~self.referring)
        if len(direct):
            offset, size = self.offset[direct], self.size[direct]
            window = Window(self.plane.events.raw, int(offset.min()), int((offset + size).max()))
            keys[direct] = hasher.spans(window, offset - window.low, size)
        keys[self.referring] = self.number[self.referring].view(np.uint64)
        return keys

    def only(self, rows: Bool | Int64) -> Stat:
        return Stat(self.plane, self.has[rows], self.number[rows], self.referring[rows], self.offset[rows], self.size[rows])


def alike(*keys: UInt64) -> tuple[Int64, Int64]:
    """Group rows by equal keys. Return (the group of each row, the first row of each group)."""
    mixed = np.zeros(len(keys[0]), np.uint64)
    for key in keys:
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed += key * np.uint64(0xD6E8FEB86659FD93)
    codes, first = numbered(mixed)
    return codes.astype(np.int64), first


def texts(stat: Stat) -> tuple[Int64, list[str]]:
    """Return (index of each row's text, texts). A text may be in the list twice (``Stat.keys``); "" for rows without a text."""
    if not len(stat.has):
        return np.zeros(0, np.int64), []
    group, first = alike(stat.keys(Hasher.random()))
    return group, [stat.text(row) for row in first.tolist()]


def stats_of(plane: Plane, rows: Int64, names: Sequence[str]) -> dict[str, Stat]:
    """Read the named stats of the events ``rows`` (ascending)."""
    stats = {name: Stat.missing(plane, len(rows)) for name in names}
    ids = {number: stats[name] for number, name in plane.stat_names.items() if name in stats}
    if not ids or not len(rows):
        return stats
    events = plane.events
    for block, window, low, high in blocks(events.raw, events.stats[rows], events.end_byte[rows]):
        for fields in walk(window, low, high):
            which = np.flatnonzero((fields.number == EVENT_STATS) & (fields.wire == LEN))
            if len(which):
                stat = fields.offset[which]
                _read_stats(window, stat, stat + fields.size[which], fields.row[which] + block.start, ids)
    return stats


def _read_stats(window: Window, start: Int64, end: Int64, owner: Int64, ids: dict[int, Stat]) -> None:
    metadata_id, kind, value, offset, size = (np.zeros(len(start), np.int64) for _ in range(5))
    for fields in walk(window, start, end):
        which = (fields.number == METADATA_ID) & (fields.wire == VARINT)
        metadata_id[fields.row[which]] = fields.value[which]
        which = (fields.number >= DOUBLE) & (fields.number <= REFERENCE)
        row = fields.row[which]
        kind[row], value[row], offset[row] = fields.number[which], fields.value[which], fields.offset[which] + window.low
        size[row] = np.where(fields.wire[which] == LEN, fields.size[which], 0)
    for number, stat in ids.items():
        rows = np.flatnonzero(metadata_id == number)
        event_rows = owner[rows]
        stat.has[event_rows], stat.number[event_rows], stat.referring[event_rows] = True, value[rows], kind[rows] == REFERENCE
        stat.offset[event_rows], stat.size[event_rows] = offset[rows], size[rows]


def having(plane: Plane, name: str) -> tuple[Int64, Stat]:
    """Return (the events that have a stat, ascending; the stat of each)."""
    ids = [number for number, stat_name in plane.stat_names.items() if stat_name == name]
    candidates_by_id = [_candidates(plane.events, number) for number in ids]
    rows = candidates_by_id[0] if len(candidates_by_id) == 1 else distinct(concatenated(candidates_by_id))
    stat = stats_of(plane, rows, [name])[name]
    return rows[stat.has], stat.only(stat.has)


def _candidates(events: Events, number: int) -> Int64:
    """Return the events whose stats contain the bytes of this metadata_id: all that have the stat, and few others."""
    wanted = np.frombuffer(bytes([METADATA_ID << 3 | VARINT]) + varint(number & (1 << 64) - 1), np.uint8)
    if not len(events):
        return np.zeros(0, np.int64)
    first = int(events.first_byte.min())
    text = np.frombuffer(events.raw, np.uint8, int(events.end_byte.max()) - first, first)
    candidates = []
    for low in range(0, max(len(text) - len(wanted) + 1, 0), _SEARCH_BLOCK):
        high = min(low + _SEARCH_BLOCK, len(text) - len(wanted) + 1)
        is_match = text[low:high] == wanted[0]
        for position in range(1, len(wanted)):
            is_match &= text[low + position : high + position] == wanted[position]
        candidates.append(np.flatnonzero(is_match) + low)
    places = concatenated(candidates)
    tag = np.uint8(EVENT_STATS << 3 | LEN)
    places = places[places > 3]
    places = places[
        (text[places - 2] == tag) | (text[places - 3] == tag) | (text[places - 4] == tag)
    ]  # the tag, then the stat's length in one to three bytes
    places += first
    row = np.searchsorted(events.first_byte, places, "right") - 1
    row = row[(row >= 0) & (places >= events.stats[row]) & (places < events.end_byte[row])]
    distinct_rows: Int64 = row[np.append(True, row[1:] != row[:-1])[: len(row)]]  # rows ascend
    return distinct_rows
