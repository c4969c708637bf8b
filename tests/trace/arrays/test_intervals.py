"""Intervals: against sets of whole moments, on random ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.trace.arrays.intervals import Cover, batches, distinct, fair_shares, is_in

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=12)


def cover(pairs: list[tuple[int, int]]) -> Cover:
    return Cover.of(np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.int64))


def moments(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for start, end in pairs for t in range(start, end)}


def whole(value: Cover) -> set[int]:
    """The moments of a cover, after a check that it is disjoint, in order and without touching intervals."""
    assert (value.end > value.start).all()
    assert (value.start[1:] > value.end[:-1]).all()
    return moments(list(zip(value.start.tolist(), value.end.tolist())))


NUMBERS = st.lists(st.integers(-5, 40) | st.sampled_from([-(1 << 62), 1 << 62]), max_size=20)


@given(NUMBERS, NUMBERS)
def test_distinct_and_is_in_equal_those_of_numpy(values: list[int], wanted: list[int]) -> None:
    column, among = np.array(values, np.int64), np.array(wanted, np.int64)
    assert distinct(column).tolist() == sorted(set(values))
    assert is_in(column, among).tolist() == [value in wanted for value in values]
    assert is_in(column.reshape(-1, 1), wanted).shape == (len(values), 1)


@given(PAIRS, PAIRS)
def test_set_operations_equal_sets_of_moments(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = cover(a), cover(b)
    assert whole(left) == moments(a)
    assert left.length == len(moments(a))
    assert whole(left | right) == moments(a) | moments(b)
    assert whole(left & right) == moments(a) & moments(b)
    assert whole(left - right) == moments(a) - moments(b)


@given(PAIRS, PAIRS)
def test_within_and_contains(a: list[tuple[int, int]], queries: list[tuple[int, int]]) -> None:
    covered = moments(a)
    start, end = (np.array([q[i] for q in queries], np.int64) for i in (0, 1))
    assert cover(a).within(start, end).tolist() == [len(covered & set(range(*q))) for q in queries]
    assert cover(a).contains(start).tolist() == [q[0] in covered for q in queries]
    assert cover(a).contains_before(start).tolist() == [q[0] - 1 in covered for q in queries]


@given(PAIRS.filter(bool), st.data())
def test_fair_shares_equal_a_walk_over_the_moments(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    running = data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    expected, expected_alone = [0.0] * len(pairs), [0.0] * len(pairs)
    for t in moments(pairs):
        there = [i for i, (s, e) in enumerate(pairs) if s <= t < e]
        first = [i for i in there if running[i]]
        for i in first or there:
            (expected if first else expected_alone)[i] += 1 / len(first or there)
    start, end = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
    share, alone = fair_shares(start, end, np.array(running))
    assert share.tolist() == pytest.approx(expected)
    assert alone.tolist() == pytest.approx(expected_alone)
    assert share.sum() + alone.sum() == pytest.approx(cover(pairs).length)


def test_bites_cover_the_range_once() -> None:
    assert [i for batch in batches(10, 4) for i in batch] == list(range(10))
    assert list(batches(0)) == []
