"""Columns whose rows are in groups: the largest and the latest row of each group, and the rows of groups of known sizes."""

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


def last_in_groups(group: Int64 | Int32, time: Int64, wanted: Int64 | Int32, moment: Int64) -> Int64:
    """Return [wanted] the row of each wanted group with the latest time that is not after the moment; -1 if there is none.

    Of rows with equal times, the last one. ``group``, ``time``: [rows]; ``moment``: [wanted].
    """
    if not len(time) or not len(moment):
        return np.full(len(moment), -1, np.int64)
    low = int(min(time.min(), moment.min()))
    width = int(max(time.max(), moment.max())) - low + 1
    if width * (int(max(group.max(), wanted.max())) + 2) < 1 << 63:
        time, moment = time - low, moment - low
    else:  # the product of groups and times would exceed int64: compare the ranks of times
        times = np.sort(time)
        width, time, moment = len(times) + 1, np.searchsorted(times, time, "right"), np.searchsorted(times, moment, "right")
    key = group.astype(np.int64) * width + time
    order = np.argsort(key, kind="stable")
    at = np.searchsorted(key[order], wanted.astype(np.int64) * width + moment, "right") - 1
    row = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (group[row] == wanted), row, -1)


def rows_of_groups(sizes: Int64) -> tuple[Int64, Int64]:
    """Return (group, position in the group) of each row of groups with these sizes."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
