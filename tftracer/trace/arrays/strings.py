"""Dictionary coding of strings that lie in raw bytes, by 64-bit hashes, without a Python object for any but the rare long one.

The hash is seeded at random for each decode, so that nobody can write a trace whose strings collide; that any two of
2^20 different strings do so by chance has odds of 1 in 30 million.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.trace.arrays.types import Int32, Int64, UInt64
from tftracer.trace.arrays.window import Window

#: Longer strings are hashed by Python, one by one: nobody names an op like that.
LONG = 1024

_SHORT = 256  # no name of a device is longer
_ROUND = 32  # bytes that are hashed together
_CHUNK = 64  # bytes that are copied together: NumPy takes hardly longer than for one
_ROWS = 1 << 14  # strings that are hashed or copied together
_MASKS = (np.tri(_ROUND + 1, _ROUND, -1, np.uint8) * np.uint8(255)).view(f"V{_ROUND}")[:, 0]  # [n] the first n bytes of a chunk
_HALF = np.uint64(32)


class StringTable(Sequence[str]):
    """Distinct strings as one UTF-8 blob and n+1 offsets into it; an entry becomes a ``str`` when it is asked for."""

    __slots__ = ("data", "hashed", "offsets")

    def __init__(self, data: bytes, offsets: Int64) -> None:
        self.data = data
        self.offsets = offsets
        self.hashed: Hashed | None = None  # of strings.hashed

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
        """[n] the strings of these codes: a third of the time that asking for one by one takes."""
        data, low, high = self.data, self.offsets[codes].tolist(), self.offsets[codes + 1].tolist()
        return [data[first:last].decode("utf-8", "replace") for first, last in zip(low, high)]

    def __iter__(self) -> Iterator[str]:
        data, offsets = bytes(self.data), self.offsets.tolist()
        if not data.isascii():
            return (data[low:high].decode("utf-8", "replace") for low, high in zip(offsets, offsets[1:]))
        text = data.decode("ascii")  # names of ops are ASCII: one decoding and slices, a tenth of the time
        return (text[low:high] for low, high in zip(offsets, offsets[1:]))


@dataclass(frozen=True)
class Hasher:
    seed: np.uint64
    factor: np.uint64  # odd

    @classmethod
    def random(cls) -> Hasher:
        seed, factor = np.frombuffer(os.urandom(16), np.uint64)
        return cls(seed, factor | np.uint64(1))

    def spans(self, window: Window, offset: Int64, size: Int64) -> UInt64:
        """[n] hashes of the strings at offset[i] : offset[i] + size[i] of the window. Equal strings have equal hashes."""
        if len(offset) <= _ROWS:
            if _alike(window, offset, size):
                return np.repeat(self._some(window, offset[:1], size[:1]), len(offset))
            return self._some(window, offset, size)
        parts = [slice(first, first + _ROWS) for first in range(0, len(offset), _ROWS)]
        return np.concatenate([self._some(window, offset[part], size[part]) for part in parts])

    def _some(self, window: Window, offset: Int64, size: Int64) -> UInt64:
        out = self._mix(size.astype(np.uint64), self.seed)  # strings of different lengths begin far from each other
        chunks = _chunks(window.bytes, _ROUND)
        row, at, left, value = np.arange(len(out)), offset, np.minimum(size, LONG), out
        while len(row):  # a round takes 32 bytes of each, zeros behind the last; strings drop out when nothing is left
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
    """[n, 4] of n chunks."""
    return chunks.view("<u8").reshape(len(chunks), _ROUND // 8)


def _alike(window: Window, offset: Int64, size: Int64) -> bool:
    """Whether all are one string, as allocators mostly are, and the devices of a graph."""
    length = int(size[0]) if len(size) > 1 else 0
    if not 0 < length <= _SHORT or (size != length).any():
        return False
    ends = _chunks(window.bytes, length)[offset[[0, -1]]]
    if ends[0].tobytes() != ends[1].tobytes():
        return False
    text = _chunks(window.bytes, length)[offset].view(np.uint8)
    return bool((text[length:] == text[:-length]).all())


class Hashed(NamedTuple):
    """The hashes of a table's strings."""

    hasher: Hasher
    hashes: UInt64  # [strings]


def hashed(strings: StringTable) -> Hashed:
    """Kept with the table: names are looked up for one answer after another."""
    if strings.hashed is None:
        data, hasher = bytes(strings.data), Hasher.random()
        hashes = hasher.spans(Window(data, 0, len(data)), strings.offsets[:-1], np.diff(strings.offsets))
        strings.hashed = Hashed(hasher, hashes)
    return strings.hashed


def distinct(hashes: UInt64) -> tuple[Int32, Int64]:
    """(code of each, index of the first with each code). Codes are in the order in which they first appear."""
    if len(hashes) and (hashes == hashes[0]).all():
        return np.zeros(len(hashes), np.int32), np.zeros(1, np.int64)
    codes, first = _common(hashes)
    if not len(first):
        return _by_slots(hashes)
    rest = np.flatnonzero(codes < 0)
    if len(rest):
        rest_codes, rest_first = _by_slots(hashes[rest])
        codes[rest] = rest_codes + len(first)
        first = np.concatenate([first, rest[rest_first]])
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[codes] if len(rank) else codes, first[order]


_SAMPLE = 4096
_FEW = 1 << 15  # hashes for which looking at a sample first does not pay
_SLOTS = 16  # bits
_MOST_SLOTS = 20


def _common(hashes: UInt64) -> tuple[Int32, Int64]:
    """Codes of the strings that are among the first some thousand, -1 for the others: a loop's ops are all among them.

    No codes where the first some thousand are too different, or all there is.
    """
    first = _by_slots(hashes[:_SAMPLE])[1] if len(hashes) > _FEW else np.zeros(0, np.int64)
    if not 0 < len(first) <= _SAMPLE // 2:
        return np.zeros(0, np.int32), first[:0]
    slots = np.zeros(1 << _SLOTS, np.int32)
    common = hashes[first]
    slots[(common >> np.uint64(64 - _SLOTS)).astype(np.int64)] = np.arange(len(first), dtype=np.int32)
    codes = slots[(hashes >> np.uint64(64 - _SLOTS)).view(np.int64)]
    hit = common[codes] == hashes
    codes[~hit] = -1
    return _first_kept(codes, first)


def _first_kept(codes: Int32, first: Int64) -> tuple[Int32, Int64]:
    """Two known strings may share a slot; the one that lost it has no code here, and is found by sorting."""
    kept = codes[first] >= 0
    renumbered = np.cumsum(kept, dtype=np.int32) - 1
    table = np.append(renumbered, np.int32(-1))
    return table[codes], first[kept]


def _by_slots(hashes: UInt64) -> tuple[Int32, Int64]:
    """As ``distinct``: of the strings that share a slot the first has it; those of other hashes in it are sorted. A third of
    the time of sorting all.
    """
    bits = min(max((4 * len(hashes)).bit_length(), 8), _MOST_SLOTS)
    slot = (hashes >> np.uint64(64 - bits)).view(np.int64)
    place = np.arange(len(hashes), dtype=np.int32)
    slots = np.empty(1 << bits, np.int32)
    slots[slot[::-1]] = place[::-1]  # the last one written stays
    same = slots[slot]
    others = np.flatnonzero(hashes[same] != hashes)
    if len(others):
        codes, first = _sorted(hashes[others])
        same[others] = others[first][codes]
    own = same == place
    return (np.cumsum(own, dtype=np.int32) - np.int32(1))[same], np.flatnonzero(own)


def _sorted(hashes: UInt64) -> tuple[Int32, Int64]:
    if not len(hashes):
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    order = np.argsort(hashes)
    ordered = hashes[order]
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    codes = np.empty(len(order), np.int32)
    codes[order] = np.cumsum(begins, dtype=np.int32) - 1
    return codes, np.minimum.reduceat(order, np.flatnonzero(begins))


_BITE = 1 << 12  # strings: what is made of them stays in the cache, and in memory that is used again


def table(raw: bytes, offset: Int64, size: Int64) -> StringTable:
    """The strings at raw[offset[i] : offset[i] + size[i]], one after the other."""
    offsets = np.zeros(len(offset) + 1, np.int64)
    np.cumsum(size, out=offsets[1:])
    parts = []
    for first in range(0, len(offset), _BITE):
        at, length = offset[first : first + _BITE], size[first : first + _BITE]
        low = int(at.min())
        parts.append(gathered(Window(raw, low, int((at + length).max())).bytes, at - low, length).data)
    return StringTable(b"".join(parts), offsets)


def gathered(text: npt.NDArray[np.uint8], offset: Int64, size: Int64) -> npt.NDArray[np.uint8]:
    """The bytes of the strings at offset[i] : offset[i] + size[i] of ``text``, one after the other.

    ``text`` goes on for ``wire.PADDING`` bytes behind the last one: strings are copied by chunks, in order, and what a chunk
    carries past the end of its string is written over by the next one. A fifth of the time of slices.
    """
    place = np.cumsum(size) - size
    out = np.empty(int(size.sum()) + _CHUNK, np.uint8)
    source, target = _chunks(text), _chunks(out)
    for first in range(0, len(size), _ROWS):
        part = slice(first, first + _ROWS)
        source_at, target_at, left = offset[part], place[part], size[part]
        last = (min(int(left.max()), LONG) - 1) // _CHUNK * _CHUNK
        for done in range(last, 0, -_CHUNK):  # the first chunks come last: they write over what later ones carry too far
            rows = np.flatnonzero(left > done)
            target[target_at[rows] + done] = source[source_at[rows] + done]
        target[target_at] = source[source_at]
    for i in np.flatnonzero(size > LONG).tolist():
        out[place[i] : place[i] + size[i]] = text[offset[i] : offset[i] + size[i]]
    return out[:-_CHUNK]


def _chunks(text: npt.NDArray[np.uint8], size: int = _CHUNK) -> npt.NDArray[Any]:
    """The chunk that begins at each byte."""
    return np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))


def spans_in(strings: StringTable, offset: Int64, size: Int64) -> tuple[Int32, StringTable]:
    """Dictionary-code spans of a table's own text: op types within labels."""
    data = bytes(strings.data)
    hashes = Hasher.random().spans(Window(data, 0, len(data)), offset, size)
    codes, first = distinct(hashes)
    return codes, table(data, offset[first], size[first])


def find(strings: StringTable, text: bytes) -> int:
    """The code of a string, -1 where the table does not hold it; no Python step for each."""
    places = equal_to(text, np.frombuffer(strings.data, np.uint8), strings.offsets[:-1], np.diff(strings.offsets))
    return int(places[0]) if len(places) else -1


def equal_to(wanted: bytes, text: npt.NDArray[np.uint8], offset: Int64, size: Int64) -> Int64:
    """Which of the strings at offset[i] : offset[i] + size[i] of ``text`` are the wanted one; no Python step for each."""
    equal = np.flatnonzero(size == len(wanted))
    for i, byte in enumerate(wanted):
        equal = equal[text[offset[equal] + i] == byte]
    return equal
