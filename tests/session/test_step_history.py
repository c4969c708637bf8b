"""Step times in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np

from tftracer.session.steps.history import LEVEL, RECENT, History


def filled(count: int) -> History:
    """In blocks of 1 to 97 steps."""
    history, step, size = History(), 1, 1
    while step <= count:
        numbers = np.arange(step, min(step + size, count + 1), dtype=np.float64)
        traced = np.flatnonzero(numbers % 1000 == 0).tolist()
        history.add(step, numbers, 0.001 * (numbers % 7 + 1), traced)
        step, size = step + size, size % 97 + 1
    return history


def test_recent_steps_one_by_one_older_ones_aggregated() -> None:
    count = 50_000
    history = filled(count)
    step, counts, start_at, mean_s, min_s, max_s = history.entries().T
    assert counts.sum() == count
    assert len(step) < RECENT + 8 * LEVEL
    assert (counts[-RECENT + 1 :] == 1).all()
    assert (step == np.cumsum([1, *counts[:-1]])).all() and (start_at == step).all()
    assert np.isclose((mean_s * counts).sum(), sum(0.001 * (step % 7 + 1) for step in range(1, count + 1)))
    assert min_s.min() == 0.001 and max_s.max() == 0.007
    assert list(history.traced) == list(range(1000, count + 1, 1000))
    assert history.last_step == count


def test_blocks_do_not_matter_and_a_history_read_back_goes_on() -> None:
    whole, parts = History(), filled(9_000)
    whole.add(1, np.arange(1.0, 9_001.0), 0.001 * (np.arange(1.0, 9_001.0) % 7 + 1))
    assert (whole.entries() == parts.entries()).all()
    again = History()
    again.add_entries(whole.entries())
    for history in (whole, again):
        history.add(9_001, np.arange(9_001.0, 12_000.0), np.ones(2_999))
    assert (again.entries() == whole.entries()).all()


def test_large_blocks_are_not_kept_for_the_few_steps_of_them_that_are() -> None:
    history = History()
    tracemalloc.start()
    for first in (1, 60_001):
        history.add(first, np.arange(60_000.0), np.ones(60_000))
    bytes_held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 4096 <= len(history.entries()) < 10_000
    assert bytes_held < 2 * history.entries().nbytes


def test_a_copy_is_independent() -> None:
    history = filled(10)
    copied = history.copy()
    history.add(11, np.array([11.0]), np.array([1.0]))
    assert copied.last_step == 10 and len(copied.entries()) == 10
