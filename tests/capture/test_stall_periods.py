"""Stalls at equal distances, from the numbers of the steps alone."""

from __future__ import annotations

import random

from made_stalls import a_stall

from tftracer.capture.stall_causes import UNKNOWN
from tftracer.capture.stall_periods import StallPeriods
from tftracer.session.recorded_steps import RunHandle
from tftracer.slow.recorded import Cause, Frame, Period, Stall

CHECKPOINT = Cause("hook", "CheckpointSaverHook", Frame("train.py", 12, "main", "", False), 0.9)


def stall(run: RunHandle, step: int, cause: Cause = UNKNOWN, inside: bool = True) -> Stall:
    run.steps = max(run.steps, step)
    end_ns = step * 10**9 + 310_000_000
    return a_stall(run, step, inside=inside, cause=cause, start_ns=step * 10**9, end_ns=end_ns)


def periods_of(steps: list[int], cause: Cause = UNKNOWN, inside: bool = True) -> tuple[list[Period], StallPeriods, RunHandle]:
    periods, run = StallPeriods(), RunHandle("train", (), (), "")
    reported = [period for step in steps if (period := periods.add(stall(run, step, cause, inside)))]
    return reported, periods, run


def test_it_is_found_at_the_third_and_the_next_is_told() -> None:
    reported, periods, _ = periods_of([97, 194])
    assert not reported and not periods.expected()
    (period,), periods, _ = periods_of([97, 194, 291])
    assert (period.steps, period.occurrences, period.last_step, period.next_step) == (97, 3, 291, 388)
    assert abs(period.median_s - 0.31) < 1e-9
    (expected,) = periods.expected()
    assert (expected.first, expected.last) == (388, 388)  # all distances were equal: one step is traced


def test_distances_may_differ_a_little_and_more_steps_are_expected_then() -> None:
    reported, periods, _ = periods_of([100, 200, 301, 399, 500])
    assert reported[-1].steps == 100 and reported[-1].occurrences == 5
    (expected,) = periods.expected()
    assert expected.first < 600 <= expected.last and expected.last - expected.first <= 4


def test_other_stalls_in_between_do_not_hide_it() -> None:
    periods, run = StallPeriods(), RunHandle("train", (), (), "")
    reported = []
    for step in range(1, 1000):
        if step % 97 == 0:
            reported.append(periods.add(stall(run, step, CHECKPOINT, inside=False)))
        elif step in (130, 177, 560, 603):
            assert periods.add(stall(run, step)) is None
    assert reported[-1] is not None and (reported[-1].steps, reported[-1].cause) == (97, CHECKPOINT)
    assert not periods.expected()  # between steps: a trace would show nothing


def test_a_garbage_collection_is_of_one_kind_wherever_it_strikes() -> None:
    periods, run = StallPeriods(), RunHandle("train", (), (), "")
    lines = [Frame("train.py", 12, "main", "", False), None, Frame("data.py", 3, "load", "", False)]
    reported = [periods.add(stall(run, 40 * number, Cause("gc", "", line, 0.9))) for number, line in enumerate(lines, 1)]
    assert reported[-1] is not None and (reported[-1].steps, reported[-1].occurrences) == (40, 3)


def test_one_that_does_not_come_again_is_taken_back_once() -> None:
    _, periods, run = periods_of([97, 194, 291])
    run.steps = 389
    assert not periods.missed()
    run.steps = 395
    assert not periods.missed()  # it may have come just now
    (over,) = periods.missed()
    assert over.occurrences == 0 and over.steps == 97
    assert not periods.missed() and not periods.expected()
    assert not [period for step in (500, 700, 950) if (period := periods.add(stall(run, step)))]


SLEEP = Cause("wait", "", Frame("train.py", 30, "throttle", "", False), 0.9)


def test_one_of_unknown_or_of_another_cause_does_not_end_it() -> None:
    for other in (UNKNOWN, SLEEP):
        periods, run = StallPeriods(), RunHandle("train", (), (), "")
        seen = [periods.add(stall(run, 97 * number, other if number == 4 else CHECKPOINT, False)) for number in range(1, 7)]
        assert [period.occurrences for period in seen if period] == [3, 4, 5, 6]
        assert {(period.steps, period.cause) for period in seen if period} == {(97, CHECKPOINT)}


def test_two_of_another_cause_in_a_row_end_it() -> None:
    periods, run = StallPeriods(), RunHandle("train", (), (), "")
    causes = [CHECKPOINT] * 3 + [SLEEP] * 3
    seen = [periods.add(stall(run, 97 * number, cause, False)) for number, cause in enumerate(causes, 1)]
    assert seen[4] is None and seen[5] is not None and (seen[5].cause, seen[5].occurrences) == (SLEEP, 3)
    assert not periods.missed()
    (over,) = periods.missed()
    assert (over.cause, over.occurrences) == (CHECKPOINT, 0)


def test_a_stall_of_unknown_cause_at_another_step_is_no_part_of_it() -> None:
    periods, run = StallPeriods(), RunHandle("train", (), (), "")
    for number in range(1, 4):
        periods.add(stall(run, 97 * number, CHECKPOINT, False))
    assert periods.add(stall(run, 380, UNKNOWN, False)) is None
    assert periods.add(stall(run, 388, UNKNOWN, True)) is None  # inside: the period is between steps
    period = periods.add(stall(run, 388, CHECKPOINT, False))
    assert period is not None and period.occurrences == 4


def test_one_that_changes_is_found_anew() -> None:
    reported, _, _ = periods_of([97, 194, 291, 341, 391, 441, 491])
    assert [(period.steps, period.occurrences) for period in reported if period.occurrences][-1] == (50, 4)
    assert any(period.occurrences == 0 and period.steps == 97 for period in reported)


def test_stalls_at_random_are_seldom_called_regular() -> None:
    """And then they are taken back."""
    source, alarms, series = random.Random(3), 0, 200
    for _ in range(series):
        step, steps = 0, []
        for _ in range(12):
            step += 20 + int(source.expovariate(1 / 150))
            steps.append(step)
        reported, _, _ = periods_of(steps)
        alarms += any(period.occurrences >= 4 for period in reported)
    assert alarms <= series * 0.02


def test_close_steps_are_uneven_and_not_regular() -> None:
    reported, _, _ = periods_of([50, 53, 56, 59, 62])
    assert not reported
