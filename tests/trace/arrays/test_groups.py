"""Columns whose rows are in groups, against loops over all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tftracer.trace.arrays.groups import largest_first, largest_in_groups, last_in_groups, rows_of_groups

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.integers(-3, 3)), max_size=30)


@given(ROWS)
def test_the_largest_in_each_group(rows: list[tuple[int, int, int]]) -> None:
    group, amount, then = np.array(rows, np.int64).reshape(-1, 3).T
    for times in (1, 0.5):
        found = largest_in_groups(group, amount.astype(np.float64) * times, 5)
        want = [max((a, row) for row, (g, a, _) in enumerate(rows) if g == each) if each in group else None for each in range(5)]
        assert found.tolist() == [-1 if best is None else best[1] for best in want]
    found = largest_in_groups(group, amount, 5, then)
    for each in range(5):
        best = max(((a, t, row) for row, (g, a, t) in enumerate(rows) if g == each), default=(0, 0, -1))
        assert found[each] == best[2]


@given(ROWS, st.integers(0, 40))
def test_the_largest_first(rows: list[tuple[int, int, int]], limit: int) -> None:
    amount = np.array([row[1] for row in rows], np.int64)
    want = sorted(range(len(rows)), key=lambda row: (-amount[row], row))[:limit]
    assert largest_first(amount, limit).tolist() == want
    assert largest_first(amount.astype(np.float64) * 0.5, limit).tolist() == want


@given(ROWS, st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 4)), max_size=9))
def test_the_last_row_of_a_group_up_to_a_moment(rows: list[tuple[int, int, int]], wanted: list[tuple[int, int]]) -> None:
    """Also of groups and times whose product exceeds int64."""
    group, time, _ = np.array(rows, np.int64).reshape(-1, 3).T
    groups, moments = np.array(wanted, np.int64).reshape(-1, 2).T
    best = [
        max(((t, row) for row, (g, t, _) in enumerate(rows) if g == each and t <= moment), default=(0, -1))[1]
        for each, moment in wanted
    ]
    assert last_in_groups(group, time, groups, moments).tolist() == best
    assert last_in_groups(group << 20, time << 59, groups << 20, moments << 59).tolist() == best
    assert last_in_groups(group.astype(np.int32), time, groups.astype(np.int32), moments).tolist() == best


@given(st.lists(st.integers(0, 3)))
def test_the_rows_of_groups(sizes: list[int]) -> None:
    rows = [(group, position) for group, size in enumerate(sizes) for position in range(size)]
    assert list(zip(*(column.tolist() for column in rows_of_groups(np.array(sizes, np.int64))))) == rows
