"""The best of several repetitions: what else the machine does can only slow a measurement down."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

_GROWTH = 8.0  # of a product's work where its size doubles


def best_rate(work: Callable[[], object], amount: float, seconds: float) -> float:
    """Amount a second of the fastest repetition, of those that begin within ``seconds``; the first, which warms up, aside."""
    work()
    best, end = 0.0, perf_counter() + seconds
    while True:
        start = perf_counter()
        work()
        now = perf_counter()
        best = max(best, amount / max(now - start, 1e-9))
        if now >= end:
            return best


def best_of_sizes(work_of: Callable[[int], tuple[Callable[[], object], float]], sizes: tuple[int, ...], seconds: float) -> float:
    """The best rate over sizes that double, as long as one repetition stays within ``seconds``.

    work_of: (what to repeat, its amount) of a size.
    """
    best = 0.0
    for size in sizes:
        work, amount = work_of(size)
        rate = best_rate(work, amount, seconds / len(sizes))
        best = max(best, rate)
        if amount * _GROWTH / rate > seconds:
            break
    return best
