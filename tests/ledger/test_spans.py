"""Overlapping spans of time, each moment given to one of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tftracer.ledger.add_up_activities import paint
from tftracer.trace.arrays.intervals import Cover

SPANS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 40), st.integers(0, 40)).map(lambda t: (t[0], t[1], max(t[1], t[2])))
)


def array(spans: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array(spans, np.int64).reshape(-1, 3)


def by_moments(spans: list[tuple[int, int, int]], since: int, until: int) -> dict[int, int]:
    """Rank -> the moments of which no span has a lower rank: the definition, moment by moment."""
    found: dict[int, int] = {}
    for moment in range(since, until):
        ranks = [rank for rank, start, end in spans if start <= moment < end]
        if ranks:
            found[min(ranks)] = found.get(min(ranks), 0) + 1
    return found


@given(SPANS, st.integers(0, 20), st.integers(20, 45))
def test_each_moment_counts_once_for_the_first_rank(spans: list[tuple[int, int, int]], since: int, until: int) -> None:
    painted = paint(array(spans), since, until, 3)
    sums: dict[int, int] = {}
    for (rank, _, _), own in zip(spans, painted.own_ns.tolist()):
        assert own >= 0
        if own:
            sums[rank] = sums.get(rank, 0) + own
    assert sums == by_moments(spans, since, until)
    assert painted.covered.length == sum(sums.values())
    above = [span for span in spans if span[0] < 3]
    assert painted.above.length == sum(by_moments(above, since, until).values())


@given(SPANS)
def test_a_union_is_disjoint_and_in_order_and_its_gaps_are_the_rest(spans: list[tuple[int, int, int]]) -> None:
    covered = Cover.of(array(spans)[:, 1], array(spans)[:, 2])
    edges = np.stack([covered.start, covered.end], axis=1).ravel().tolist()
    assert edges == sorted(set(edges))
    rest = Cover.span(0, 50) - covered
    assert covered.length + rest.length == 50
    before = covered.within(np.zeros(3, np.int64), np.array([0, 17, 50]))
    assert before.tolist() == [sum(any(s <= m < e for _, s, e in spans) for m in range(until)) for until in (0, 17, 50)]
