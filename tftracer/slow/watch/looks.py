"""What looks at the stacks of all threads, at single moments, tell of a span of time.

A look is a sample of py-spy's (windows.py, outside.py) or of the training's own (inside.py). Each stands for the time that is
nearer to it than to any other look in the span, but not for all of a span that it saw the edge of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

#: The outermost frame first: (file, line, function).
Stack = tuple[tuple[str, int, str], ...]

MAX_STACKS, MAX_FRAMES = 60, 160
#: TensorFlow calls Python functions (py_function, numpy_function, generators of tf.data) from this file.
PYTHON_FUNCTIONS = "tensorflow/python/ops/script_ops.py"
#: A look stands for at most this part of a span before it, and after it: the one at its middle tells what took half of it.
REACH = 0.25
#: A look of the process at itself comes so soon after it got Python's lock.
SOON_NS = 30_000_000


class Look(NamedTuple):
    """The stacks of threads at one moment.

    ``unchanged``: threads of which py-spy's record tells no change. They may have ended, or could not be read.
    """

    at_ns: int
    stacks: dict[int, Stack]
    unchanged: frozenset[int] = frozenset()
    is_of_all: bool = True  # whether a thread that it does not have was not there


def shares(looks: Iterable[Look], thread: int, start_ns: int, end_ns: int) -> dict[str, Any]:
    """The stacks of a thread and of the others within a span, with their seconds and how often they were seen: the most first."""
    within = sorted((look for look in looks if start_ns <= look.at_ns <= end_ns), key=lambda look: look.at_ns)
    kept = _without_stale(within)
    seen = [(look.at_ns, stacks) for look, stacks in zip(within, kept) if thread in stacks]
    complete = [look.at_ns for look, stacks in zip(within, kept) if look.is_of_all or _has_all_functions(look, stacks)]
    seconds: Counter[Stack] = Counter()
    others: Counter[tuple[int, Stack]] = Counter()
    times: Counter[tuple[int, Stack]] = Counter()
    for (_, stacks), length in zip(seen, _lengths([at for at, _ in seen], start_ns, end_ns)):
        for owner, stack in stacks.items():
            times[owner, stack] += 1
            if owner == thread:
                seconds[stack] += length
            else:
                others[owner, stack] += length
    return {
        "stacks": [[stack, length / 1e9, times[thread, stack]] for stack, length in seconds.most_common(MAX_STACKS)],
        "others": [[*of, length / 1e9, times[of]] for of, length in others.most_common(MAX_STACKS)],
        "samples": len(seen),
        "longest_unseen_s": _longest([start_ns, *complete, end_ns]) / 1e9,
    }


def without_biased(
    inside: Iterable[Look], outside: Sequence[Look], thread: int, late: Sequence[tuple[int, int, bool]]
) -> list[Look]:
    """Leave out the looks of the process at itself that came when Python's lock was let go after a while (``late``), and show the
    thread in a function that it had not called before: it lets the lock go there, and did something else meanwhile."""
    kept = []
    for look in inside:
        wait = next(((since, until) for since, until, _ in late if since <= look.at_ns <= until + SOON_NS), None)
        stack = look.stacks.get(thread)
        before = [
            other.stacks[thread] for other in outside if wait and wait[0] <= other.at_ns <= wait[1] and thread in other.stacks
        ]
        if stack is None or not before or any(_is_in(stack, other) for other in before):
            kept.append(look)
    return kept


def _is_in(stack: Stack, other: Stack) -> bool:
    """Whether a thread with the other stack is in all of these functions, whatever line of the innermost it is at."""
    depth = len(stack) - 1
    return stack[:-1] == other[:depth] and len(other) > depth and stack[depth][::2] == other[depth][::2]


def is_within(at: int, spans: list[tuple[int, int]]) -> bool:
    """Whether a moment lies in one of the spans, whose begins are in order, and their ends, too."""
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle][1] <= at:
            low = middle + 1
        else:
            high = middle
    return low < len(spans) and spans[low][0] <= at


def _has_all_functions(look: Look, kept: dict[int, Stack]) -> bool:
    """Whether a record told all Python functions that TensorFlow had called: no stack of one is left out as stale."""
    stale = (stack for owner, stack in look.stacks.items() if owner not in kept)
    return not any(file.endswith(PYTHON_FUNCTIONS) for stack in stale for file, *_ in stack)


def _longest(at: list[int]) -> int:
    """The longest time between two moments."""
    return max(until - since for since, until in zip(at, at[1:]))


def _lengths(at: list[int], start_ns: int, end_ns: int) -> list[int]:
    """What part of the span each look stands for, in nanoseconds."""
    edges = [start_ns, *((here + following) // 2 for here, following in zip(at, at[1:])), end_ns]
    reach = int(REACH * (end_ns - start_ns))
    return [min(until, here + reach) - max(since, here - reach) for here, since, until in zip(at, edges, edges[1:])]


def _without_stale(looks: list[Look]) -> list[dict[int, Stack]]:
    """The stacks that were surely there: those that a record told anew within the span, and those that did not change until a
    later look at all threads still found them. A record goes on with the old stack of a thread that has ended, and of one that
    py-spy could not read just then."""
    kept: list[dict[int, Stack]] = []
    changed: set[int] = set()
    for look in looks:
        changed |= look.stacks.keys() - look.unchanged
        kept.append({owner: stack for owner, stack in look.stacks.items() if owner in changed})
    later: dict[int, Stack] | None = None
    for index in range(len(looks) - 1, -1, -1):
        look = looks[index]
        if look.is_of_all:
            later = look.stacks
        elif later is not None:
            kept[index] = {
                owner: stack for owner, stack in look.stacks.items() if owner not in look.unchanged or stack == later.get(owner)
            }
    return kept
