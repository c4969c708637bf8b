"""Spans of time that overlap, each moment given to the first in a fixed order. Pure, in whole nanoseconds: nothing is lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_NONE: Ints = np.zeros((0, 2), np.int64)


class Painted(NamedTuple):
    own_ns: Ints  # [spans] the time that counts as this span's
    covered: Ints  # [n, 2] the moments that any span covers: disjoint, in order
    above: Ints  # [n, 2] the same of the spans whose rank is below ``rank``


def paint(spans: Ints, since_ns: int, until_ns: int, rank: int) -> Painted:
    """``spans``: [n, 3] rank, start, end. A moment counts for the lowest rank; among equals for the span that began first."""
    starts, ends = (np.clip(spans[:, column], since_ns, until_ns) for column in (1, 2))
    own = np.zeros(len(spans), np.int64)
    covered = above = _NONE
    for level in np.unique(spans[:, 0]).tolist():
        rows = np.nonzero(spans[:, 0] == level)[0]
        rows = rows[np.argsort(starts[rows], kind="stable")]
        reach = np.maximum.accumulate(ends[rows])
        begin = np.maximum(starts[rows], np.concatenate([[since_ns], reach[:-1]]))
        end = np.maximum(ends[rows], begin)
        own[rows] = end - begin - (within(covered, end) - within(covered, begin))
        covered = union(covered, np.stack([starts[rows], ends[rows]], axis=1))
        if level < rank:
            above = covered
    return Painted(own, covered, above)


def union(one: Ints, other: Ints) -> Ints:
    """[n, 2] Disjoint spans, in order, of all moments in either; empty ones are left out."""
    both = np.concatenate([one, other])
    both = both[both[:, 1] > both[:, 0]]
    both = both[np.argsort(both[:, 0], kind="stable")]
    if not len(both):
        return _NONE
    reach = np.maximum.accumulate(both[:, 1])
    begins = np.concatenate([[True], both[1:, 0] > reach[:-1]])
    lasts = np.append(np.nonzero(begins)[0][1:] - 1, len(both) - 1)
    return np.stack([both[begins, 0], reach[lasts]], axis=1)


def within(disjoint: Ints, at: Ints) -> Ints:
    """[at] How much of disjoint spans, in order, lies before each moment."""
    if not len(disjoint):
        return np.zeros_like(at)
    sums = np.concatenate([[0], np.cumsum(disjoint[:, 1] - disjoint[:, 0])])
    index = np.searchsorted(disjoint[:, 0], at, side="right")
    ends = disjoint[np.maximum(index - 1, 0), 1]
    beyond = np.where(index > 0, np.maximum(ends - at, 0), 0)
    passed: Ints = sums[index] - beyond
    return passed


def gaps(disjoint: Ints, since_ns: int, until_ns: int) -> Ints:
    """[n, 2] What disjoint spans, in order, leave of the time from ``since_ns`` to ``until_ns``."""
    starts = np.concatenate([[since_ns], disjoint[:, 1]])
    ends = np.concatenate([disjoint[:, 0], [until_ns]])
    return np.stack([starts, ends], axis=1)[ends > starts]
