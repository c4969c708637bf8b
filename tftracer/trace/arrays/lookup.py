"""Looks up many strings at once in a string table, by their hashes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.strings import StringTable, hashed
from tftracer.trace.arrays.types import Int32, Int64, UInt64
from tftracer.trace.arrays.window import Window

_MAX_SLOT_BITS = 20


def codes_in(table: StringTable, text: bytes, offset: Int64, size: Int64) -> Int64:
    """Return [n] the code in ``table`` of each string text[offset[i] : offset[i] + size[i]], -1 for unknown strings."""
    hasher, hashes = hashed(table)
    return Lookup.of(hashes)(hasher.spans(Window(text, 0, len(text)), offset, size))


@dataclass
class Lookup:
    """A hash table from hashes of strings to their codes. A hash whose slot belongs to another hash is found by binary search."""

    hashes: UInt64  # by code
    slots: Int32  # by the upper bits of a hash: the code of a string with these bits; 0 if there is none
    colliding_hashes: UInt64  # the hashes without a slot, sorted
    colliding_codes: Int64

    @classmethod
    def of(cls, hashes: UInt64) -> Lookup:
        bits = min(max((8 * len(hashes)).bit_length(), 8), _MAX_SLOT_BITS)
        slots = np.zeros(1 << bits, np.int32)
        slot = (hashes >> np.uint64(64 - bits)).view(np.int64)
        slots[slot] = np.arange(len(hashes), dtype=np.int32)
        codes = np.flatnonzero(slots[slot] != np.arange(len(hashes)))
        codes = codes[np.argsort(hashes[codes])]
        return cls(hashes, slots, hashes[codes], codes)

    def __call__(self, hashes: UInt64) -> Int64:
        """Return [n] the code of each hash, -1 for unknown hashes."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, np.int64)
        bits = len(self.slots).bit_length() - 1
        code = self.slots[(hashes >> np.uint64(64 - bits)).view(np.int64)].astype(np.int64)
        rest = np.flatnonzero(self.hashes[code] != hashes)
        colliding = self.colliding_hashes
        if len(colliding) and len(rest):
            place = np.minimum(np.searchsorted(colliding, hashes[rest]), len(colliding) - 1)
            code[rest] = np.where(colliding[place] == hashes[rest], self.colliding_codes[place], -1)
        else:
            code[rest] = -1
        return code
