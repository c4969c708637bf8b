"""Which steps are called slow, over whole series of step times."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tftracer.capture.slow_steps import NEVER, SlowStep, SlowSteps
from tftracer.session.recorded_steps import Capture, RunHandle, SessionFacts, Traced

MS = 1_000_000
THREAD = 7


def run_of(inside_ms: Iterable[float], gaps_ms: Iterable[float] | None = None) -> SlowSteps:
    """The steps of a loop; each gap comes before its step."""
    slow, run, now = SlowSteps(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    inside = list(inside_ms)
    for took, gap in zip(inside, gaps_ms if gaps_ms is not None else [1.0] * len(inside)):
        start = now + int(gap * MS)
        now = start + int(took * MS)
        run.steps += 1
        slow.step(run, THREAD, start, now, None)
    return slow


def found(slow: SlowSteps) -> list[tuple[int, bool]]:
    return [(step.step, step.inside) for step in slow.found]


def test_a_slow_step_and_a_slow_gap_are_found_with_their_times() -> None:
    inside, gaps = [5.0] * 100, [2.0] * 100
    inside[60], gaps[80] = 350.0, 90.0
    slow = run_of(inside, gaps)
    assert found(slow) == [(61, True), (81, False)]
    step, gap = slow.found
    assert step.end_ns - step.start_ns == 350 * MS and step.expected_ns == 5 * MS and step.mark == step.start_ns
    assert gap.end_ns - gap.start_ns == 90 * MS and gap.expected_ns == 2 * MS and gap.mark == -gap.start_ns


def test_a_step_must_be_three_times_as_long_and_20_ms_longer() -> None:
    assert found(run_of([5.0] * 50 + [24.9] + [5.0] * 5)) == []
    assert found(run_of([5.0] * 50 + [25.1] + [5.0] * 5)) == [(51, True)]
    assert found(run_of([100.0] * 50 + [299.0] + [100.0] * 5)) == []
    assert found(run_of([100.0] * 50 + [301.0] + [100.0] * 5)) == [(51, True)]


def test_nothing_is_slow_before_there_is_a_median() -> None:
    assert found(run_of([2000.0, 300.0, *([5.0] * 10), 300.0, *([5.0] * 30)])) == []


def test_data_that_vary_and_steps_that_grow_raise_no_alarm() -> None:
    random = np.random.default_rng(1)
    growing = np.concatenate([np.full(1500, 8.0), np.full(700, 16.0), np.full(700, 24.0)]) * random.normal(1, 0.1, 2900).clip(
        0.7, 1.5
    )
    pareto = np.minimum(random.pareto(2.2, 3000) + 1, 2.9) * 9.0  # sequences of many lengths
    slowly = np.linspace(5, 60, 4000) * random.normal(1, 0.15, 4000).clip(0.6, 1.6)
    for series in (growing, pareto, slowly):
        assert found(run_of(series)) == []


def test_a_lasting_change_is_told_a_few_times_and_then_usual() -> None:
    slow = run_of([5.0] * 100 + [60.0] * 300)
    assert [step for step, _ in found(slow)] == [101, 102, 103, 104, 105]
    assert {(step.expected_ns, step.limit_ns) for step in slow.found} == {(5 * MS, 25 * MS)}  # of the last, too


def test_what_the_tracer_took_of_a_gap_does_not_count() -> None:
    slow, run = SlowSteps(3.0), RunHandle("train", (), (), "")
    now = 1_000_000_000
    for number in range(60):
        traced = number == 40
        trace: Traced = None
        if traced:
            trace = Capture(b"", "user", "", False, SessionFacts(), before_ns=300 * MS, after_ns=200 * MS)
        start = now + MS + (300 * MS if traced else 0)
        end = start + (12 if traced else 5) * MS
        now = end + (200 * MS if traced else 0)
        run.steps += 1
        slow.step(run, THREAD, start, end, trace)
    assert found(slow) == []


def test_a_watch_begins_where_a_step_becomes_slow() -> None:
    slow = run_of([50.0] * 40, [2.0] * 40)
    assert slow.watch_after_ns(THREAD, inside=True) == 150 * MS
    assert slow.watch_after_ns(THREAD, inside=False) == 30 * MS
    assert slow.watch_after_ns(8, inside=True) == NEVER


def test_a_thread_that_has_ended_leaves_no_gap_to_one_of_the_same_number() -> None:
    slow, run = SlowSteps(3.0), RunHandle("train", (), (), "")
    for number in range(40):
        slow.step(run, THREAD, number * 10 * MS + MS, number * 10 * MS + 8 * MS, None)
    slow.forget(THREAD)
    slow.step(run, THREAD, 10_000 * MS, 10_007 * MS, None)
    assert found(slow) == []


def test_a_traced_step_may_take_longer() -> None:
    slow, run = SlowSteps(3.0), RunHandle("train", (), (), "")
    now = 1_000_000_000

    def step(ms: float, trace: Traced = None) -> None:
        nonlocal now
        now += MS
        run.steps += 1
        slow.step(run, THREAD, now, now + int(ms * MS), trace)
        now += int(ms * MS)

    for _ in range(50):
        step(10)
    expected = Capture(b"", "slow", "", False, SessionFacts())
    step(45, expected)
    assert found(slow) == [] and slow.runs[run].traced_extra_sum_ns == 35 * MS
    step(200, expected)
    assert [(one.step, one.is_traced) for one in slow.found] == [(52, True)]


def test_found_steps_are_bounded() -> None:
    slow = run_of([5.0 if number % 3 else 100.0 for number in range(9000)])
    assert len(slow.found) <= 1000 and isinstance(slow.found[-1], SlowStep)
