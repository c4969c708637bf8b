"""Garbage collections, as Python itself tells them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from time import perf_counter_ns

import pytest

from tftracer.slow.watch.gc_pauses import GcPauses


@pytest.fixture
def failures() -> list[BaseException]:
    return []


@pytest.fixture
def pauses(failures: list[BaseException]) -> Iterator[GcPauses]:
    installed = GcPauses({}, failures.append)
    installed.install()
    yield installed
    installed.remove()


def garbage() -> list[object]:
    """So much that a collection takes longer than the shortest that is kept."""
    return [(number, [number]) for number in range(100_000)]


def test_a_collection_is_timed_with_its_thread(pauses: GcPauses) -> None:
    kept = garbage()
    start = perf_counter_ns()
    gc.collect()
    end = perf_counter_ns()
    pause = next(pause for pause in pauses.recent if pause.generation == 2 and pause.start_ns >= start)
    assert start <= pause.start_ns < pause.end_ns <= end and pause.thread == threading.get_ident()
    assert 0 < pauses.seconds(None, start, end) <= (end - start) * 1e-9
    assert pauses.seconds(pause.thread + 1, start, end) == 0
    assert len(kept) == 100_000


def test_it_lies_inside_or_between_the_steps_of_its_thread() -> None:
    me = threading.get_ident()
    under_way = {me: 1}
    pauses = GcPauses(under_way, lambda error: None)
    pauses.install()
    try:
        kept = garbage()
        gc.collect()
        assert pauses.recent and not pauses.between_ns
        under_way[me] = -1
        gc.collect()
        last = pauses.recent[-1]
        assert pauses.between_ns[me] >= last.end_ns - last.start_ns > 0
        assert kept
    finally:
        pauses.remove()


def test_part_of_a_collection_counts_for_part_of_the_time(pauses: GcPauses) -> None:
    kept = garbage()
    gc.collect()
    pause = pauses.recent[-1]
    middle = (pause.start_ns + pause.end_ns) // 2
    whole, half = pauses.seconds(None, pause.start_ns, pause.end_ns), pauses.seconds(None, pause.start_ns, middle)
    assert half == pytest.approx(whole / 2, rel=0.01) and kept


def test_a_failure_ends_it_and_is_told(failures: list[BaseException]) -> None:
    class Broken(dict[int, int]):
        def get(self, *_: object) -> int:
            raise RuntimeError("broken")

    pauses = GcPauses(Broken(), failures.append)
    pauses.install()
    gc.collect()
    gc.collect()
    assert [str(error) for error in failures] == ["broken"]
    pauses.remove()


def test_the_pauses_that_are_kept_are_bounded(pauses: GcPauses) -> None:
    assert pauses.recent.maxlen and pauses.unreported.maxlen
