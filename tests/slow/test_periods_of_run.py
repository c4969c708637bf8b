"""A run's periods as the watch follows them while the training goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_stalls import LOAD, a_save, a_stall, put, run_of
from recording import recording

from tftracer.session.files.saved import open_session
from tftracer.slow.watch.periods_of_run import RunPeriods
from tftracer.slow.watch_results import UNKNOWN, Cause, OtherCause, Period, SlowRecords


def periods_in(records: SlowRecords) -> list[Period]:
    return [record for record in records.take() if isinstance(record, Period)]


def test_a_slow_step_is_expected_after_those_that_ended_where_newer_slow_ones_are_not_explained_yet(tmp_path: Path) -> None:
    """Where they come faster than they are explained, the next one after the newest explained one is past."""
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in (97, 194, 291, 388):
            periods.add(a_save(run, number, inside=True), records)
        assert periods.expected() == [(run, 679, 679)]


def test_only_what_is_slow_inside_of_its_step_is_expected_to_be_traced(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in (97, 194, 291, 388):
            periods.add(a_save(run, number), records)
        periods.add(a_save(run, 400, inside=True)._replace(cause=Cause("tensorflow", "", None, 0.9)), records)
        assert periods.expected() == []


def test_collections_at_a_line_that_makes_the_garbage_are_of_its_period(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in range(1, 5):
            kind = "gc" if number % 2 == 0 else "python"
            periods.add(a_stall(run, 160 * number, cause=Cause(kind, "", LOAD, 0.9)), records)  # type: ignore[arg-type]
        (period,) = periods_in(records)
        assert (period.steps, period.cause.frame, period.occurrences) == (160, LOAD, 4)


def test_the_usual_time_of_a_period_is_that_of_its_own_cause(tmp_path: Path) -> None:
    """ "403 ms (median) every 30 steps" of a request of 320 ms: other work came at most of these steps."""
    others = (OtherCause(Cause("python", "", LOAD, 0.3), 0.1),)
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in range(60, 361, 60):
            periods.add(a_save(run, number, others=others if number % 180 else ()), records)
        period = periods_in(records)[-1]
        assert period.median_s == pytest.approx(0.2)


def test_steps_of_two_other_runs_are_two_kinds(tmp_path: Path) -> None:
    """ "Every 2,500th step: steps of another run: temper (8,8)": these steps were evaluations."""
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in (100, 134, 200, 267, 300, 391, 400, 500, 533):
            title = "temper (8,8): 1 step, 60 ms" if number % 100 else "evaluate: net: 10 steps, 30 ms"
            periods.add(a_stall(run, number, cause=Cause("other_run", title, None, 0.9)), records)
        period = periods_in(records)[-1]
        assert (period.steps, period.cause.name) == (100, "evaluate: net: 10 steps, 30 ms")


def test_a_period_of_unknown_cause_lies_where_its_slow_steps_do(tmp_path: Path) -> None:
    """A shuffle's refill before each 600th step was told "inside the step", where the newest slow step of unknown cause was."""
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 1300), SlowRecords()
        periods = RunPeriods(run)
        for number in range(60, 1201, 60):
            periods.add(a_stall(run, number, cause=UNKNOWN), records)
        periods.add(a_stall(run, 1210, inside=True, cause=UNKNOWN), records)
        periods.add(a_stall(run, 1260, cause=Cause("python", "", LOAD, 0.9)), records)
        period = periods_in(records)[-1]
        assert (period.steps, period.cause.kind, period.inside) == (60, "unknown", False)


def test_a_period_that_turns_out_to_be_a_part_of_another_is_taken_back_also_in_the_file(tmp_path: Path) -> None:
    """A validation after each 400th step: at first only those at even multiples are slow enough, later all."""
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 9000), SlowRecords()
        periods = RunPeriods(run)
        for number in (*range(801, 3202, 800), *range(3601, 8402, 400)):
            periods.add(a_save(run, number), records)
        told = records.take()
        assert {record.steps for record in told if isinstance(record, Period)} == {800, 400}
        put(recorder, *told)
        (period,) = recorder.all_stalls()["periods"]
        assert (period["every"], period["first_step"]) == (400, 801)
        spool = recorder.session()["file"]
    (period,) = open_session(spool).all_stalls()["periods"]
    assert period["every"] == 400


def test_a_period_of_a_hook_keeps_the_line_that_was_seen(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in range(60, 361, 60):
            stall = a_save(run, number)
            periods.add(stall if number < 300 else stall._replace(cause=stall.cause._replace(frame=None)), records)
        period = periods_in(records)[-1]
        assert period.cause == a_save(run, 60).cause and period.occurrences == 6


def test_a_period_of_a_hook_has_the_line_of_most_of_its_own_steps(tmp_path: Path) -> None:
    """A judge read the line that runs in each step, or that ran in one save of 22, as the place of "every 3,840th step"."""
    elsewhere, once = (LOAD._replace(line=line) for line in (612, 190))
    with recording(tmp_path) as recorder:
        run, records = run_of(recorder, 650), SlowRecords()
        periods = RunPeriods(run)
        for number in range(60, 421, 60):
            stall = a_save(run, number)
            periods.add(stall if number < 360 else stall._replace(cause=stall.cause._replace(frame=once)), records)
            periods.add(stall._replace(call=number + 7, step=number + 7, cause=stall.cause._replace(frame=elsewhere)), records)
        period = [period for period in periods_in(records) if period.last_call and period.last_call % 60 == 0][-1]
        assert period.cause == a_save(run, 60).cause
