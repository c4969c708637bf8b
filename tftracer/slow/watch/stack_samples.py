"""Estimates the stacks within a span of time from samples of all threads' stacks at single moments.

A sample is taken by py-spy (py_spy_windows.py, outside_process.py) or by the training itself (stacks_from_inside.py). It
represents the time that is nearer to it than to any other sample in the span, up to a limit: a sample at the edge does not
represent the whole span. But if a thread holds Python's lock for longer than Python code can, it is in one call of C code. Then
one sample represents the whole time of the call.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

#: (file, line, function) of each frame, the outermost frame first.
Stack = tuple[tuple[str, int, str], ...]

#: Maximum number of stacks in an answer, and of frames of a stack: the innermost frames.
MAX_STACKS, MAX_FRAMES = 60, 160
#: A sample represents at most this share of the span before it, and the same share after it.
REACH = 0.25
#: A sample from inside is taken at most this time after the sampling thread got Python's lock.
SOON_NS = 30_000_000


class StackSample(NamedTuple):
    """The stacks of threads at one moment.

    ``unchanged``: threads whose stacks did not change in py-spy's record. They may have ended, or could not be read.
    """

    at_ns: int
    stacks: dict[int, Stack]
    unchanged: frozenset[int] = frozenset()
    is_of_all: bool = True  # whether it has all threads that existed


def shares(
    samples: Iterable[StackSample], thread: int, start_ns: int, end_ns: int, held: Sequence[tuple[int, int]] = ()
) -> dict[str, Any]:
    """Return the stacks of a thread and of the others within a span, with their seconds and counts, by descending time.

    The result also has the number of samples of the thread, and the longest time without a sample of all threads.
    ``held``: (from, until) of the times in which the thread held Python's lock.
    """
    within = sorted((sample for sample in samples if start_ns <= sample.at_ns <= end_ns), key=lambda sample: sample.at_ns)
    current = current_stacks(within)
    seen = [(sample.at_ns, stacks) for sample, stacks in zip(within, current) if thread in stacks]
    seconds: Counter[Stack] = Counter()
    other_seconds: Counter[tuple[int, Stack]] = Counter()
    counts: Counter[tuple[int, Stack]] = Counter()
    in_one_call = [(since, until) for since, until in held if _is_one_call(seen, thread, since, until)]
    for (_, stacks), length in zip(seen, _lengths([at for at, _ in seen], start_ns, end_ns, in_one_call)):
        for owner, stack in stacks.items():
            counts[owner, stack] += 1
            if owner == thread:
                seconds[stack] += length
            else:
                other_seconds[owner, stack] += length
    return {
        "stacks": [[stack, length / 1e9, counts[thread, stack]] for stack, length in seconds.most_common(MAX_STACKS)],
        "others": [[*pair, length / 1e9, counts[pair]] for pair, length in other_seconds.most_common(MAX_STACKS)],
        "samples": len(seen),
    }


def without_biased(
    inside: Iterable[StackSample], outside: Sequence[StackSample], thread: int, late: Sequence[tuple[int, int, bool]]
) -> list[StackSample]:
    """Return the samples from inside, except biased ones.

    A sample is biased if it was taken when Python's lock was released after a long time (``late``), and shows the thread in a
    function that samples from outside do not show in this time: the thread released the lock there, but was elsewhere before.
    """
    unbiased = []
    for sample in inside:
        wait = next(((since, until) for since, until, _ in late if since <= sample.at_ns <= until + SOON_NS), None)
        stack = sample.stacks.get(thread)
        before = [
            other.stacks[thread] for other in outside if wait and wait[0] <= other.at_ns <= wait[1] and thread in other.stacks
        ]
        if stack is None or not before or any(_is_start_of(stack, other) for other in before):
            unbiased.append(sample)
    return unbiased


def _is_start_of(stack: Stack, other: Stack) -> bool:
    """Return whether ``other`` begins with all functions of ``stack``; the line in the innermost function may differ."""
    depth = len(stack) - 1
    return stack[:-1] == other[:depth] and len(other) > depth and stack[depth][::2] == other[depth][::2]


def is_within(at: int, spans: list[tuple[int, int]]) -> bool:
    """Return whether a moment lies in one of the spans. Both the starts and the ends of the spans are sorted."""
    latest = bisect_right(spans, (at, math.inf)) - 1
    return latest >= 0 and spans[latest][1] > at


def _is_one_call(seen: list[tuple[int, dict[int, Stack]]], thread: int, since: int, until: int) -> bool:
    """Return whether all samples of a thread within a time show the same functions."""
    return len({tuple(frame[::2] for frame in stacks[thread]) for at, stacks in seen if since <= at <= until}) == 1


def _lengths(at: list[int], start_ns: int, end_ns: int, in_one_call: Sequence[tuple[int, int]]) -> list[int]:
    """Return the time that each sample represents, in nanoseconds."""
    edges = [start_ns, *((moment + following) // 2 for moment, following in zip(at, at[1:])), end_ns]
    reach = int(REACH * (end_ns - start_ns))
    lengths = []
    for moment, since, until in zip(at, edges, edges[1:]):
        call_start, call_end = next((call for call in in_one_call if call[0] <= moment <= call[1]), (moment, moment))
        lengths.append(min(until, max(call_end, moment + reach)) - max(since, min(call_start, moment - reach)))
    return lengths


def current_stacks(samples: list[StackSample]) -> list[dict[int, Stack]]:
    """Return, for each sample, those of its stacks that are surely current.

    A stack is current if it changed within the span, or if a later sample of all threads still shows it. py-spy's record repeats
    the old stack of a thread that has ended or could not be read.
    """
    current: list[dict[int, Stack]] = []
    changed: set[int] = set()
    for sample in samples:
        changed |= sample.stacks.keys() - sample.unchanged
        current.append({owner: stack for owner, stack in sample.stacks.items() if owner in changed})
    later: dict[int, Stack] | None = None
    for index in range(len(samples) - 1, -1, -1):
        sample = samples[index]
        if sample.is_of_all:
            later = sample.stacks
        elif later is not None:
            current[index] = {
                owner: stack
                for owner, stack in sample.stacks.items()
                if owner not in sample.unchanged or stack == later.get(owner)
            }
    return current
