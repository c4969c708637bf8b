"""Periods of slow steps, from numbers of steps, lengths and kinds alone."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable

import pytest

from tftracer.slow.cause.equal_distances import Proven
from tftracer.slow.cause.find_periods import Periods

LOAD, SAVE, NOISE = "wait load()", "hook CheckpointSaverHook", "python step()"


def periods_of(slow: Iterable[int], kind: Hashable = LOAD, seconds: float = 0.4) -> Periods:
    return fed([(step, seconds, kind) for step in slow])


def fed(slow: Iterable[tuple[int, float, Hashable]]) -> Periods:
    periods = Periods()
    for step, seconds, kind in sorted(slow):
        periods.passed(step - 1)
        periods.add(step, seconds, kind)
    return periods


def scattered(rate: float, steps: int, seed: int) -> list[tuple[int, float, Hashable]]:
    chance = random.Random(seed)
    kinds = [None, None, "machine", NOISE]
    slow = [step for step in range(1, steps) if chance.random() < rate]
    return [(step, 0.03 * chance.lognormvariate(0, 1), chance.choice(kinds)) for step in slow]


def only(periods: Periods) -> Proven:
    (period,) = periods.periods()
    return period


def test_four_exact_distances_without_noise_prove_a_period() -> None:
    assert not periods_of([50, 100, 150]).periods()
    period = only(periods_of([50, 100, 150, 200]))
    assert period == Proven(50, 0, 50, 200, 4, 0.4, LOAD, True, 250)
    assert periods_of([97, 194, 291, 388]).expected() == [(485, 485)]


def test_a_period_is_proven_where_catches_are_missing_and_other_steps_are_slow() -> None:
    missing = {291, 970, 1067}
    planted = [(step, 0.4, LOAD) for step in range(97, 4000, 97) if step not in missing]
    period = only(fed([*planted, *scattered(0.01, 4000, seed=1)]))
    assert (period.length, period.first, period.last, period.kind, period.is_active) == (97, 97, 3977, LOAD, True)
    assert abs(period.median_s - 0.4) < 0.01


def test_causes_that_agree_prove_what_noise_would_hide() -> None:
    noise = scattered(0.1, 600, seed=2)
    planted = range(50, 600, 50)
    told = fed([*((step, 0.05, SAVE) for step in planted), *noise]).periods()
    assert [(period.length, period.kind) for period in told] == [(50, SAVE)]
    assert not fed([*((step, 0.001 * 4 ** (step % 7), None) for step in planted if step < 250), *noise]).periods()


def test_two_periods_at_once_are_both_told() -> None:
    slow = dict.fromkeys(range(40, 2000, 40), LOAD)
    slow.update(dict.fromkeys(range(64, 2000, 64), SAVE))
    told = fed((step, 0.4, kind) for step, kind in slow.items()).periods()
    assert {(period.length, period.is_active) for period in told} == {(40, True), (64, True)}


def test_a_period_that_changes_ends_and_the_new_one_is_told() -> None:
    old, new = periods_of([*range(50, 2001, 50), *range(2080, 4001, 80)]).periods()
    assert (old.length, old.last, old.is_active, old.next_step) == (50, 2000, False, None)
    assert (new.length, new.first, new.is_active, new.next_step) == (80, 2080, True, 4080)


def test_a_period_ends_though_a_new_one_of_the_same_kind_has_some_of_its_steps() -> None:
    old, new = periods_of([*range(105, 1400, 105), *range(1400, 3001, 70)]).periods()
    assert (old.length, old.is_active, new.length, new.is_active) == (105, False, 70, True)
    late = {1541, 1611, 1751}  # the new one is not proven before every 210th step was slow twice
    old, new = periods_of({*range(106, 1367, 105), *range(1401, 3001, 70)} - late).periods()
    assert (old.length, old.is_active, old.last, new.length, new.is_active) == (105, False, 1471, 70, True)
    old, new = periods_of([*range(60, 1141, 60), *range(1200, 2401, 100)]).periods()
    assert (old.length, old.is_active, new.length, new.is_active) == (60, False, 100, True)
    old, new = periods_of([*range(60, 601, 60), *range(620, 1201, 20)]).periods()
    assert (old.length, old.is_active, new.length, new.is_active) == (60, False, 20, True)


def test_a_period_ends_though_the_new_one_shares_every_other_of_its_steps() -> None:
    before, after = range(105, 1401, 105), range(1470, 2400, 70)
    old, new = fed([(step, 0.4, LOAD) for step in (*before, *after)]).periods()
    assert (old.length, old.last, old.is_active) == (105, 1470, False)  # 1470 is a tooth of both
    assert (new.length, new.is_active) == (70, True)


def test_slow_steps_of_the_new_period_do_not_count_for_the_one_that_ended() -> None:
    """Every 120th until 4,441, then every 75th: each 600th step is a tooth of both."""
    missing = {601, 1201, 1921, 2281, 2401, 3001, 3121}
    first, second = periods_of({*range(121, 4442, 120), *range(4516, 8000, 75)} - missing).periods()
    assert (first.length, first.first, first.last, first.hits, first.is_active) == (120, 121, 4441, 37 - len(missing), False)
    assert (second.length, second.is_active) == (75, True)


def test_steps_beside_those_of_a_period_have_no_period_of_their_own() -> None:
    regular = [(step, 0.07, LOAD) for step in range(37, 6000, 37)]
    beside = [(step + (-2, 1, 2, -1)[step // 74 % 4], 0.07, None) for step in range(370, 6000, 74)]
    assert [period.length for period in fed([*regular, *beside]).periods() if period.tolerance] == []


def test_two_kinds_that_take_turns_have_a_period_each() -> None:
    slow = {**dict.fromkeys(range(33, 2400, 66), LOAD), **dict.fromkeys(range(66, 2400, 66), SAVE)}
    told = fed((step, 0.4, kind) for step, kind in slow.items()).periods()
    assert {(period.length, period.kind) for period in told} == {(66, LOAD), (66, SAVE)}
    some_unknown = {step: None if step % 7 == 0 else kind for step, kind in slow.items()}
    told = fed((step, 0.4, kind) for step, kind in some_unknown.items()).periods()
    assert {(period.length, period.kind) for period in told} == {(66, LOAD), (66, SAVE)}
    assert not fed((step, 0.4, (LOAD, SAVE, NOISE)[step // 50 % 3]) for step in range(50, 401, 50)).periods()


def test_slow_steps_of_unknown_kind_are_of_the_period_of_a_known_one() -> None:
    slow = {step: SAVE if step in (121, 481, 721) else None for step in range(121, 842, 120)}
    period = only(fed((step, 0.4, kind) for step, kind in slow.items()))
    assert (period.length, period.kind, period.hits) == (120, SAVE, 7)


def test_steps_that_are_one_off_are_of_the_period() -> None:
    chance = random.Random(3)
    planted = [step + chance.choice([-1, 0, 1]) for step in range(97, 3000, 97)]
    periods = periods_of(planted)
    period = only(periods)
    assert (period.length, period.is_active) == (97, True) and period.hits >= len(planted) - 1
    ((first, last),) = periods.expected()
    assert first <= 31 * 97 <= last and last - first <= 4


def test_what_comes_by_the_clock_is_told_within_two_percent() -> None:
    chance, step, slow = random.Random(4), 0, []
    for _ in range(20):
        step += round(1000 * chance.uniform(0.99, 1.01))
        slow.append(step)
    period = only(periods_of(slow))
    assert abs(period.length - 1000) <= 20 and period.is_active


def test_a_period_that_goes_on_a_step_earlier_is_one_period() -> None:
    """A judge read "Twice in every 211 steps": the evaluation took an element, and a checkpoint came at an old step."""
    before, after = [211, 422, 633, 844, 1055], [1265, 1476, 1687, 1898, 2109, 2320]
    slow = [(step, 0.3, LOAD) for step in [*before, *after]] + [(1688, 0.4, SAVE)]
    period = only(fed(slow))
    assert (period.length, period.first, period.last, period.kind) == (211, 211, 2320, LOAD)
    twice = fed([(step, 0.3, LOAD) for first in (100, 140) for step in range(first, 2000, 211)]).periods()
    assert len(twice) == 2 and all(each.is_active for each in twice)


def test_a_slow_step_of_another_cause_beside_a_tooth_is_not_its_hit() -> None:
    """A judge read "the last at step 73,216" of work that came at step 73,217: the step before had another cause."""
    off_by_one = [(step + step % 2, 0.2, LOAD) for step in range(347, 3470, 347)]  # each may be a step off
    last = off_by_one[-1][0]
    period = only(fed([*off_by_one, (last + 346, 0.3, SAVE), (last + 347, 0.2, LOAD)]))
    assert period.last == last + 347


def test_one_slow_step_at_another_distance_changes_nothing() -> None:
    before = [(step, 0.4, SAVE) for step in range(50, 251, 50)]
    periods = fed([*before, (252, 3.0, SAVE), (263, 0.9, LOAD)])
    assert only(periods) == only(fed(before))._replace(next_step=300)
    periods.add(300, 0.4, SAVE)
    assert only(periods) == Proven(50, 0, 50, 300, 6, 0.4, SAVE, True, 350)


def test_another_cause_or_length_ends_no_period() -> None:
    slow = [(step, 0.4 if step < 500 else 2.0, SAVE if step < 500 else None) for step in range(50, 1001, 50)]
    assert (only(fed(slow)).last, only(fed(slow)).is_active) == (1000, True)


def test_it_ends_only_when_steps_passed_that_should_have_been_slow() -> None:
    periods = periods_of(range(50, 2001, 50))
    periods.passed(2099)
    assert only(periods).is_active and periods.expected() == [(2100, 2100)]
    periods.passed(2150)
    assert not only(periods).is_active and only(periods).next_step is None and not periods.expected()


def test_a_period_that_ended_stands_again_when_it_comes_again() -> None:
    periods = periods_of([*range(50, 2001, 50), *range(3000, 3051, 50)])
    assert only(periods) == Proven(50, 0, 50, 3050, 41, 0.4, LOAD, True, 3100)


def test_a_period_without_a_common_cause_ends_where_its_hits_are_no_more_than_chance() -> None:
    """Where many steps are slow, some of them lie on any comb: it would go on for ever."""
    burst = [(step, 0.4, None) for step in range(500, 901, 100)]
    noise = [slow for slow in scattered(0.05, 40_000, seed=3) if slow[0] > 900]
    periods = fed([*burst, *noise])
    periods.passed(40_000)
    assert [period.length for period in fed(burst).periods()] == [100]
    assert not [period for period in periods.periods() if period.is_active]


@pytest.mark.parametrize(("seed", "share"), [(seed, share) for seed in range(6) for share in (0.55, 0.75)])
def test_what_is_slow_at_some_of_its_teeth_has_its_own_period_and_not_some_multiple_of_it(seed: int, share: float) -> None:
    """A validation after each 400th step, which is slow enough half of the time, told by its cause or not known."""
    chance = random.Random(seed)
    validations = [(step, 0.08, chance.choice([LOAD, LOAD, None])) for step in range(401, 40_000, 400) if chance.random() < share]
    noise = [slow for slow in scattered(0.002, 40_000, seed) if (slow[0] - 1) % 400]
    periods = fed([*validations, *noise])
    assert [(period.length, period.kind, (period.first - 1) % 400) for period in periods.periods()] == [(400, LOAD, 0)]


def test_what_comes_twice_in_an_epoch_has_the_epochs_length() -> None:
    slow = [epoch * 100 + batch for epoch in range(60) for batch in (39, 79)]
    assert {period.length for period in periods_of(slow, kind=SAVE).periods() if period.is_active} == {100}


def test_a_slow_step_at_half_of_a_periods_length_makes_it_finer() -> None:
    """A judge read "Every 10,000th step" of saves each 5,000th step, of which half were not slow enough."""
    saves = [(step, 0.08, SAVE) for step in (35_001, 45_001, 55_001, 65_001, 75_001)]
    assert only(fed(saves)).length == 10_000
    period = only(fed([*saves, (80_001, 0.075, SAVE)]))
    assert (period.length, period.last, period.hits) == (5_000, 80_001, 6)
    other = fed([*saves, (80_001, 0.075, LOAD)])
    assert only(other).length == 10_000


def test_slow_steps_at_random_prove_nothing() -> None:
    """False alarms of 10,000 histories: benchmarks/bench_periods.py."""
    for seed in range(20):
        assert not fed(scattered((0.002, 0.01, 0.05)[seed % 3], 4000, seed)).periods(), seed


def test_bursts_of_a_busy_machine_prove_nothing() -> None:
    for seed in range(10):
        chance = random.Random(seed)
        starts = [chance.randrange(8000) for _ in range(20)]
        slow = {start + off for start in starts for off in range(60) if chance.random() < 0.3}
        assert not fed((step, 0.03 * chance.lognormvariate(0, 1), None) for step in slow).periods(), seed


def test_a_step_is_counted_once_and_in_order() -> None:
    periods = periods_of([50, 100, 150, 200])
    for step in (200, 150):
        periods.add(step, 9.0, None)
    assert only(periods) == Proven(50, 0, 50, 200, 4, 0.4, LOAD, True, 250)


def test_a_period_that_falls_together_with_another_at_every_second_step_keeps_its_length() -> None:
    """Of steps with two causes only the larger counted: what came every 400th step was told as "every 800th"."""
    for larger, smaller in ((LOAD, SAVE), (SAVE, LOAD)):
        periods, lengths = Periods(), {LOAD: 160, SAVE: 400}
        for step in range(160, 12_000, 80):
            kinds = [kind for kind in (larger, smaller) if step % lengths[kind] == 0]
            periods.passed(step - 1)
            if kinds:
                periods.add(step, 0.4, kinds[0], [(0.2, kind) for kind in kinds[1:]])
        told = sorted((period.length, period.kind, period.is_active) for period in periods.periods())
        assert told == [(160, LOAD, True), (400, SAVE, True)], told


def test_two_causes_of_the_same_slow_steps_are_one_period() -> None:
    periods = Periods()
    for step in range(60, 3000, 60):
        periods.add(step, 0.4, SAVE, [(0.1, LOAD)] if step % 180 else [])
    period = only(periods)
    assert (period.length, period.kind, period.median_s, period.is_active) == (60, SAVE, 0.4, True)
