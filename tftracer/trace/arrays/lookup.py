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
    """A hash table from hashes of strings to their numbers.

    Strings that lost their slot to another are found by binary search.
    """

    hashes: UInt64
    slots: Int32  # by the upper bits of a hash: the number of a string with these bits; any number if there is none
    others: UInt64  # the hashes without a slot, sorted
    code: Int64  # their numbers

    @classmethod
    def of(cls, hashes: UInt64) -> Lookup:
        bits = min(max((8 * len(hashes)).bit_length(), 8), _MAX_SLOT_BITS)
        slots = np.zeros(1 << bits, np.int32)
        slot = (hashes >> np.uint64(64 - bits)).view(np.int64)
        slots[slot] = np.arange(len(hashes), dtype=np.int32)
        others = np.flatnonzero(slots[slot] != np.arange(len(hashes)))
        order = others[np.argsort(hashes[others])]
        return cls(hashes, slots, hashes[order], order)

    def __call__(self, hashes: UInt64) -> Int64:
        """Return [n] the number of each hash, -1 for unknown hashes."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, np.int64)
        bits = len(self.slots).bit_length() - 1
        number = self.slots[(hashes >> np.uint64(64 - bits)).view(np.int64)].astype(np.int64)
        rest = np.flatnonzero(self.hashes[number] != hashes)
        if len(self.others) and len(rest):
            place = np.minimum(np.searchsorted(self.others, hashes[rest]), len(self.others) - 1)
            number[rest] = np.where(self.others[place] == hashes[rest], self.code[place], -1)
        else:
            number[rest] = -1
        return number
