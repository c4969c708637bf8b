"""Builds the text of exports of many lines with NumPy, from pieces: strings of tables, words, and numbers as digits.

A ``Sheet`` holds the bytes of all pieces, one after another. A line is a list of pieces, each with its offset and its size.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.strings import StringTable, gathered
from tftracer.trace.arrays.types import Int64
from tftracer.trace.arrays.window import PADDING

Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[Any]

_SPACE, _ZERO, _POINT = 0x20, 0x30, 0x2E


def escaped(table: StringTable) -> StringTable:
    """Every string as JSON has it between quotes, in UTF-8. Names of ops need no escapes and are returned as they are."""
    data = bytes(table.data)
    if data.isascii() and b'"' not in data and b"\\" not in data and not (np.frombuffer(data, np.uint8) < _SPACE).any():
        return table
    return StringTable.of([json.dumps(text, ensure_ascii=False)[1:-1] for text in table])


class Pieces(NamedTuple):
    """The offsets and sizes of pieces of text in a sheet."""

    at: Int64
    size: Int64


class _Rows(NamedTuple):
    cells: Bytes
    end: Int64  # of each row in the sheet


class Sheet:
    """Tables and words, followed by space for the numbers of some thousand lines."""

    def __init__(self, tables: Sequence[StringTable], words: Sequence[str], room: int) -> None:
        encoded = StringTable.of(words)
        sizes = [len(table.data) for table in (*tables, encoded)]
        begins = (np.cumsum(sizes) - sizes).tolist()
        self._offsets = [table.offsets + begin for table, begin in zip((*tables, encoded), begins)]
        self._room = self._free = sum(sizes)
        self._bytes: Bytes = np.empty(self._room + room + PADDING, np.uint8)
        for table, begin in zip((*tables, encoded), begins):
            self._bytes[begin : begin + len(table.data)] = np.frombuffer(table.data, np.uint8)

    def begin(self) -> None:
        """Frees the space for numbers: those of earlier lines are overwritten."""
        self._free = self._room

    def strings(self, table: int, codes: Codes) -> Pieces:
        """Strings of one of the tables."""
        offsets = self._offsets[table]
        at = offsets[codes]
        return Pieces(at, offsets[codes + 1] - at)

    def spans(self, table: int, first: Int64, last: Int64) -> Pieces:
        """Parts of one of the tables."""
        return Pieces(first + self._offsets[table][0], last - first)

    def words(self, numbers: Codes) -> Pieces:
        return self.strings(-1, numbers)

    def numbers(self, values: Int64) -> Pieces:
        """Whole numbers, none of them negative."""
        wide, size = _width(values)
        rows = self._rows(len(values), wide)
        _fill(rows.cells, values)
        return Pieces(rows.end - size, size)

    def thousandths(self, values: Int64) -> Pieces:
        """Thousandths as decimal numbers: ``1.000``, ``1.024``."""
        whole = values // 1000
        wide, size = _width(whole)
        rows = self._rows(len(values), wide + 4)
        _fill(rows.cells[:, :wide], whole)
        rows.cells[:, wide] = _POINT
        _fill(rows.cells[:, wide + 1 :], values - whole * 1000)
        return Pieces(rows.end - 4 - size, size + 4)

    def _rows(self, n: int, width: int) -> _Rows:
        """A part of the space for numbers."""
        begin = self._free
        self._free += n * width
        return _Rows(self._bytes[begin : self._free].reshape(n, width), begin + np.arange(1, n + 1) * width)

    def text(self, at: Int64, size: Int64) -> str:
        """The pieces, joined."""
        return str(gathered(self._bytes, at, size).data, "utf-8")

    def lines(self, columns: Sequence[Pieces]) -> str:
        """Lines that have one piece of each column."""
        at, size = (np.stack([column[i] for column in columns], axis=1).reshape(-1) for i in (0, 1))
        return self.text(at, size)


def _width(values: Int64) -> tuple[int, Int64]:
    """(digits of the largest, digits of each)."""
    wide = len(str(int(values.max(initial=0))))
    least = len(str(int(values.min()))) if len(values) else 1
    size = np.full(len(values), least, np.int64)
    for more in range(least, wide):
        size += values >= 10**more
    return wide, size


@functools.lru_cache(maxsize=1)
def _fours() -> npt.NDArray[np.uint32]:
    """The four digits of each number from 0 to 9999, as a 32-bit word."""
    places = np.array([1000, 100, 10, 1], np.uint16)
    digits = np.arange(10_000, dtype=np.uint16)[:, None] // places % 10 + _ZERO
    return np.ascontiguousarray(digits, np.uint8).view(np.uint32).reshape(-1)


def _fill(cells: Bytes, values: Int64) -> None:
    """Writes the last digits of each number into its row, with leading zeros."""
    end = cells.shape[1]
    while end > 0:
        low = int(values[0]) if len(values) else 0
        if (values == low).all():  # the upper digits of times of one step
            cells[:, :end] = np.frombuffer(b"%0*d" % (end, low), np.uint8)
            return
        rest = values // 10_000
        part = _fours()[values - rest * 10_000].view(np.uint8).reshape(len(values), 4)
        begin = max(end - 4, 0)
        cells[:, begin:end] = part[:, begin - end :]
        values, end = rest, begin
