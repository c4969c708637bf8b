"""Spans of time that overlap, each moment given to the first in a fixed order. Pure, in whole nanoseconds: nothing is lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Int64


class Painted(NamedTuple):
    own_ns: Int64  # [spans] the time that counts as this span's
    covered: Cover  # the moments that any span covers
    above: Cover  # the same of the spans whose rank is below ``rank``


def paint(spans: Int64, since_ns: int, until_ns: int, rank: int) -> Painted:
    """``spans``: [n, 3] rank, start, end. A moment counts for the lowest rank; among equals for the span that began first."""
    starts, ends = (np.clip(spans[:, column], since_ns, until_ns) for column in (1, 2))
    own = np.zeros(len(spans), np.int64)
    covered = above = Cover.empty()
    for level in np.unique(spans[:, 0]).tolist():
        rows = np.nonzero(spans[:, 0] == level)[0]
        rows = rows[np.argsort(starts[rows], kind="stable")]
        reach = np.maximum.accumulate(ends[rows])
        begin = np.maximum(starts[rows], np.concatenate([[since_ns], reach[:-1]]))
        end = np.maximum(ends[rows], begin)
        own[rows] = end - begin - covered.within(begin, end)
        covered |= Cover.of(starts[rows], ends[rows])
        if level < rank:
            above = covered
    return Painted(own, covered, above)
