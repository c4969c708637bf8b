"""Who takes whose place: against a stack of free places, worked one interval at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tftracer.trace.arrays.intervals import running_and_predecessors


def naive(intervals: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    running, before = [], []
    free: list[int] = []
    at_work: set[int] = set()
    for i, (start, _) in enumerate(intervals):
        ended = sorted((j for j in at_work if intervals[j][1] <= start), key=lambda j: (intervals[j][1], j))
        at_work.difference_update(ended)
        free.extend(ended)
        running.append(len(at_work))
        before.append(free.pop() if free else -1)
        at_work.add(i)
    return running, before


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=40))
def test_each_interval_takes_the_place_freed_last(spans: list[tuple[int, int]]) -> None:
    intervals = sorted(((start, start + length) for start, length in spans), key=lambda i: i[0])
    start, end = (np.array(column, np.int64) for column in zip(*intervals))
    running, before = running_and_predecessors(start, end)
    assert (running.tolist(), before.tolist()) == naive(intervals)
