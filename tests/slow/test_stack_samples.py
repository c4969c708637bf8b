"""What samples of stacks tell of a span of time."""

from __future__ import annotations

import pytest

from tftracer.slow.watch.stack_samples import Stack, StackSample, shares, without_biased

MS = 1_000_000
THREAD, OTHER = 7, 8
A: Stack = (("train.py", 1, "main"), ("train.py", 10, "a"))
B: Stack = (("train.py", 1, "main"), ("train.py", 20, "b"))


def seconds(samples: list[StackSample], start_ms: int = 0, end_ms: int = 400) -> dict[Stack, float]:
    return {stack: length for stack, length, _ in shares(samples, THREAD, start_ms * MS, end_ms * MS)["stacks"]}


def spied(at_ms: int, stacks: dict[int, Stack], *unchanged: int) -> StackSample:
    return StackSample(at_ms * MS, stacks, frozenset(unchanged), is_of_all=False)


def test_each_sample_stands_for_the_time_nearest_to_it() -> None:
    samples = [
        StackSample(50 * MS, {THREAD: A}),
        StackSample(150 * MS, {THREAD: A}),
        StackSample(250 * MS, {THREAD: B}),
        StackSample(350 * MS, {THREAD: B}),
    ]
    assert seconds(samples) == {A: 0.2, B: 0.2}


def test_a_single_sample_stands_for_half_of_its_span_at_most() -> None:
    assert seconds([StackSample(200 * MS, {THREAD: A})]) == {A: 0.2}
    assert seconds([StackSample(1 * MS, {THREAD: A})]) == {A: 0.101}


def test_a_thread_that_a_record_tells_no_change_of_counts_only_if_a_sample_of_all_threads_finds_it() -> None:
    stale = spied(100, {THREAD: A, OTHER: B}, OTHER)
    gone = shares([stale, StackSample(300 * MS, {THREAD: A})], THREAD, 0, 400 * MS)
    assert gone["others"] == []
    there = shares([stale, StackSample(300 * MS, {THREAD: A, OTHER: B})], THREAD, 0, 400 * MS)
    assert [other[:2] for other in there["others"]] == [[OTHER, B]]


def test_one_sample_represents_all_of_a_call_that_keeps_python_s_lock() -> None:
    """Of ``sorted`` or a collection of 0.3 s one sample was too few to name its line."""
    once = [StackSample(300 * MS, {THREAD: A})]
    kept = shares(once, THREAD, 0, 400 * MS, [(80 * MS, 400 * MS)])["stacks"]
    assert [(stack, seconds) for stack, seconds, _ in kept] == [(A, pytest.approx(0.32))]
    elsewhere = shares(once, THREAD, 0, 400 * MS, [(0, 250 * MS)])["stacks"]
    assert elsewhere == shares(once, THREAD, 0, 400 * MS)["stacks"] and elsewhere[0][1] == pytest.approx(0.2)
    both = [StackSample(100 * MS, {THREAD: B}), *once]  # it called something else meanwhile
    assert shares(both, THREAD, 0, 400 * MS, [(80 * MS, 400 * MS)]) == shares(both, THREAD, 0, 400 * MS)


def test_how_often_a_stack_was_seen_is_counted_not_computed_from_its_seconds() -> None:
    """A generator of tf.data that was seen but once works ahead for later steps."""
    samples = [StackSample(at * MS, {THREAD: A, OTHER: B}) for at in (100, 200, 230)]
    found = shares(samples, THREAD, 0, 300 * MS)
    assert [times for *_, times in found["stacks"] + found["others"]] == [3, 3]


def test_a_sample_by_the_process_itself_right_after_a_wait_for_the_lock_tells_nothing_of_the_wait() -> None:
    outer, inner = ("train.py", 5, "collect"), ("train.py", 3, "__init__")
    after = StackSample(705 * MS, {1: (outer, inner)})
    samples = [StackSample(100 * MS, {1: (outer, inner)}), after, StackSample(800 * MS, {1: (outer, inner)})]
    late, collecting = [(200 * MS, 700 * MS, True)], StackSample(300 * MS, {1: (outer,)})
    assert without_biased(samples, [collecting], 1, late) == [samples[0], samples[2]]
    held_there = collecting._replace(stacks={1: (outer, ("train.py", 4, "__init__"), ("re.py", 9, "match"))})
    assert without_biased(samples, [held_there], 1, late) == samples
    assert without_biased(samples, [collecting], 1, []) == without_biased(samples, [], 1, late) == samples
