"""Dictionary coding and look-up of strings in raw bytes, by 64-bit hashes, without a Python object per string (except for rare
long ones).

The hash has a random seed for each decode, so that nobody can craft a trace whose strings collide. The chance that any two of
2^20 different strings collide is 1 in 30 million.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.types import Int32, Int64, UInt64
from tftracer.trace.arrays.window import Window, blocks

#: Longer strings are hashed by Python, one by one: op names are shorter.
LONG = 1024

_ROUND = 32  # bytes that are hashed together
_CHUNK = 64  # bytes that are copied together, because that takes hardly longer than copying one
_ROWS = 1 << 14  # strings that are hashed together
_MASKS = (np.tri(_ROUND + 1, _ROUND, -1, np.uint8) * np.uint8(255)).view(f"V{_ROUND}")[:, 0]  # [n] selects the first n bytes
_HALF = np.uint64(32)


class StringTable(Sequence[str]):
    """Strings as one UTF-8 blob and n+1 offsets into it; an entry becomes a ``str`` when it is read."""

    __slots__ = ("data", "hashed", "offsets")

    def __init__(self, data: bytes, offsets: Int64) -> None:
        self.data = data
        self.offsets = offsets
        self.hashed: Hashed | None = None  # cache of strings.hashed

    @classmethod
    def of(cls, strings: Sequence[str]) -> StringTable:
        encoded = [s.encode("utf-8", "replace") for s in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(e) for e in encoded], out=offsets[1:])
        return cls(b"".join(encoded), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = int(index)
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(index)
        return self.data[self.offsets[i] : self.offsets[i + 1]].decode("utf-8", "replace")

    def texts(self, codes: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return [n] the strings of these codes: three times as fast as one by one."""
        data, low, high = self.data, self.offsets[codes].tolist(), self.offsets[codes + 1].tolist()
        return [data[first:last].decode("utf-8", "replace") for first, last in zip(low, high)]

    def __iter__(self) -> Iterator[str]:
        data, offsets = bytes(self.data), self.offsets.tolist()
        if not data.isascii():
            return (data[low:high].decode("utf-8", "replace") for low, high in zip(offsets, offsets[1:]))
        text = data.decode("ascii")  # op names are ASCII: decoding once and slicing takes a tenth of the time
        return (text[low:high] for low, high in zip(offsets, offsets[1:]))


@dataclass(frozen=True)
class Hasher:
    """Computes 64-bit hashes of strings. Two hashers have different seeds, so only hashes of one hasher can be compared."""

    seed: np.uint64
    factor: np.uint64  # odd

    @classmethod
    def random(cls) -> Hasher:
        seed, factor = np.frombuffer(os.urandom(16), np.uint64)
        return cls(seed, factor | np.uint64(1))

    def spans(self, window: Window, offset: Int64, size: Int64) -> UInt64:
        """Return [n] hashes of the strings at offset[i] : offset[i] + size[i] of the window. Equal strings have equal hashes."""
        if len(offset) <= _ROWS:
            return self._hash(window, offset, size)
        parts = [slice(first, first + _ROWS) for first in range(0, len(offset), _ROWS)]
        return np.concatenate([self._hash(window, offset[part], size[part]) for part in parts])

    def _hash(self, window: Window, offset: Int64, size: Int64) -> UInt64:
        out = self._mix(size.astype(np.uint64), self.seed)  # strings of different lengths have different hashes
        chunks = _chunks(window.bytes, _ROUND)
        row, at, left, value = np.arange(len(out)), offset, np.minimum(size, LONG), out
        while len(row):  # each round hashes 32 bytes of each string, padded with zeros, and drops finished strings
            words = _words(chunks[at])
            if left.min() < _ROUND:
                words &= _words(_MASKS[np.minimum(left, _ROUND)])
            for i in range(_ROUND // 8):
                value = self._mix(value, words[:, i])
            out[row] = value
            more = np.flatnonzero(left > _ROUND)
            row, at, left, value = row[more], at[more] + _ROUND, left[more] - _ROUND, value[more]
        for i in np.flatnonzero(size > LONG).tolist():
            text = window.bytes[offset[i] : offset[i] + size[i]].tobytes()
            out[i] = np.uint64(hash(text) & 0xFFFFFFFFFFFFFFFF) ^ self.seed
        return out

    def _mix(self, value: UInt64, words: UInt64 | np.uint64) -> UInt64:
        value = value ^ words
        value *= self.factor
        value ^= value >> _HALF
        return value


def _words(chunks: npt.NDArray[Any]) -> UInt64:
    """View n chunks as [n, 4] words."""
    return chunks.view("<u8").reshape(len(chunks), _ROUND // 8)


class Hashed(NamedTuple):
    """The hashes of a table's strings."""

    hasher: Hasher
    hashes: UInt64  # [strings]


def hashed(strings: StringTable) -> Hashed:
    """Return the hashes of a table, which are kept with it for further lookups."""
    if strings.hashed is None:
        data, hasher = bytes(strings.data), Hasher.random()
        hashes = hasher.spans(Window(data, 0, len(data)), strings.offsets[:-1], np.diff(strings.offsets))
        strings.hashed = Hashed(hasher, hashes)
    return strings.hashed


_MAX_SLOT_BITS = 20


def numbered(hashes: UInt64) -> tuple[Int32, Int64]:
    """Return (code of each hash, index of the first hash with each code). Codes are in the order of first appearance.

    Uses a hash table: a slot belongs to its first hash, and the other hashes in it are sorted. Takes a third of the time of
    sorting all hashes.
    """
    if len(hashes) and (hashes == hashes[0]).all():
        return np.zeros(len(hashes), np.int32), np.zeros(1, np.int64)
    bits = min(max((4 * len(hashes)).bit_length(), 8), _MAX_SLOT_BITS)
    slot = (hashes >> np.uint64(64 - bits)).view(np.int64)
    place = np.arange(len(hashes), dtype=np.int32)
    slots = np.empty(1 << bits, np.int32)
    slots[slot[::-1]] = place[::-1]  # if a slot is written several times, the last write stays
    owner = slots[slot]
    colliding = np.flatnonzero(hashes[owner] != hashes)
    if len(colliding):
        _, first, code = np.unique(hashes[colliding], return_index=True, return_inverse=True)
        owner[colliding] = colliding[first][code]
    is_first = owner == place
    return (np.cumsum(is_first, dtype=np.int32) - np.int32(1))[owner], np.flatnonzero(is_first)


_BATCH = 1 << 12  # strings: the temporary arrays of a batch fit into the CPU's cache


def table(raw: bytes, offset: Int64, size: Int64) -> StringTable:
    """Return the table of the strings at raw[offset[i] : offset[i] + size[i]], in order."""
    offsets = np.zeros(len(offset) + 1, np.int64)
    np.cumsum(size, out=offsets[1:])
    texts = [_gathered(window.bytes, low, high - low).data for _, window, low, high in blocks(raw, offset, offset + size, _BATCH)]
    return StringTable(b"".join(texts), offsets)


def _gathered(text: npt.NDArray[np.uint8], offset: Int64, size: Int64) -> npt.NDArray[np.uint8]:
    """Concatenate the bytes of the strings at offset[i] : offset[i] + size[i] of ``text``.

    ``text`` has ``window.PADDING`` more bytes after the last string. Strings are copied in chunks; the next string overwrites
    the bytes that a chunk copies past the end of its string. Takes a fifth of the time of slices.
    """
    place = np.cumsum(size) - size
    out = np.empty(int(size.sum()) + _CHUNK, np.uint8)
    source, target = _chunks(text), _chunks(out)
    last_chunk = (min(int(size.max()), LONG) - 1) // _CHUNK * _CHUNK
    for chunk in range(
        last_chunk, 0, -_CHUNK
    ):  # from the last: the next copies overwrite bytes that were copied past a string's end
        rows = np.flatnonzero(size > chunk)
        target[place[rows] + chunk] = source[offset[rows] + chunk]
    target[place] = source[offset]
    for i in np.flatnonzero(size > LONG).tolist():
        out[place[i] : place[i] + size[i]] = text[offset[i] : offset[i] + size[i]]
    return out[:-_CHUNK]


def _chunks(text: npt.NDArray[np.uint8], size: int = _CHUNK) -> npt.NDArray[Any]:
    """Return a view of the chunk that begins at each byte."""
    return np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))


def spans_in(strings: StringTable, offset: Int64, size: Int64) -> tuple[Int32, StringTable]:
    """Dictionary-code spans of a table's text, such as the op types in labels."""
    data = bytes(strings.data)
    hashes = Hasher.random().spans(Window(data, 0, len(data)), offset, size)
    codes, first = numbered(hashes)
    return codes, table(data, offset[first], size[first])


def find(strings: StringTable, text: bytes) -> int:
    """Return the code of a string, -1 if it is not in the table. No Python loop over the strings."""
    places = equal_to(text, np.frombuffer(strings.data, np.uint8), strings.offsets[:-1], np.diff(strings.offsets))
    return int(places[0]) if len(places) else -1


def equal_to(wanted: bytes, text: npt.NDArray[np.uint8], offset: Int64, size: Int64) -> Int64:
    """Return the indices of the strings at offset[i] : offset[i] + size[i] of ``text`` that equal ``wanted``."""
    equal = np.flatnonzero(size == len(wanted))
    for i, byte in enumerate(wanted):
        equal = equal[text[offset[equal] + i] == byte]
    return equal


def codes_in(table: StringTable, text: bytes, offset: Int64, size: Int64) -> Int64:
    """Return [n] the code in ``table`` of each string text[offset[i] : offset[i] + size[i]], -1 for unknown strings."""
    hasher, hashes = hashed(table)
    return codes_of(hashes, hasher.spans(Window(text, 0, len(text)), offset, size))


def codes_of(hashes: UInt64, wanted: UInt64) -> Int64:
    """Return [wanted] the index of each hash in ``hashes``; -1 if it is not there."""
    codes, first = numbered(np.concatenate([hashes, wanted]))
    position = first[codes[len(hashes) :]]
    return np.where(position < len(hashes), position, -1)
