"""Percentiles of step times: bounded error, bounded size, the same in parts and as a whole, and out of a file."""

from __future__ import annotations

from pathlib import Path
from threading import get_ident

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import LOSS, TRAIN, X, recording

from tftracer.session.files.saved import open_session
from tftracer.session.live import Recorder
from tftracer.session.steps.history import History
from tftracer.session.steps.percentile_sketch import ERROR, Sketch, SketchedSteps

DURATIONS = st.lists(st.floats(1e-7, 1e5), max_size=300)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.95, 0.99, 1.0])


def sketch_of(durations: list[float]) -> Sketch:
    sketch = Sketch()
    sketch.add(np.array(durations))
    return sketch


@given(DURATIONS.filter(bool), SHARES)
def test_percentiles_are_right_to_one_percent(durations: list[float], share: float) -> None:
    sketch = sketch_of(durations)
    sketch.add(np.zeros(0))
    estimate, exact = sketch.percentile(share), float(np.quantile(durations, share, method="lower"))
    assert estimate is not None and abs(estimate / exact - 1) <= ERROR
    assert sketch.min_s <= estimate <= sketch.max_s


@given(DURATIONS, DURATIONS, SHARES)
def test_merged_sketches_are_one_of_all_durations(one: list[float], other: list[float], share: float) -> None:
    merged, whole = Sketch.merged([sketch_of(one), sketch_of(other)]), sketch_of(one + other)
    assert merged.percentile(share) == whole.percentile(share) and merged.count == whole.count
    assert (merged.min_s, merged.max_s) == (whole.min_s, whole.max_s)


@given(DURATIONS, SHARES)
def test_a_sketch_read_back_has_the_same_percentiles(durations: list[float], share: float) -> None:
    sketch = sketch_of(durations)
    again = Sketch.of_counters(*sketch.counters())
    estimate, read = sketch.percentile(share), again.percentile(share)
    assert again.count == sketch.count
    assert read == estimate or (read is not None and estimate is not None and abs(read / estimate - 1) <= ERROR)


def test_an_empty_sketch_knows_nothing() -> None:
    assert Sketch().percentile(0.5) is None and Sketch().mean_s is None
    assert SketchedSteps().after(0).count == 0


def times(steps: int, seed: int = 0) -> np.ndarray:
    """Slow at first, and in the old middle: a tail that the last 4,096 steps do not show."""
    rng = np.random.default_rng(seed)
    durations = 0.003 * np.exp(rng.normal(0, 0.1, steps))
    durations[: steps // 20] *= 50
    middle = slice(steps // 4, steps // 2)
    durations[middle] = np.where(rng.random(steps // 2 - steps // 4) < 0.08, 0.03, durations[middle])
    return durations


@pytest.mark.parametrize("size", [1, 97, 5_000, 200_000])
def test_of_a_long_run_the_tail_is_known_without_its_beginning(size: int) -> None:
    steps = 100_000 if size > 1 else 9_000
    durations, history = times(steps), History()
    for first in range(0, steps, size):
        block = durations[first : first + size]
        history.add(first + 1, np.arange(len(block), dtype=float), block)
    sketched = history.sketched
    assert len(sketched.sketches) <= SketchedSteps.MAX_SKETCHES
    usual = sketched.after(steps * 0.1)
    exact = np.quantile(durations[steps - usual.count :], [0.5, 0.99], method="lower")
    assert [usual.percentile(0.5), usual.percentile(0.99)] == pytest.approx(exact, rel=ERROR)
    assert steps * 0.8 <= usual.count <= steps * 0.9
    assert exact[1] == 0.03 > np.quantile(durations[-4096:], 0.99)


def test_traced_steps_and_those_after_them_are_left_out() -> None:
    history = History()
    durations = np.full(1000, 0.001)
    durations[[10, 11, 999]] = 1.0
    history.add(1, np.arange(1000.0), durations, [10, 999])
    history.add(1001, np.arange(2.0), np.array([1.0, 0.001]))
    whole = history.sketched.after(0)
    assert whole.count == 998 and whole.max_s == 0.001
    assert list(history.traced) == [11, 1000]


def test_its_size_is_bounded() -> None:
    history = History()
    rng = np.random.default_rng(1)
    for first in range(1, 2_000_000, 100_000):
        history.add(first, np.arange(100_000.0), 0.01 * np.exp(rng.normal(0, 0.3, 100_000)))
    counters = sum(len(sketch.counters()[0]) for sketch in history.sketched.sketches)
    assert len(history.sketched.sketches) <= 16 and counters < 16 * 200


def add_steps(recorder: Recorder, durations: np.ndarray) -> None:
    at = 0
    for number, length in enumerate((durations * 1e9).astype(int).tolist()):
        recorder.queue.add(((TRAIN, LOSS), (X,), None, at, at + length, get_ident(), None))
        at += length + 1000
        if number % 2000 == 0:
            assert recorder.flush()
    assert recorder.flush()


def test_a_file_keeps_it_when_it_is_reopened_saved_again_and_loaded(tmp_path: Path) -> None:
    durations = times(20_000)
    with recording(tmp_path / "spool") as recorder:
        add_steps(recorder, durations)
        recorder.save(str(tmp_path / "saved"))
        live = recorder.store.live_runs[1].statistics.history.sketched.after(2000)
    reopened = open_session(tmp_path / "saved")
    reopened.save(str(tmp_path / "again"))
    with recording(tmp_path / "spool2") as other:
        other.load(str(tmp_path / "again"))
        other.save(str(tmp_path / "loaded"))
    for name in ("saved", "again", "loaded"):
        read = open_session(tmp_path / name).history(1).sketched.after(2000)
        assert read.count == live.count and read.percentile(0.99) == pytest.approx(live.percentile(0.99), rel=ERROR), name


def test_a_history_of_an_older_version_has_no_sketch_of_its_steps() -> None:
    path = next((Path(__file__).parents[1] / "data/versions").glob("2-saved.tftrace"))
    history = open_session(path).history(1)
    assert len(history.entries()) and history.sketched.after(0).count == 0
