"""Which periods a run's slow steps prove: "every 97th step". Pure: no clocks, no threads.

Each slow step is tested as the newest tooth of a comb. The distances to the slow steps before it are the lengths that come into
question. For each, the comb is followed backwards while at least four of five teeth are slow steps. Were slow steps random,
every tooth would be one at the rate of the slow steps beside the comb. The chance of that many teeth, times all combs that this
run has tried, has to be below ``ALARM``. A comb is tried among the slow steps of the newest one's kind (cause and place) first,
then among all of them and among those about as long: a period belongs to one kind, and slow steps of unknown kind may be its own.
Another kind on its teeth ends no period.

What comes every 400th step, and is slow half of the time only, has whole combs of 1,600 by chance. So the teeth between those of
a proven comb are looked at: where they are slow more often than chance, the period is the finer one.

Slow steps of a proven period are no longer tried, so that several periods are found, and a new one after a change. A period
ends when more of its teeth in a row passed and were not slow than its past explains: two at least. Teeth that another period
has, too, do not count: every 210th step is slow of what came every 105th and comes every 70th now.

``benchmarks/bench_periods.py`` measures false alarms, power and cost by simulation.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.slow.cause.comb import (
    ALIKE,
    FINEST,
    NEARLY_ALL,
    SHORTEST,
    SLACK,
    SLACK_SHARE,
    Comb,
    Proven,
    common_length,
    is_same,
    is_within,
)

Longs = npt.NDArray[np.int64]

#: The chance of a comb that random slow steps may have, times all combs that were tried.
ALARM = 0.001
FEWEST_HITS = 4
#: Teeth of a comb that have to be slow steps.
WHOLE = 0.8
#: Where chance makes so many of the teeth slow steps, nothing is proven: bursts differ too much within.
DENSE = 0.25
#: How many of a finer comb's teeth have to be slow, and how many of the newest are looked at.
SOMETIMES, MOST_TEETH = 0.25, 256
#: A period became a finer one if it had so many teeth before that.
ALONE = 5
#: Slow steps of no period that are remembered, and those whose distances are tried at each new one.
REMEMBERED, TRIED = 512, 32
#: Hits of other known kinds than the most frequent one that a comb may have: it belongs to one cause.
OTHER_KINDS = 0.25
#: The newest hits of a comb, and teeth after each, that are looked through for misses.
HITS_LOOKED_AT, TEETH_LOOKED_AT = 16, 40
#: Periods that stand, and ended ones, that are remembered.
MOST = 8


class _Slow(NamedTuple):
    step: int
    seconds: float
    kind: Hashable


class _Trial(NamedTuple):
    """A comb among some slow steps, and the chance of it."""

    chance: float
    steps: list[int]  # its hits, the newest first
    teeth: int
    length: int
    slack: int


class Periods:
    """The periods of one run's slow steps. Used by one thread at a time."""

    def __init__(self) -> None:
        self._loose: list[_Slow] = []  # of no period, by step
        self._taken: deque[int] = deque(maxlen=REMEMBERED)  # steps of periods, by step
        self._combs: list[Comb] = []
        self._steps_done = 0
        self._tests = 0
        self.taken_in: list[tuple[int, int]] = []  # (first step, length) of periods that are parts of others now

    def add(self, step: int, seconds: float, kind: Hashable = None) -> None:
        """A slow step. Steps that are not newer than the last one are left out.

        ``step``: its number in its run. ``seconds``: its length. ``kind``: its cause and place; None: not known.
        """
        if step <= max(self._loose[-1].step if self._loose else 0, self._taken[-1] if self._taken else 0):
            return
        self._steps_done = max(self._steps_done, step)
        if self._on_a_tooth(step, seconds, kind):
            self._taken.append(step)
            return
        newest = _Slow(step, seconds, kind)
        self._loose.append(newest)
        del self._loose[:-REMEMBERED]
        for series in self._series(newest):
            best = min(self._trials(series), key=lambda trial: trial.chance, default=None)
            if best and best.chance * self._tests < ALARM and (finer := self._finer(best)):
                self._prove(finer)
                return

    def passed(self, steps_done: int) -> None:
        """So many steps of the run have ended, and those of them that were slow have been added."""
        self._steps_done = max(self._steps_done, steps_done)
        for comb in [each for each in self._combs if each.stands and each.hits < WHOLE * each.teeth]:
            self._unite(comb)
        for comb in self._combs:
            misses = self._own_misses(comb) if comb.stands else 0
            if comb.stands and (misses >= comb.patience(misses) or comb.is_chance()):
                comb.stands, comb.again = False, 0
                while len(comb.newest) > 1 and self._is_others(comb, comb.newest[-1], 0):
                    comb.newest.pop()
                comb.last = comb.newest[-1]

    def _is_others(self, comb: Comb, step: int, tolerance: int) -> bool:
        """Whether a step is a tooth of another comb that stands."""
        return any(each.has(step, tolerance) for each in self._combs if each is not comb and each.stands)

    def _own_misses(self, comb: Comb) -> int:
        """Teeth of a comb, and of no other that stands, that passed since one such was slow."""
        misses, end = 0, self._steps_done
        for hit in reversed(comb.newest):
            passed = range(hit + comb.length, end - comb.tolerance, comb.length)[:TEETH_LOOKED_AT]
            misses += sum(not self._is_others(comb, tooth, comb.tolerance) for tooth in passed)
            if not self._is_others(comb, hit, 0):
                break
            end = hit
        return misses

    def periods(self) -> list[Proven]:
        """Those that stand and the newest that ended, in the order in which they were proven."""
        return [comb.proven(self._steps_done) for comb in self._combs]

    def expected(self, steps: int = 0, wanted: Callable[[Hashable], bool] = lambda kind: True) -> list[tuple[int, int]]:
        """The first and the last step of each range in which a slow one of a kind that is wanted is expected next.

        ``steps``: that have ended, those included whose slow ones have not been added yet.
        """
        done = max(steps, self._steps_done)
        upcoming = ((comb, comb.next_step(done)) for comb in self._combs if comb.stands and wanted(comb.kind()))
        return sorted((step - comb.tolerance, step + comb.tolerance) for comb, step in upcoming)

    # -------------------------------------------------------------------------------------------------- known periods

    def _on_a_tooth(self, step: int, seconds: float, kind: Hashable) -> bool:
        """Whether a step is one of a period that stands. One that ended stands again with two teeth in a row."""
        hit = [comb for comb in self._combs if comb.stands and comb.turns_to(step) >= 0 and comb.is_alike(seconds, kind)]
        for comb in hit:
            turns = comb.turns_to(step)
            if turns:
                comb.hit(step, turns, seconds, kind)
        if hit:
            return True
        for comb in self._combs:
            if not comb.stands and comb.kind() is not None and comb.turns_to(step) > 0:
                if comb.again and 0 < step - comb.again <= comb.length + comb.tolerance:
                    comb.hit(step, 1, seconds, kind)
                    comb.stands = True
                    return True
                comb.again = step
        return False

    def _prove(self, trial: _Trial) -> None:
        last, first = trial.steps[0], trial.steps[-1]
        comb = Comb(
            trial.length,
            trial.slack,
            first,
            last,
            len(trial.steps),
            trial.teeth,
            deque(trial.steps[::-1], HITS_LOOKED_AT),
            deque(maxlen=64),
        )
        for earlier in [each for each in self._combs if is_same(each, comb)]:
            self._combs.remove(earlier)
            comb.take(earlier)
            comb.teeth += earlier.teeth
        hits = set(trial.steps)
        for slow in self._loose:
            if slow.step in hits:
                comb.count(slow.seconds, slow.kind)
        self._loose = [slow for slow in self._loose if slow.step not in hits]
        self._taken = deque(sorted({*self._taken, *hits}), maxlen=REMEMBERED)
        self._combs.append(comb)
        self._unite(comb)
        self._forget()

    def _unite(self, comb: Comb) -> None:
        """End or take in the combs of its kind that are parts of one: with all teeth on its own, or on those of a finer one."""
        is_whole = comb.hits >= WHOLE * comb.teeth
        for other in [each for each in self._combs if each is not comb and each.kind() == comb.kind()]:
            if is_whole and not other.stands:
                continue
            if not is_within(other, comb):
                if other.stands and (length := common_length(comb, other)):
                    self._take_in(other)
                    self.taken_in.append((comb.first, comb.length))
                    comb.take(other)
                    comb.newest.extend(sorted({*comb.newest, *other.newest}))
                    comb.last, comb.length = comb.newest[-1], length
                    comb.teeth = 1 + (comb.last - comb.first) // length
            elif is_whole and comb.first - other.first >= ALONE * other.length:
                other.stands, other.again = False, 0  # it has become the finer one
            else:
                self._take_in(other)

    def _take_in(self, part: Comb) -> None:
        self._combs.remove(part)
        self.taken_in.append((part.first, part.length))

    def _forget(self) -> None:
        for stands in (True, False):
            alike = [comb for comb in self._combs if comb.stands is stands]
            for comb in sorted(alike, key=lambda comb: comb.last)[:-MOST]:
                self._combs.remove(comb)

    # -------------------------------------------------------------------------------------------------------- proofs

    def _series(self, newest: _Slow) -> list[list[int]]:
        """The slow steps among which combs are tried: those of its kind first."""
        loose = self._loose
        of_kind = [slow.step for slow in loose if slow.kind == newest.kind] if newest.kind is not None else []
        low, high = newest.seconds / ALIKE, newest.seconds * ALIKE
        series = [of_kind, [slow.step for slow in loose], [slow.step for slow in loose if low <= slow.seconds <= high]]
        return [steps for steps in series if len(steps) >= FEWEST_HITS]

    def _finer(self, trial: _Trial) -> _Trial | None:
        """The comb of a part of its length, where teeth between are slow, too, of its kind or an unknown. None: too few are."""
        if trial.slack:
            return trial
        known = Counter(slow.kind for slow in self._loose if slow.kind is not None and slow.step in trial.steps)
        kind = max(known, key=lambda each: known[each], default=None)
        alike = {slow.step for slow in self._loose if slow.kind in (None, kind)}
        last, first = trial.steps[0], trial.steps[-1]
        finer: list[_Trial] = []
        for parts in range(2, FINEST + 1):
            length = trial.length // parts
            if trial.length % parts or length < SHORTEST:
                continue
            teeth = range(last, first - 1, -length)[:MOST_TEETH]
            hits = [step for step in teeth if step in alike]
            between = [step for step in teeth if (last - step) % trial.length]
            beside = sum(teeth[-1] <= step <= last for step in alike) - len(hits)
            rate = min(1.0, (beside + 1) / max(1, last - teeth[-1] - len(teeth)))
            chance = _chance(sum(step in alike for step in between), len(between), rate)
            hit = {(last - step) // length % parts for step in hits}
            if chance < ALARM / FINEST and len(hit) >= NEARLY_ALL * parts:
                finer.append(_Trial(chance, hits, len(teeth), length, 0))
        best = min(finer, key=lambda each: each.chance, default=trial)
        return best if len(best.steps) >= SOMETIMES * best.teeth else None

    def _trials(self, steps: list[int]) -> Iterator[_Trial]:
        newest, taken = steps[-1], list(self._taken)
        kinds = {slow.step: slow.kind for slow in self._loose}
        lengths = newest - np.unique(steps[-TRIED - 1 : -1])
        lengths = lengths[lengths >= SHORTEST]
        every = np.sort([*steps, *taken, np.iinfo(np.int64).max])
        wide = np.round(SLACK_SHARE * lengths).astype(int)
        for slack in (np.zeros_like(lengths), np.full_like(lengths, SLACK), np.where(wide > SLACK, wide, lengths)):
            tried = 10 * slack < lengths
            self._tests += int(tried.sum())
            # Two teeth in a row that are not slow end a comb: few of those that are tried get further.
            further = tried & (_any_near(every, newest - 2 * lengths, slack) | _any_near(every, newest - 3 * lengths, slack))
            for length, off in zip(lengths[further].tolist(), slack[further].tolist()):
                trial = _follow(steps, taken, length, off)
                if trial and _is_of_one([kinds[step] for step in trial.steps]):
                    yield trial


def _is_of_one(kinds: Sequence[Hashable]) -> bool:
    """Whether hits can have one cause. Two that take turns are proven each by itself; that takes more hits than one does."""
    times = Counter(kinds).most_common()
    known = [count for kind, count in times if kind is not None]
    return len(kinds) >= FEWEST_HITS + len(kinds) - times[0][1] and sum(known[1:]) <= OTHER_KINDS * sum(known)


def _follow(steps: Sequence[int], taken: Sequence[int], length: int, slack: int) -> _Trial | None:
    """The comb backwards from the newest step, as long as it is nearly whole. Teeth on steps of other periods do not count."""
    at, hits, teeth, index, missed = steps[-1], [steps[-1]], 1, 0, False
    whole = (1, 1, 0)  # hits, teeth and lengths back to where it was nearly whole last
    while at - length + slack >= steps[0] and len(hits) < REMEMBERED:
        at -= length
        index += 1
        near = _nearest(steps, at, slack)
        if near is not None:
            at, missed, teeth = near, False, teeth + 1
            hits.append(near)
            if len(hits) >= WHOLE * teeth:
                whole = (len(hits), teeth, index)
        elif _nearest(taken, at, slack) is None:
            if missed:
                break
            teeth, missed = teeth + 1, True
    count, teeth, index = whole
    if count < FEWEST_HITS:
        return None
    del hits[count:]
    span = hits[0] - hits[-1]
    beside = bisect_right(steps, hits[0]) - bisect_left(steps, hits[-1]) - count
    rate = min(1.0, (2 * slack + 1) * (beside + 1) / max(1, span - teeth))  # of the steps beside the teeth
    # The newest step and the length were chosen: the other teeth are left to chance.
    return _Trial(_chance(count - 2, teeth - 2, rate), hits, teeth, round(span / index), slack)


def _any_near(steps: Longs, at: Longs, slack: Longs) -> npt.NDArray[np.bool_]:
    """Which places have one of sorted steps, the last of them without a bound, at most ``slack`` from them."""
    near: npt.NDArray[np.bool_] = steps[np.searchsorted(steps, at - slack)] <= at + slack
    return near


def _nearest(steps: Sequence[int], at: int, slack: int) -> int | None:
    """The one of sorted steps that is nearest to a place, at most ``slack`` from it."""
    index = bisect_left(steps, at - slack)
    nearest = None
    while index < len(steps) and steps[index] <= at + slack:
        if nearest is None or abs(steps[index] - at) < abs(nearest - at):
            nearest = steps[index]
        index += 1
    return nearest


def _chance(hits: int, teeth: int, rate: float) -> float:
    """At least so many of the teeth are hits, each at a rate: the binomial tail, or somewhat more."""
    if hits <= teeth * rate or rate > DENSE:
        return 1.0
    ways = math.lgamma(teeth + 1) - math.lgamma(hits + 1) - math.lgamma(teeth - hits + 1)
    least = ways + hits * math.log(rate) + (teeth - hits) * math.log1p(-rate)
    shrinks = (teeth - hits) * rate / ((hits + 1) * (1 - rate))  # each further term of the tail, to the one before it
    return min(1.0, math.exp(least) / (1 - shrinks)) if shrinks < 1 else 1.0
