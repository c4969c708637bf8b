"""Which turns of a loop are called slow, over whole series of step times."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from tftracer.run_handle import RunHandle
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.slow_turn import SlowTurn, sides
from tftracer.slow.watch_results import FIRST_CALL, Cause, Frame

MS = 1_000_000
THREAD = 7


def run_of(inside_ms: Iterable[float], gaps_ms: Iterable[float] | None = None) -> SlowTurnFinder:
    """The steps of a loop; each gap comes before its step."""
    slow, run, now = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    inside = list(inside_ms)
    for took, gap in zip(inside, gaps_ms if gaps_ms is not None else [1.0] * len(inside)):
        start = now + int(gap * MS)
        now = start + int(took * MS)
        run.steps += 1
        slow.step(run, THREAD, start, now)
    return slow


def found(slow: SlowTurnFinder) -> list[tuple[int, bool]]:
    return [(turn.step, turn.is_inside) for turn in slow.slow_turns]


def test_a_slow_step_and_a_slow_gap_are_found_with_their_times() -> None:
    inside, gaps = [5.0] * 100, [2.0] * 100
    inside[60], gaps[80] = 350.0, 90.0
    slow = run_of(inside, gaps)
    assert found(slow) == [(61, True), (81, False)]
    step, gap = slow.slow_turns
    assert (step.inside_ns, step.length_ns, step.usual_ns, step.usual_inside_ns) == (350 * MS, 352 * MS, 7 * MS, 5 * MS)
    assert (gap.inside_ns, gap.length_ns, gap.usual_ns) == (5 * MS, 95 * MS, 7 * MS)


def test_a_turn_that_is_slow_before_its_step_and_in_it_is_told_as_both() -> None:
    inside, gaps = [5.0] * 100, [2.0] * 100
    inside[60], gaps[60] = 450.0, 400.0
    inside[80], gaps[80] = 450.0, 40.0
    both, one = run_of(inside, gaps).slow_turns
    before, step = sides(both)
    assert (before.is_inside, before.length_ns, before.usual_ns) == (False, 400 * MS, 2 * MS)
    assert (step.is_inside, step.length_ns, step.usual_ns) == (True, 450 * MS, 5 * MS)
    (alone,) = sides(one)  # a part of it cannot be longer than the time that is told
    assert (alone.is_inside, alone.length_ns, alone.usual_ns, alone.end_ns) == (True, 450 * MS, 5 * MS, one.end_ns)


def test_a_side_that_would_be_slow_by_itself_is_told_beside_a_far_longer_one() -> None:
    """A step of 822 ms after a checkpoint of 2.9 s was told nowhere."""
    inside, gaps = [5.0] * 100, [2.0] * 100
    inside[60], gaps[60] = 822.0, 2_900.0
    before, step = sides(run_of(inside, gaps).slow_turns[0])
    assert (before.length_ns, step.is_inside, step.length_ns) == (2_900 * MS, True, 822 * MS)


def test_a_turn_must_be_three_times_as_long_and_20_ms_longer() -> None:
    assert found(run_of([5.0] * 50 + [24.9] + [5.0] * 5)) == []
    assert found(run_of([5.0] * 50 + [25.1] + [5.0] * 5)) == [(51, True)]
    assert found(run_of([99.0] * 50 + [298.0] + [99.0] * 5)) == []
    assert found(run_of([99.0] * 50 + [300.0] + [99.0] * 5)) == [(51, True)]


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
    assert {(turn.usual_ns, turn.limit_ns) for turn in slow.slow_turns} == {(6 * MS, 26 * MS)}  # of the last, too


def test_five_slow_turns_in_a_row_hide_no_later_one_and_change_what_is_usual_when_they_last() -> None:
    noise = run_of([5.0] * 100 + [6000.0, 360.0, 80.0, 330.0, 80.0] + [5.0] * 10 + [300.0] + [5.0] * 90)
    assert [step for step, _ in found(noise)] == [101, 102, 103, 104, 105, 116]
    last = noise.slow_turns[-1]
    assert (last.usual_ns, last.usual_inside_ns, last.limit_ns) == (6 * MS, 5 * MS, 26 * MS)  # of before: nothing has changed
    undecided = run_of([5.0] * 100 + [80.0] * 5 + [5.0] * 4 + [300.0])
    assert (found(undecided)[-1], undecided.slow_turns[-1].limit_ns) == ((110, True), 3 * 81 * MS)
    lasting = run_of([5.0] * 100 + [60.0] * 30 + [200.0])
    assert [step for step, _ in found(lasting)] == [101, 102, 103, 104, 105, 131]
    assert lasting.slow_turns[-1].usual_ns == 61 * MS and lasting.slow_turns[-1].usual_inside_ns == 60 * MS


def test_all_slow_turns_of_a_row_are_found_once_it_is_known_that_nothing_has_changed() -> None:
    steps = [5.0] * 100 + [60.0] * 7 + [5.0] * 7
    undecided, decided = run_of(steps), run_of([*steps, 5.0])
    assert [step for step, _ in found(undecided)] == [101, 102, 103, 104, 105]
    assert undecided.undecided(undecided.slow_turns[0].run) == [106, 107]
    assert [step for step, _ in found(decided)] == [*range(101, 108)] and decided.undecided(decided.slow_turns[0].run) == []
    assert {(turn.usual_ns, turn.limit_ns) for turn in decided.slow_turns} == {(6 * MS, 26 * MS)}
    random = np.random.default_rng(1)
    series, planted = 30.0 * random.lognormal(0, 0.1, 3000), set[int]()
    for at in range(100, 3000, 100):
        series[at : at + 7] *= 5
        planted.update(range(at + 1, at + 8))
    assert {step for step, _ in found(run_of(series))} == planted


def test_a_change_that_lasts_and_phases_that_take_turns_are_told_no_more_often() -> None:
    random = np.random.default_rng(1)
    lasting = 30.0 * random.lognormal(0, 0.05, 1000)
    lasting[500:] *= 4
    phases = np.tile(np.repeat([30.0, 120.0], 8), 100)
    for series, first in ((lasting, 501), (phases, 25)):
        slow = run_of(series)
        assert [step for step, _ in found(slow)] == [*range(first, first + 5)]
        assert slow.undecided(slow.slow_turns[0].run) == []


def test_a_turn_is_watched_by_the_limit_before_a_change_that_is_not_certain() -> None:
    slow = run_of([5.0] * 100 + [60.0] * 6)
    now = slow.slow_turns[-1].end_ns + 61 * MS
    assert slow.overdue(now + 25 * MS) == {} and slow.overdue(now + 27 * MS) == {THREAD: now}


def test_turns_that_are_held_are_few_also_where_every_step_is_traced() -> None:
    slow, run, now = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    for number in range(400):
        took = 200 if number >= 100 else 5
        run.steps += 1
        slow.step(run, THREAD, now, now + took * MS, "user" if number >= 100 else None)
        now += (took + 1) * MS
        assert len(slow.undecided(run)) <= 20


def test_what_is_usual_before_a_step_is_not_the_difference_of_two_medians() -> None:
    random = np.random.default_rng(5)
    inside, gaps = random.normal(6, 1, 300).clip(3, 9), random.normal(0.07, 0.01, 300).clip(0.04, 0.1)
    gaps[250] = 300.0
    (before,) = sides(run_of(inside, gaps).slow_turns[0])
    assert not before.is_inside and 0.05 * MS < before.usual_ns - before.usual_inside_ns < 0.09 * MS


def test_what_the_tracer_took_of_a_turn_does_not_count() -> None:
    slow, run = SlowTurnFinder(3.0), RunHandle("train", (), (), "")
    now = 1_000_000_000
    for number in range(60):
        traced = number == 40
        start = now + MS + (300 * MS if traced else 0)
        end = start + (12 if traced else 5) * MS
        now = end + (200 * MS if traced else 0)
        run.steps += 1
        slow.step(run, THREAD, start, end, "user" if traced else None, (300 * MS, 200 * MS) if traced else (0, 0))
    assert found(slow) == []


class Loop:
    """A loop of several runs on one thread."""

    def __init__(self) -> None:
        self.slow = SlowTurnFinder(3.0)
        self.now = 1_000_000_000

    def step(self, run: RunHandle, ms: float, gap_ms: float = 1.0) -> None:
        start = self.now + int(gap_ms * MS)
        self.now = start + int(ms * MS)
        run.steps += 1
        self.slow.step(run, THREAD, start, self.now)

    def told(self) -> list[tuple[str, int, list[tuple[str, int, int, str]], str]]:
        return [
            (
                turn.run.title,
                turn.step,
                [(one.title, one.steps, one.ns // MS, one.retraced) for one in turn.other_runs],
                turn.retraced,
            )
            for turn in self.slow.slow_turns
        ]


def run_named(title: str, place: str = "", tracings: int = 0, changed: str = "") -> RunHandle:
    return RunHandle(title, (place or title,), (), "", tracings=tracings, changed=changed)


def test_a_checkpoint_of_few_steps_makes_the_turn_of_the_loop_slow() -> None:
    loop, train, save = Loop(), run_named("train"), run_named("save")
    for number in range(1, 301):
        loop.step(train, 5)
        if number % 100 == 0:
            loop.step(save, 1200)
    loop.step(train, 5)
    saved = [("save", 1, 1200, "")]
    assert loop.told() == [("train", 101, saved, ""), ("train", 201, saved, ""), ("train", 301, saved, "")]
    assert not any(turn.is_inside for turn in loop.slow.slow_turns)


def test_an_evaluation_with_more_steps_than_the_training_lies_within_its_turns() -> None:
    loop, train, evaluate = Loop(), run_named("train"), run_named("own_eval")
    for _ in range(4):
        for _ in range(50):
            loop.step(train, 5)
        for _ in range(200):
            loop.step(evaluate, 2)
    loop.step(train, 5)
    assert loop.told() == [("train", 50 * turn + 1, [("own_eval", 200, 400, "")], "") for turn in (1, 2, 3, 4)]


def test_the_first_call_of_another_function_is_apart_from_its_other_calls() -> None:
    loop, train, score = Loop(), run_named("train"), run_named("score", tracings=1)
    for _ in range(50):
        loop.step(train, 5)
    for call in range(20):
        loop.step(score, 5 if call else 300)
    loop.step(train, 5)
    assert loop.told()[0][2] == [("score", 1, 300, FIRST_CALL), ("score", 19, 95, "")]


def test_what_a_hook_reads_before_each_step_is_not_the_loop() -> None:
    loop, read, train, save = Loop(), run_named("global_step/add"), run_named("Momentum"), run_named("save")
    loop.step(read, 0.3)
    for number in range(1, 101):
        loop.step(train, 300 if number == 60 else 5)
        loop.step(read, 0.3)
        if number == 80:
            loop.step(save, 400)
    train_step, saved = loop.told()
    assert train_step[:2] == ("Momentum", 60) and saved[:2] == ("Momentum", 81)
    assert ("save", 1, 400, "") in saved[2]


def test_of_two_runs_that_take_about_as_long_the_first_stays_the_loop() -> None:
    loop, first, second = Loop(), run_named("discriminator"), run_named("generator")
    for number in range(1, 101):
        loop.step(first, 300 if number == 60 else 5)
        loop.step(second, 6)
    assert [told[:2] for told in loop.told()] == [("discriminator", 60)]


def test_a_call_that_is_traced_anew_is_a_slow_turn_of_its_function() -> None:
    loop, usual = Loop(), run_named("train (8,64)", "train at a.py:1", 1)
    for number in range(1, 121):
        loop.step(usual, 5)
        if number % 50 == 0:
            odd = run_named(f"train ({number},64)", "train at a.py:1", 1 + number // 50, "argument 1 changed")
            loop.step(odd, 400)
            loop.step(odd, 5)
    assert loop.told() == [("train (8,64)", 51, [], "argument 1 changed"), ("train (8,64)", 101, [], "argument 1 changed")]


def test_a_loop_that_follows_another_one_is_watched_when_the_first_has_ended() -> None:
    loop, first, second = Loop(), run_named("pretrain"), run_named("train")
    for _ in range(1000):
        loop.step(first, 5)
    for number in range(3000):
        loop.step(second, 500 if number == 2500 else 5)
    assert [(title, step) for title, step, *_ in loop.told()] == [("train", 2501)]


def test_a_validation_far_longer_than_any_before_is_a_slow_turn_of_the_training() -> None:
    for title in ("evaluate: model", "val_step"):
        loop, train, validate = Loop(), run_named("fit: model"), run_named(title)
        for _ in range(300):
            loop.step(train, 5)
        for _ in range(90):
            loop.step(validate, 350)
        for _ in range(30):
            loop.step(train, 5)
        assert loop.told() == [("fit: model", 301, [(title, 90, 31_500, "")], "")]
        assert loop.slow.slow_turns[-1].length_ns > 31_500 * MS


def test_keras_evaluation_that_comes_first_is_not_the_loop() -> None:
    loop, train, evaluate = Loop(), run_named("fit: model"), run_named("evaluate: model")
    for _ in range(60):
        loop.step(evaluate, 5)
    for number in range(60):
        loop.step(train, 300 if number == 50 else 5)
    assert [(title, step) for title, step, *_ in loop.told()] == [("fit: model", 51)]


def test_a_thread_that_has_ended_leaves_no_gap_to_one_of_the_same_number() -> None:
    slow, run = SlowTurnFinder(3.0), RunHandle("train", (), (), "")
    for number in range(40):
        slow.step(run, THREAD, number * 10 * MS + MS, number * 10 * MS + 8 * MS)
    slow.forget(THREAD)
    slow.step(run, THREAD, 10_000 * MS, 10_007 * MS)
    assert found(slow) == []


def test_gaps_near_a_slow_one_are_left_out_for_a_sample_may_be_stamped_late() -> None:
    slow = run_of([10] * 60, [10] * 40 + [500] + [10] * 19)
    spans = slow.gaps(THREAD, 0, None)
    longest_ns = max(after[0] - before[1] for before, after in zip(spans, spans[1:]))
    assert 700 * MS < longest_ns < 760 * MS  # 0.5 s, a tenth of a second on each side, and what lies across its ends
    assert len(spans) > 40 and all(end - start == 10 * MS for start, end in spans)


def test_the_times_before_the_steps_of_one_run_are_told_apart() -> None:
    """An evaluation within the training: 3 of its steps after each 20 of the training's."""
    slow, train, evaluate = SlowTurnFinder(3.0), RunHandle("train", ("t",), (), ""), RunHandle("evaluate", ("e",), (), "")
    train.run_id, evaluate.run_id = 1, 2
    now, expected = 0, 0
    for number in range(230):
        is_training = number % 23 < 20
        gap, run = (5 * MS, train) if is_training else (2 * MS, evaluate)
        run.steps += 1
        slow.step(run, THREAD, now + gap, now + gap + 10 * MS)
        now += gap + 10 * MS
        expected += gap if number % 23 > 20 else 0  # between two of the evaluation's
    assert slow.is_main(THREAD, train) and not slow.is_main(THREAD, evaluate)
    assert slow.sums(THREAD, evaluate) == (30, 300 * MS, expected)
    assert [end - start for start, end in slow.gaps(THREAD, 0, evaluate)] == [2 * MS] * 20
    assert len(slow.gaps(THREAD, 0, None)) == 229
    assert [end - start for start, end in slow.gaps(THREAD, 0, evaluate, whole_turns=True)] == [12 * MS] * 20


def test_a_traced_step_may_take_longer() -> None:
    slow, run = SlowTurnFinder(3.0), RunHandle("train", (), (), "")
    now = 1_000_000_000

    def step(ms: float, asked_by: str | None = None) -> None:
        nonlocal now
        now += MS
        run.steps += 1
        slow.step(run, THREAD, now, now + int(ms * MS), asked_by)
        now += int(ms * MS)

    for _ in range(50):
        step(10)
    step(35, "slow")
    assert found(slow) == [] and slow.runs[run].traced_extra_sum_ns == 25 * MS
    step(200, "slow")
    assert [(one.step, one.is_traced) for one in slow.slow_turns] == [(52, True)]
    step(200, "user")
    step(900, "user")
    expected, of_a_user, long = slow.slow_turns
    tensorflow = Cause("tensorflow", "", None, 0.9)
    assert [each.may_be_cost_of_tracing(tensorflow) for each in (expected, of_a_user, long)] == [False, True, False]
    assert not of_a_user.may_be_cost_of_tracing(tensorflow._replace(kind="py_function"))


@pytest.mark.parametrize(("asked_by", "is_cost"), [("user", True), (None, False)])
def test_what_passes_after_a_traced_step_at_no_line_may_be_the_cost_of_its_trace(asked_by: str | None, is_cost: bool) -> None:
    """ "Before this step 31.8 ms passed. Python code, at an unknown line": TensorFlow read the trace of the step before it."""
    slow, run, now = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    for number in range(53):
        now += 32 * MS if number == 52 else 0
        run.steps += 1
        slow.step(run, THREAD, now, now + 10 * MS, asked_by if number == 51 else None)
        now += 10 * MS
    (turn,) = slow.slow_turns
    code = Cause("python", "", None, 0.7)
    assert (turn.is_inside, turn.may_be_cost_of_tracing(code)) == (False, is_cost)
    assert not turn.may_be_cost_of_tracing(code._replace(frame=Frame("train.py", 3, "save", "", False)))


def test_found_steps_are_bounded() -> None:
    slow = run_of([5.0 if number % 3 else 100.0 for number in range(9000)])
    assert len(slow.slow_turns) <= 1000 and isinstance(slow.slow_turns[-1], SlowTurn)


def test_what_is_far_longer_than_a_row_of_slow_steps_is_found_right_after_them() -> None:
    steps = [5.0] * 100 + [30.0, 40.0, 50.0, 35.0, 45.0] + [5.0] * 5 + [4400.0] + [5.0] * 50
    assert (111, True) in found(run_of(steps))


def test_waits_for_input_and_saves_belong_to_their_turn_and_an_evaluations_are_its_own() -> None:
    slow, now = SlowTurnFinder(3.0), 1_000_000_000
    train, evaluate = RunHandle("train", (), (), ""), RunHandle("evaluate: net", ("evaluate",), (), "")

    def step(run: RunHandle, start: int, took: int) -> int:
        run.steps += 1
        slow.step(run, THREAD, start * MS, (start + took) * MS)
        return start + took

    now = 1_000
    for number in range(60):
        begun = now
        if number == 50:
            slow.saved(THREAD, "Saver.save", (begun + 1) * MS, (begun + 60) * MS)
            now = step(evaluate, begun + 80, 10)
            slow.waited_for_input(THREAD, (now + 1) * MS, (now + 40) * MS)
            now = step(evaluate, now + 50, 10)
        slow.waited_for_input(THREAD, now * MS, (now + (90 if number == 50 else 2)) * MS)
        now = step(train, now + (91 if number == 50 else 3), 5)
    (turn,) = slow.slow_turns
    assert (turn.input_ns, turn.usual_input_ns, [save.name for save in turn.saves]) == (90 * MS, 2 * MS, ["Saver.save"])
    before, _ = sides(turn)[0], sides(turn)[-1]
    assert before.input_ns == 90 * MS


def test_what_tracing_a_slow_step_took_is_counted_against_other_slow_steps() -> None:
    slow, run, now = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    for number in range(60):
        took = {30: 300, 40: 320, 50: 2_000}.get(number, 5)
        run.steps += 1
        slow.step(run, THREAD, now, now + took * MS, "slow" if number == 50 else None)
        now += (took + 1) * MS
    state = slow.runs[run]
    assert state.traced_extra_sum_ns == (2_000 - 310) * MS


def test_slow_steps_of_a_functions_signatures_stay_with_the_one_that_they_are_listed_with() -> None:
    loop, first, second = Loop(), run_named("step (192)", "step"), run_named("step (194)", "step")
    for run, steps in ((first, 300), (second, 900)):
        for number in range(1, steps + 1):
            loop.step(run, 5, gap_ms=400 if number % 100 == 50 else 1)
    assert [turn.run.title for turn in loop.slow.slow_turns] == ["step (192)"] * 12
