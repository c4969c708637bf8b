"""The largest values of a column, in total and per group of rows, without sorting all rows, which would be slow."""

from __future__ import annotations

import numpy as np

from tftracer.trace.arrays.types import Float64, Int32, Int64


def largest_in_groups(group: Int64 | Int32, amount: Int64 | Float64, groups: int, tie_breaker: Int64 | None = None) -> Int64:
    """Return [groups] the row with the largest amount in each group, -1 for an empty group.

    Of rows with equal amounts, the row with the largest ``tie_breaker`` counts; of equal rows, the last one. ``group``: [rows] 0
    to groups - 1. ``amount``, ``tie_breaker``: [rows] no NaN.
    """
    rows = np.flatnonzero(_is_largest(group, amount, groups))
    if tie_breaker is not None:
        rows = rows[_is_largest(group[rows], tie_breaker[rows], groups)]
    largest = np.full(groups, -1, np.int64)
    largest[group[rows]] = rows  # if an index occurs several times, the last write stays
    return largest


def _is_largest(group: Int64 | Int32, amount: Int64 | Float64, groups: int) -> np.ndarray:
    best = np.full(groups, amount.min(initial=0), amount.dtype)
    np.maximum.at(best, group, amount)
    return np.asarray(amount == best[group])


def largest_first(amount: Int64 | Float64, limit: int) -> Int64:
    """Return the rows with the ``limit`` largest amounts, largest first; equal amounts in the order of rows. No NaN."""
    rows = np.arange(len(amount))
    if len(amount) > limit > 0:
        rows = np.flatnonzero(amount >= np.partition(amount, len(amount) - limit)[len(amount) - limit])
    order = np.argsort(-amount[rows].astype(np.float64), kind="stable")
    return rows[order][:limit]
