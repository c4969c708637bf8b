"""The sums of a process's time, from what it is seen to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.ledger.activity import (
    BUILDING,
    CHECKPOINTS,
    EVALUATION,
    INPUT,
    STEPS,
    SUSPENDED,
    Activity,
    kind_of_step,
)
from tftracer.ledger.add_up_activities import LOOP_NS, OTHERS, PATIENCE_NS, UNDER_WAY, Sums, WallTimeSums
from tftracer.run_handle import RunHandle
from tftracer.slow.watch_results import Cause, Frame, OtherCause, Stall

MAIN, WORKER = 1, 2
S = 10**9


@dataclass
class Training:
    """``seen``: of the main thread unless said otherwise, in seconds."""

    wall_time: WallTimeSums = field(default_factory=lambda: WallTimeSums(0, MAIN))

    def saw(self, rank: int, what: Any, start: float, end: float, thread: int = MAIN) -> None:
        self.wall_time.add([(rank, what, round(start * S), round(end * S), thread)], set())

    def sums(self, now: float, *under_way: Activity) -> dict[tuple[int, Any], float]:
        return {key: row.own_ns / S for key, row in self.sums_until(now, *under_way).rows.items() if row.own_ns}

    def sums_until(self, now: float, *under_way: Activity) -> Sums:
        made = self.wall_time.sums_until(round(now * S), list(under_way))
        assert sum(row.own_ns for row in made.rows.values()) + sum(made.rest_ns) == round(now * S)
        assert all(ns >= 0 for ns in made.rest_ns)
        return made


def a_run(title: str = "train", definition: str = "train.py:1") -> RunHandle:
    return RunHandle(title, (title,), (), "", definition)


RUN, OTHER = a_run(), a_run("other")


def test_parts_lie_before_between_and_after_the_steps() -> None:
    training = Training()
    training.saw(BUILDING, "tracing f", 2, 3)
    training.saw(STEPS, RUN, 5, 6)
    training.saw(INPUT, "input", 6.5, 7)
    training.saw(STEPS, RUN, 8, 9)
    training.saw(CHECKPOINTS, "save", 10, 12)
    made = training.sums_until(15)
    assert [ns / S for ns in made.rest_ns] == [4, 1.5, 4]
    assert training.sums(15) == {(BUILDING, "tracing f"): 1, (STEPS, RUN): 2, (INPUT, "input"): 0.5, (CHECKPOINTS, "save"): 2}
    assert made.rows[STEPS, RUN].times == 2 and made.rows[STEPS, RUN].first_ns == S


def test_a_step_of_an_eager_loop_counts_from_its_beginning_which_is_known_late() -> None:
    for thread in (MAIN, WORKER):
        training = Training()
        training.saw(STEPS, RUN, 1, 2, thread)
        for now in (2.2, 2.8, 4.8):
            assert sum(training.sums(now).values()) == 1
        training.saw(STEPS, RUN, 2, 5, thread)
        assert training.sums(5.1) == {(STEPS, RUN): 4}
        training.saw(CHECKPOINTS, "save", 6, 7, thread)
        assert training.sums(7.1)[CHECKPOINTS, "save"] == 1
        training.saw(STEPS, RUN, 5, 9, thread)
        assert training.sums(9.1) == training.sums(9.1 + LOOP_NS / S) == {(STEPS, RUN): 7, (CHECKPOINTS, "save"): 1}


def test_a_moment_counts_as_the_first_of_what_happens_in_it() -> None:
    training = Training()
    training.saw(BUILDING, "tracing f", 1, 2)
    training.saw(STEPS, RUN, 1, 3)  # the call that traced f
    training.saw(STEPS, RUN, 4, 5)
    training.saw(CHECKPOINTS, "save", 5, 6)
    training.saw(EVALUATION, "evaluate", 3.5, 7)
    training.saw(SUSPENDED, "stopped", 6.5, 8)
    assert training.sums(8) == {
        (BUILDING, "tracing f"): 1,
        (STEPS, RUN): 1,
        (CHECKPOINTS, "save"): 1,
        (EVALUATION, "evaluate"): 2,
        (SUSPENDED, "stopped"): 1.5,
    }


def test_what_another_thread_does_counts_where_the_main_one_has_long_done_nothing() -> None:
    training = Training()
    training.saw(STEPS, OTHER, 0.5, 2, WORKER)
    training.saw(STEPS, RUN, 1, 2)
    training.saw(CHECKPOINTS, "save", 2, 5, WORKER)
    training.saw(STEPS, RUN, 6, 7)
    later = 7 + LOOP_NS / S + 10
    training.saw(STEPS, OTHER, 8, later - 1, WORKER)
    training.saw(STEPS, RUN, later, later + 1)
    assert training.sums(later + 1) == {(STEPS, OTHER): 0.5 + later - 9, (STEPS, RUN): 3}


def test_threads_that_only_help_are_not_counted() -> None:
    wall_time = WallTimeSums(0, MAIN)
    wall_time.add([(STEPS, OTHER, 0, 5 * S, WORKER), (STEPS, RUN, 6 * S, 7 * S, MAIN)], {WORKER})
    assert list(wall_time.sums_until(8 * S, []).rows) == [(STEPS, RUN)]


def test_a_step_that_does_not_end_counts_and_is_its_runs_when_it_does() -> None:
    training = Training()
    training.saw(STEPS, RUN, 1, 2)
    hours = 3600.0
    for now in (10.0, 10 + PATIENCE_NS / S, hours):
        under_way = (STEPS, UNDER_WAY, 3 * S, round(now * S), MAIN)
        assert training.sums(now, under_way) == {(STEPS, RUN): 1, (STEPS, UNDER_WAY): now - 3}
    training.saw(STEPS, OTHER, 3, hours + 1)
    assert training.sums(hours + 2) == {(STEPS, RUN): 1, (STEPS, OTHER): hours - 2}


def test_names_without_end_take_no_memory_without_end() -> None:
    training = Training()
    for number in range(2000):
        training.saw(BUILDING, f"tracing f{number}", number, number + 0.5)
        if number % 100 == 0:
            training.sums(number + 1)
    made = training.sums_until(2000)
    assert len(made.rows) <= 301
    assert sum(row.own_ns for row in made.rows.values()) == 1000 * S and (BUILDING, OTHERS) in made.rows


@given(
    st.lists(
        st.tuples(
            st.sampled_from([SUSPENDED, BUILDING, CHECKPOINTS, EVALUATION, INPUT, STEPS]),
            st.integers(0, 90),
            st.integers(0, 90),
            st.sampled_from([MAIN, WORKER, 3]),
        ),
        max_size=40,
    ),
    st.lists(st.integers(0, 100), max_size=6),
)
def test_the_sums_are_the_same_however_often_they_are_taken(drawn: list[tuple[int, int, int, int]], looks: list[int]) -> None:
    """Activities come as they end; looks at the sums meanwhile, some of which make them final, change nothing."""
    activities = sorted(((rank, f"{rank}", min(a, b), max(a, b), thread) for rank, a, b, thread in drawn), key=lambda a: a[3])
    whole, looked = WallTimeSums(0, MAIN), WallTimeSums(0, MAIN)
    whole.add(activities, set())
    at = 0
    for look in sorted(looks):
        looked.add([each for each in activities if at < each[3] <= look], set())
        under_way: list[Activity] = [
            (rank, what, start, look, thread) for rank, what, start, end, thread in activities if start < look < end
        ]
        made = looked.sums_until(look, under_way)
        assert sum(row.own_ns for row in made.rows.values()) + sum(made.rest_ns) == look
        at = look
    looked.add([each for each in activities if each[3] > at], set())
    one, other = (wall_time.sums_until(100, []) for wall_time in (whole, looked))
    for made in (one, other):
        assert sum(row.own_ns for row in made.rows.values()) + sum(made.rest_ns) == 100
    if not any(each[4] != MAIN for each in activities):  # what other threads did before is known too late to be taken back
        assert {key: row.own_ns for key, row in one.rows.items() if row.own_ns} == {
            key: row.own_ns for key, row in other.rows.items() if row.own_ns
        }


def stall(run: RunHandle, start: float, end: float, expected_s: float, kind: Any = "wait", inside: bool = False) -> Stall:
    cause = Cause(kind, "", None, None)
    return Stall(run, 9, 9, inside, "MainThread", round(start * S), round(end * S), expected_s, cause, (), (), 0.0, None, False)


def with_a_pause(seen: list[tuple[Any, ...]]) -> Training:
    """A training with a step, nothing or ``seen`` for 3 s, and a step."""
    training = Training()
    training.saw(STEPS, RUN, 1, 2)
    for each in seen:
        training.saw(*each)
    training.saw(STEPS, RUN, 5, 6)
    training.sums(7)
    return training


@pytest.mark.parametrize(
    ("seen", "inside", "counted"),
    [
        ([], False, 2.9),
        ([(CHECKPOINTS, "save", 3, 5)], False, 1.0),  # the rest of it is a checkpoint's
        ([(STEPS, OTHER, 3, 5)], False, 1.0),  # or another run's steps
        ([(STEPS, RUN, 2, 5)], True, 2.9),
        ([(STEPS, RUN, 2, 5), (BUILDING, "tracing g", 3, 4)], True, 1.9),
    ],
)
def test_of_a_slow_step_counts_what_is_nothing_else(seen: list[tuple[Any, ...]], inside: bool, counted: float) -> None:
    training = with_a_pause(seen)
    training.wall_time.add_slow(stall(RUN, 2, 5, 0.1, inside=inside))
    (row,) = training.wall_time.slow()
    assert (row.run_id, row.cause, row.times, round(row.own_s, 3)) == (RUN.run_id, "wait", 1, counted)


def test_the_causes_of_a_slow_step_share_what_is_nothing_else_by_their_seconds() -> None:
    training = with_a_pause([(CHECKPOINTS, "save", 3, 4)])
    saves, line = Cause("checkpoint", "Saver.save", None, None), Frame("train.py", 3, "load", "", False)
    others = (OtherCause(saves, 1.0), OtherCause(Cause("python", "", line, None), 0.6))
    training.wall_time.add_slow(stall(RUN, 2, 5, 0.2)._replace(others=others))  # 2.8 s longer: 1.2 s of it are the first cause
    assert [(row.cause, row.place, round(row.own_s, 3)) for row in training.wall_time.slow()] == [
        ("wait", "", 1.333),
        ("python", "load() (train.py:3)", 0.667),
    ]


def test_a_slow_step_of_a_time_that_is_not_final_yet_is_counted_later() -> None:
    training = Training()
    training.saw(STEPS, RUN, 1, 2)
    training.wall_time.add_slow(stall(RUN, 2, 5, 0.1))
    assert training.wall_time.slow() == []
    training.saw(STEPS, RUN, 5, 6)
    training.sums(7)
    (row,) = training.wall_time.slow()
    assert round(row.own_s, 3) == 2.9


def test_a_thread_that_feeds_a_queue_is_not_slow_while_nobody_takes_from_it() -> None:
    training = with_a_pause([(STEPS, OTHER, 1, 2, WORKER)])
    training.wall_time.add_slow(stall(OTHER, 2, 5, 0.1)._replace(thread_id=WORKER))
    assert training.wall_time.slow() == []


def test_a_call_that_traced_its_function_is_no_slow_step() -> None:
    training = Training()
    training.saw(STEPS, RUN, 1, 6)
    training.sums(7)
    training.wall_time.add_slow(stall(RUN, 1, 6, 0.1, "retrace", inside=True))
    assert training.wall_time.slow() == []


@pytest.mark.parametrize(("suspended", "times"), [([], 1), ([(SUSPENDED, "stopped", 2.2, 4.9)], 0)])
def test_a_stop_that_the_watch_saw_counts_once(suspended: list[tuple[Any, ...]], times: int) -> None:
    training = with_a_pause(suspended)
    training.wall_time.add_slow(stall(RUN, 2, 5, 0.1, "stopped"))
    assert [row.times for row in training.wall_time.slow()] == [1] * times


@pytest.mark.parametrize(
    ("title", "rank"),
    [
        ("train_step (32,8)", STEPS),
        ("test_step (32,8)", EVALUATION),
        ("evaluate: convnet", EVALUATION),
        ("predict: convnet", EVALUATION),
        ("Model.validation_loop", EVALUATION),
        ("latest_step", STEPS),
        ("fit: contest", STEPS),
    ],
)
def test_a_function_evaluates_if_its_name_says_so(title: str, rank: int) -> None:
    assert kind_of_step(a_run(title)) == rank
    assert kind_of_step(a_run(title, definition="")) == STEPS  # of a session's run the name is that of what it fetches
