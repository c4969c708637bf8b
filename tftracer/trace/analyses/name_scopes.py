"""Finds name scopes by hashes of name prefixes, without a Python loop: ``a/b/c`` is in ``a/b``, which is in ``a``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.groups import rows_of_groups
from tftracer.trace.arrays.strings import Hasher, StringTable, codes_in, numbered, spans_in, table
from tftracer.trace.arrays.types import Float64, Int32, Int64
from tftracer.trace.arrays.window import Window

_SLASH = 0x2F


@dataclass(frozen=True)
class Scopes:
    """The scopes of some names and the ancestors of these scopes; a scope is a number and a span of ``text``."""

    scope: Int32  # [names] the direct scope of each name
    own: int  # number of distinct direct scopes
    inside: Int64  # [pairs of a direct scope and a scope that it is in] the direct scope
    key: Int64  # [pairs] the scope itself, or one of its ancestors
    text: bytes
    offset: Int64  # [scopes]
    size: Int64

    def __len__(self) -> int:
        return len(self.offset)

    def texts(self, selected: Int64) -> StringTable:
        return table(self.text, self.offset[selected], self.size[selected])

    def longest_first(self, total: Float64, limit: int) -> Int64:
        """Return the ``limit`` scopes with the largest totals; equal totals are sorted by name."""
        order = np.argsort(-total, kind="stable")
        if len(order) > limit:
            order = np.flatnonzero(total >= total[order[limit - 1]])
        names = list(self.texts(order))
        by_name = sorted(range(len(order)), key=names.__getitem__)
        order = order[np.array(by_name, np.int64)]
        return order[np.argsort(-total[order], kind="stable")][:limit]


@dataclass(frozen=True)
class _Named:
    """The names that are used, and the positions of their slashes."""

    code: Int64  # code of each name
    begin: Int64
    end: Int64
    slashes: Int64  # the positions of all slashes in the text
    low: Int64  # index into ``slashes`` of each name's first slash
    high: Int64  # index into ``slashes`` after its last slash

    @property
    def size(self) -> Int64:
        """The length of each name's scope."""
        last_slash = np.append(self.slashes, 0)[np.maximum(self.high - 1, 0)]
        return np.where(self.high > self.low, last_slash - self.begin, 0)


def _named(names: StringTable, text: bytes, name: Int32) -> _Named:
    present = np.flatnonzero(np.bincount(name))
    slashes = np.flatnonzero(np.frombuffer(text, np.uint8) == _SLASH)
    begin, end = names.offsets[present], names.offsets[present + 1]
    return _Named(present, begin, end, slashes, np.searchsorted(slashes, begin), np.searchsorted(slashes, end))


def own_scopes(names: StringTable, name: Int32) -> tuple[Int32, StringTable]:
    """Return ([name] the code of each name's direct scope, the direct scopes). Names without a scope have the scope "".

    ``name``: codes into ``names``. A name that is also a scope is in this scope: ``dense/MatMul`` if ``dense/MatMul/x`` exists.
    """
    text = bytes(names.data)
    named = _named(names, text, name)
    code, scopes = spans_in(names, named.begin, named.size)
    scope_of_same_name = codes_in(scopes, text, named.begin, named.end - named.begin)
    scope = np.zeros(max(len(names), 1), np.int32)
    scope[named.code] = np.where(scope_of_same_name >= 0, scope_of_same_name, code)
    return scope[name], scopes


def scopes_of(names: StringTable, name: Int32) -> Scopes:
    """Return the scopes of names and all ancestors of these scopes. ``name``: codes into ``names``."""
    text = bytes(names.data)
    named = _named(names, text, name)
    slashes, begin, size, low, high = named.slashes, named.begin, named.size, named.low, named.high
    hasher = Hasher.random()
    window = Window(text, 0, len(text))
    code, first = numbered(hasher.spans(window, begin, size))
    counts = np.where(size[first] > 0, (high - low)[first], 0)  # number of slashes in each scope and after it
    inside, position = rows_of_groups(counts)
    offset = begin[first][inside]
    ends = slashes[low[first][inside] + position]
    not_empty = ends > offset  # a name that begins with a slash has no scope with an empty name
    inside, offset, ends = inside[not_empty], offset[not_empty], ends[not_empty]
    key, first_pair = numbered(hasher.spans(window, offset, ends - offset))
    scope = np.zeros(max(len(names), 1), np.int32)
    scope[named.code] = code
    return Scopes(scope[name], len(first), inside, key.astype(np.int64), text, offset[first_pair], (ends - offset)[first_pair])
