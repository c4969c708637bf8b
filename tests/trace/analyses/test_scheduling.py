"""Scheduling delays: which count, the longest first, and a histogram that holds them all."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from traces import STREAM_ALL, N, make_trace

from tftracer.trace.analyses import scheduling as scheduling_
from tftracer.trace.analyses.scheduling import BOUNDS, scheduling
from tftracer.trace.model import NodeKind


def test_delays_by_hand() -> None:
    nodes = [
        N("a", "A", 5_000, 9_000, scheduled=1_000),
        N("b", "B", 9_000, 9_500, scheduled=8_500),
        N("c", "C", 9_000, 9_500),
        N("d", "D", 9_000, 9_500, STREAM_ALL, NodeKind.REPEAT, scheduled=0),
    ]
    answer = scheduling(make_trace(nodes), [])
    assert [(r["name"], r["delay_ns"], r["duration_ns"]) for r in answer["rows"]] == [("a", 4_000, 4_000), ("b", 500, 500)]
    assert (answer["known"], answer["total_ns"], answer["p50_ns"], answer["max_ns"]) == (2, 4_500, 2_250, 4_000)
    filled = {bound: n for bound, n in zip(answer["histogram_ns"], answer["histogram_count"]) if n}
    assert filled == {1_000: 1, 5_000: 1}


@given(st.lists(st.integers(0, 10**12), max_size=30))
def test_the_histogram_holds_every_delay(delays: list[int]) -> None:
    answer = scheduling(make_trace([N("a", "A", d, d + 1, scheduled=0) for d in delays]), [])
    assert sum(answer["histogram_count"]) == answer["known"] == len(delays)
    for at, bound in enumerate(BOUNDS[:-1]):
        below = BOUNDS[at - 1] if at else -1
        assert answer["histogram_count"][at] == sum(below < d <= bound for d in delays)


def test_without_scheduling_times_delays_are_unknown_not_0() -> None:
    answer = scheduling(make_trace([N("a", "A", 0, 1)]), [])
    assert (answer["known"], answer["rows"]) == (0, [])
    assert [answer[key] for key in ("total_ns", "p50_ns", "p95_ns", "max_ns")] == [None] * 4


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 10))
def test_the_longest_are_those_of_a_whole_sort(delays: list[int], rows: int) -> None:
    with mock.patch.object(scheduling_, "MAX_ROWS", rows):
        delayed = scheduling(make_trace([N("a", "A", d, d + 1, scheduled=0) for d in delays]), [])["rows"]
    expected = sorted(range(len(delays)), key=lambda i: (-delays[i], i))[:rows]
    assert [row["node"] for row in delayed] == expected
