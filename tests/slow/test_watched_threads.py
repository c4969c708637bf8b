"""Which names threads had at some moment: the number of a thread that ended goes to a later one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from time import perf_counter_ns
from types import SimpleNamespace

import pytest

from tftracer.slow.cause.frame_names import FrameNames
from tftracer.slow.watch.outside_process import name_at
from tftracer.slow.watch.stack_samples import StackSample
from tftracer.slow.watch.stack_source import span_of
from tftracer.slow.watch.watched_threads import WatchedThreads


@contextlib.contextmanager
def looked_up_before_and_after_it_began(name: str) -> Iterator[tuple[WatchedThreads, threading.Thread, int]]:
    """The threads, a new one of them, and a time before it began."""
    threads, over = WatchedThreads(), threading.Event()
    earlier = perf_counter_ns()
    threads.refresh([])
    thread = threading.Thread(target=over.wait, name=name)
    thread.start()
    try:
        threads.refresh([])
        threads.refresh([])
        yield threads, thread, earlier
    finally:
        over.set()
        thread.join()


def test_a_thread_that_began_later_names_nothing_before_it() -> None:
    with looked_up_before_and_after_it_began("spinner") as (threads, _, earlier):
        assert "spinner" not in threads.names_at(earlier).values()
        assert "spinner" in threads.names_at(perf_counter_ns()).values()
        assert threading.main_thread().name in threads.names_at(earlier).values()


def test_a_thread_of_the_tracer_is_none_before_it_began() -> None:
    """A judge read "Python's lock was held by a thread of tftracer": it was one of the script, whose ident was used again."""
    with looked_up_before_and_after_it_began("tftracer-trial") as (threads, thread, earlier):
        assert thread.ident not in threads.ours_at(earlier) and thread.ident in threads.ours_at(perf_counter_ns())


def test_a_thread_that_ended_has_no_name_if_a_new_one_has_its_ident(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge read "held by thread scanner", which had ended; the new thread that had its ident held the lock."""
    threads = WatchedThreads()
    threads.refresh([])
    name = threading.main_thread().name
    assert name in threads.names_at(perf_counter_ns()).values()
    reused = SimpleNamespace(ident=threading.main_thread().ident, native_id=1)
    monkeypatch.setattr(threading, "enumerate", lambda: [reused])
    assert name not in threads.names_at(perf_counter_ns()).values()


def test_a_holder_of_the_lock_has_the_name_of_the_dump_nearest_to_it() -> None:
    assert name_at([], 7, 50) == ("", False)
    dumps = [(StackSample(10, {}), {7: "serializer", 8: "reader"}), (StackSample(100, {}), {7: "spinner"})]
    moments = (7, 40), (7, 90), (8, 1000), (9, 10)
    assert [name_at(dumps, thread, at)[0] for thread, at in moments] == ["serializer", "spinner", "reader", ""]
    assert [name_at(dumps, 8, at)[1] for at in (200, 400_000_000)] == [True, False]


def test_the_tracers_own_threads_are_no_others_that_hold_the_lock() -> None:
    """The tracer has just asked for the reading: it holds the lock at that moment."""
    training, ours, other = 7, 8, 9
    raw = {"stacks": [], "others": [], "late": [], "holders": [], "lock_held_by": [0, training, ours, ours, other]}
    span = span_of(raw, 1_000_000, training, FrameNames(), {}, frozenset({ours}))
    assert span.other_holder_share == 0.2
