"""Step times in bounded memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tftracer.session.history import LEVEL, RECENT, History, Sketch


def filled(count: int) -> History:
    history = History()
    for step in range(1, count + 1):
        history.add(step, float(step), 0.001 * (step % 7 + 1), traced=step % 1000 == 0)
    return history


def test_recent_steps_one_by_one_older_ones_aggregated() -> None:
    count = 50_000
    history = filled(count)
    entries = history.entries()
    assert sum(entry.steps for entry in entries) == count
    assert len(history) == len(entries) < RECENT + 8 * LEVEL
    assert all(entry.steps == 1 for entry in entries[-RECENT:])
    assert [entry.step for entry in entries] == list(np.cumsum([1, *(entry.steps for entry in entries[:-1])]))
    whole = sum(entry.mean_s * entry.steps for entry in entries)
    assert np.isclose(whole, sum(0.001 * (step % 7 + 1) for step in range(1, count + 1)))
    assert min(entry.min_s for entry in entries) == 0.001 and max(entry.max_s for entry in entries) == 0.007
    assert list(history.traced) == list(range(1000, count + 1, 1000))
    assert history.last_step == count


def test_a_copy_is_independent() -> None:
    history = filled(10)
    copied = history.copy()
    history.add(11, 11.0, 1.0)
    assert copied.last_step == 10 and len(copied) == 10


@given(st.lists(st.floats(1e-7, 1e4), min_size=1, max_size=300), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_percentiles_are_right_to_two_percent(durations: list[float], share: float) -> None:
    sketch = Sketch()
    for duration in durations:
        sketch.add(duration)
    found = sketch.percentile(share)
    exact = float(np.quantile(durations, share, method="lower"))
    assert found is not None and exact * 0.98 <= found <= exact * 1.02
    assert sketch.min_s <= found <= sketch.max_s


def test_an_empty_sketch_knows_nothing() -> None:
    assert Sketch().percentile(0.5) is None and Sketch().mean_s is None
