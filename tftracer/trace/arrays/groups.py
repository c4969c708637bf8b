"""The largest of a column: over all of it, and in each group of its rows. No sort of all rows, which takes most of the time."""

from __future__ import annotations

import numpy as np

from tftracer.trace.arrays.types import Float64, Int32, Int64


def largest_in_groups(group: Int64 | Int32, amount: Int64 | Float64, groups: int, then: Int64 | None = None) -> Int64:
    """[groups] the row with the largest amount in each, -1 for none. Of equal ones that with the most of ``then``, then the last.

    group: [rows] 0 to groups - 1. amount, then: [rows] no NaN.
    """
    rows = np.flatnonzero(_is_largest(group, amount, groups))
    if then is not None:
        rows = rows[_is_largest(group[rows], then[rows], groups)]
    largest = np.full(groups, -1, np.int64)
    largest[group[rows]] = rows  # of several writes to one place the last stays
    return largest


def _is_largest(group: Int64 | Int32, amount: Int64 | Float64, groups: int) -> np.ndarray:
    best = np.full(groups, amount.min(initial=0), amount.dtype)
    np.maximum.at(best, group, amount)
    return np.asarray(amount == best[group])


def largest_first(amount: Int64 | Float64, most: int) -> Int64:
    """At most ``most`` rows, those with the largest amounts. The largest first, of equal ones the first first. No NaN."""
    rows = np.arange(len(amount))
    if len(amount) > most > 0:
        rows = np.flatnonzero(amount >= np.partition(amount, len(amount) - most)[len(amount) - most])
    order = np.argsort(-amount[rows].astype(np.float64), kind="stable")
    selected: Int64 = rows[order][:most]
    return selected
