"""Columns of text, for exports of many lines of one form: numbers as digits, rows of bytes, JSON's escapes, without a Python step
for each number.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import numpy.typing as npt

from tftracer.trace.model import Int64, StringTable

Bytes = npt.NDArray[np.uint8]

_ZERO, _SPACE = 0x30, 0x20


def escaped(table: StringTable) -> StringTable:
    """Every string as it stands between the quotes of JSON, in UTF-8. Names of ops need no escape: they stay as they are."""
    data = bytes(table.data)
    if data.isascii() and b'"' not in data and b"\\" not in data and not (np.frombuffer(data, np.uint8) < _SPACE).any():
        return table
    return StringTable.of([json.dumps(text, ensure_ascii=False)[1:-1] for text in table])


@functools.lru_cache(maxsize=1)
def _fours() -> npt.NDArray[np.uint32]:
    """The four digits of 0 to 9999, each as a word."""
    places = np.array([1000, 100, 10, 1], np.uint16)
    digits = np.arange(10_000, dtype=np.uint16)[:, None] // places % 10 + _ZERO
    return np.ascontiguousarray(digits, np.uint8).view(np.uint32).reshape(-1)


def digits(values: Int64, width: int) -> Bytes:
    """[n, width] the last ``width`` decimal digits of each, zeros in front."""
    groups = -(-width // 4)
    words = np.empty((len(values), groups), np.uint32)
    for group in reversed(range(groups)):
        rest = values // 10_000
        words[:, group] = _fours()[values - rest * 10_000]
        values = rest
    return words.view(np.uint8).reshape(len(words), 4 * groups)[:, 4 * groups - width :]


def padded(values: Int64) -> Bytes:
    """[n, digits of the largest] the digits of each, spaces in front."""
    wide = len(str(int(values.max(initial=0))))
    cells = digits(values, wide)
    least = int(values.min()) if len(values) else 0
    for place in range(wide - 1):
        if least < (bound := 10 ** (wide - 1 - place)):
            cells[values < bound, place] = _SPACE
    return cells


def rows(n: int, *columns: bytes | Bytes) -> str:
    """The text of n rows, columns side by side: the same bytes for all, or [n, w]. What columns are padded with, spaces, is left
    out.
    """
    cells = [np.frombuffer(column, np.uint8)[None] if isinstance(column, bytes) else column for column in columns]
    out = np.empty((n, sum(cell.shape[1] for cell in cells)), np.uint8)
    at = 0
    for cell in cells:
        out[:, at : at + cell.shape[1]] = cell
        at += cell.shape[1]
    return str(out.data, "ascii").replace(" ", "")
