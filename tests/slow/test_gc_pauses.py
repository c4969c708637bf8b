"""Garbage collections, as Python itself tells them."""

from __future__ import annotations

import gc
import operator
import threading
import time
from _thread import interrupt_main
from collections.abc import Iterator
from functools import partial
from time import perf_counter_ns
from typing import Any

import pytest

from tftracer.slow.watch.gc_pauses import SOON_NS, GcPauses


@pytest.fixture(autouse=True)
def no_other_callbacks() -> Iterator[None]:
    """Set aside those of other packages, as Hypothesis's: in Python, and for the rest of the process."""
    others = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others


@pytest.fixture
def pauses() -> Iterator[GcPauses]:
    installed = GcPauses({})
    installed.install()
    yield installed
    installed.remove()


def garbage() -> list[object]:
    """So much that a collection takes longer than the shortest that is kept."""
    return [(number, [number]) for number in range(100_000)]


def test_a_collection_is_timed_with_its_thread(pauses: GcPauses) -> None:
    kept = garbage()
    for _ in range(50):  # on a busy machine, a collection that mostly has no CPU is left out
        start = perf_counter_ns()
        gc.collect()
        end = perf_counter_ns()
        pauses.settle()
        own = [pause for pause in pauses.recent if pause.generation == 2 and pause.start_ns >= start]
        if own:
            break
    pause = own[0]
    assert start <= pause.start_ns < pause.end_ns <= end and pause.thread == threading.get_ident()
    (seconds,) = pauses.by_thread(start, end).values()
    assert 0 < seconds <= (end - start) * 1e-9 and list(pauses.by_thread(start, end)) == [pause.thread]
    assert len(kept) == 100_000


def test_it_lies_inside_or_between_the_steps_of_its_thread() -> None:
    me = threading.get_ident()
    under_way = {me: 1}
    pauses = GcPauses(under_way)
    pauses.install()
    try:
        kept = garbage()
        gc.collect()
        pauses.settle()
        assert pauses.recent and not pauses.between_ns
        under_way[me] = -1
        gc.collect()
        pauses.settle()
        last = pauses.recent[-1]
        assert pauses.between_ns[me] >= last.end_ns - last.start_ns > 0
        assert kept
    finally:
        pauses.remove()


def test_part_of_a_collection_counts_for_part_of_the_time(pauses: GcPauses) -> None:
    kept = garbage()
    gc.collect()
    pauses.settle()
    pause = pauses.recent[-1]
    middle = (pause.start_ns + pause.end_ns) // 2
    ends = (pause.end_ns, middle)
    whole, half = (sum(pauses.by_thread(pause.start_ns, end).values()) for end in ends)
    assert half == pytest.approx(whole / 2, rel=0.01) and kept


def test_ctrl_c_during_a_collection_ends_the_script(pauses: GcPauses) -> None:
    """A line of Python in a callback would hear of it first, and Python drops what a callback raises."""
    signals = map(operator.not_, iter(interrupt_main, "never"))  # in C, as a signal comes at any time
    during: Any = partial(max, key=partial(next, signals))
    gc.disable()
    gc.callbacks.insert(0, during)
    try:
        with pytest.raises(KeyboardInterrupt):
            gc.collect()
    finally:
        gc.callbacks.remove(during)
        gc.enable()
    pauses.settle()
    assert [pause.generation for pause in pauses.recent][-1:] == [2]


def test_it_may_begin_within_a_collection() -> None:
    pauses, kept = GcPauses({}), garbage()

    def begin(phase: str, info: dict[str, Any]) -> None:
        gc.callbacks.remove(begin)
        pauses.install()

    gc.callbacks.append(begin)
    gc.collect()
    pauses.settle()
    assert not pauses.recent
    gc.collect()
    pauses.settle()
    assert [pause.generation for pause in pauses.recent] == [2]
    assert kept
    pauses.remove()
    assert not gc.callbacks


def test_time_in_which_a_callback_of_the_script_gave_the_lock_away_is_no_collection() -> None:
    def wait(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop":
            time.sleep(0.1)  # gives Python's lock away, as any Python code in such a callback may

    gc.callbacks.append(wait)  # before the tracer's, so its time lies within the collection
    pauses = GcPauses({})
    pauses.install()
    try:
        gc.collect(0)
        pauses.settle()
        assert not pauses.recent
    finally:
        pauses.remove()


def test_the_pauses_that_are_kept_are_bounded(pauses: GcPauses) -> None:
    assert pauses.recent.maxlen and pauses.unreported.maxlen


def test_a_look_soon_after_a_long_collection_is_too_soon(pauses: GcPauses) -> None:
    kept = [[number] for number in range(1_000_000)]
    while not pauses.has_just_ended(perf_counter_ns()):  # the machine may be busy
        gc.collect()
    assert kept and not pauses.has_just_ended(perf_counter_ns() + SOON_NS)
