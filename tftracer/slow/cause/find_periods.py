"""Finds the periods in a run's slow steps ("every 97th step"). Pure: no clocks, no threads.

Each slow step is tested as the newest tooth of a comb (equal_distances.py). Its distances to earlier slow steps are possible
lengths.
Each comb is followed backwards while at least four of five teeth are slow steps. If slow steps were random, a tooth would be slow
as often as any other step. The chance that they hit as many teeth, times the number of combs tried for this run, must be below
``MAX_CHANCE``. Combs are tried first among the slow steps of the newest one's kind (cause and place), then among all, then among
slow steps of similar duration: a period has one kind, and slow steps of unknown kind may belong to it. Slow steps of another kind
on its teeth do not end a period.

Work that comes every 400th step but is slow only half of the time makes combs of length 1,600 by chance. So the steps between
the teeth of a proven comb are examined, too: if a finer comb is slow there more often than by chance, it is the period.

Slow steps of a proven period are not tried again. So several periods can be found, also a new one after a change. A period ends
after more misses in a row than its past explains, and at least two. Teeth that are also teeth of another period do not count:
when work that came every 105th step now comes every 70th, each 210th step is still slow.

``benchmarks/bench_periods.py`` measures false alarms, power and cost by simulation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tftracer.slow.cause.equal_distances import (
    ALIKE,
    FINEST,
    NEARLY_ALL,
    SHORTEST,
    SLACK,
    SLACK_SHARE,
    Comb,
    Proven,
    chance_of_hits,
    common_length,
    has_moved,
    is_same,
    is_within,
)
from tftracer.trace.arrays.intervals import distinct

Longs = npt.NDArray[np.int64]

#: A comb is proven if the chance that random slow steps make it, times the number of combs tried, is below this.
MAX_CHANCE = 0.001
FEWEST_HITS = 4
#: The share of a comb's teeth that must be slow steps.
MIN_HITS = 0.8
#: Minimum share of a finer comb's teeth that must be slow, and how many of its newest teeth are examined.
MIN_FINER_HITS, MAX_FINER_TEETH = 0.25, 256
#: If a period had this many teeth before a finer period began, it has changed into the finer one. Otherwise it was always a part
#: of the finer one.
TEETH_ALONE = 5
#: Maximum number of slow steps without a period that are kept, and of distances that are tried for a new slow step.
REMEMBERED, TRIED = 512, 32
#: Maximum ratio of a comb's hits of other known kinds to all its hits of known kind.
OTHER_KINDS = 0.25
#: Misses are counted after at most this many of a comb's newest hits, among at most this many teeth after each of them.
HITS_SEARCHED, TEETH_SEARCHED = 16, 40
#: A period's usual time is the median of its newest slow steps, at most this many (the page says so).
TIMED = 64
#: Maximum number of active periods, and of ended periods, that are kept.
MAX_PERIODS = 8


class _Slow(NamedTuple):
    step: int
    seconds: float  # the time that one of its causes took
    kind: Hashable  # the kind of this cause; None: not known


class _Trial(NamedTuple):
    """A comb among some slow steps, and the chance that random slow steps make such a comb."""

    chance: float
    steps: list[int]  # the hits, newest first
    teeth: int
    length: int
    slack: int  # the tolerance, in steps


class Periods:
    """The periods of one run's slow steps. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._without_period: list[_Slow] = []  # slow steps without a period, in order
        self._with_period: deque[int] = deque(maxlen=REMEMBERED)  # slow steps of periods, in order
        self._combs: list[Comb] = []
        self._steps_done = 0
        self._tests = 0  # number of combs tried
        self.merged: list[tuple[int, int]] = []  # (first step, length) of periods that became parts of other periods

    def add(self, step: int, seconds: float, kind: Hashable = None, others: Sequence[tuple[float, Hashable]] = ()) -> None:
        """Add a slow step. A step that is not newer than the last slow step is ignored.

        ``step``: its number in its run. ``seconds``: its duration. ``kind``: its cause and place; None: not known. ``others``:
        seconds and kinds of its other causes: where two periods fall together, a step has the causes of both.
        """
        if step <= max(
            self._without_period[-1].step if self._without_period else 0, self._with_period[-1] if self._with_period else 0
        ):
            return
        self._steps_done = max(self._steps_done, step)
        causes = [_Slow(step, *cause) for cause in ((seconds, kind), *others)]
        hits = self._count_hits(causes)
        if hits:
            self._with_period.append(step)
        for newest in causes:
            if newest not in hits and not self._is_hit_of_finer(newest):
                self._try_combs(newest)

    def _is_hit_of_finer(self, newest: _Slow) -> bool:
        """Return whether a slow step between two of a period's steps shows that the period is a fraction of its length."""
        for comb in [each for each in self._combs if each.is_active and newest.kind is not None and each.kind() == newest.kind]:
            key = comb.first, comb.length
            alike = [slow.step for slow in self._without_period if slow.kind == newest.kind and slow.step > comb.first]
            if comb.becomes_finer(newest.step, alike, MAX_CHANCE):
                self.merged.append(key)
                self._with_period.append(newest.step)
                return True
        return False

    def _try_combs(self, newest: _Slow) -> None:
        """Add a slow step to those without a period, and find out whether it is the newest of a new period."""
        self._without_period.append(newest)
        del self._without_period[:-REMEMBERED]
        for series in self._series(newest):
            best = min(self._trials(series, newest.kind), key=lambda trial: trial.chance, default=None)
            if best and best.chance * self._tests < MAX_CHANCE and (finer := self._finer(best, newest.kind)):
                self._prove(finer, newest.kind)
                return

    def _one_per_step(self, kind: Hashable) -> dict[int, _Slow]:
        """Return step -> slow step, for those without a period. Of several causes of a step, one of this kind is preferred."""
        chosen: dict[int, _Slow] = {}
        for slow in self._without_period:
            if slow.step not in chosen or slow.kind == kind:
                chosen[slow.step] = slow
        return chosen

    def passed(self, steps_done: int) -> None:
        """Note that this many steps have ended, and that all slow steps among them were added. May end periods."""
        self._steps_done = max(self._steps_done, steps_done)
        for comb in [each for each in self._combs if each.is_active and each.hits < MIN_HITS * each.teeth]:
            self._unite(comb)
        for comb in self._combs:
            misses = self._own_misses(comb) if comb.is_active else 0
            if comb.is_active and (misses >= comb.patience(misses) or comb.is_chance()):
                comb.is_active, comb.last_hit_after_end = False, 0
                while comb.follows_a_miss() and self._others_at(comb, comb.last):  # this hit belongs to the other comb
                    comb.drop_newest()

    def _others_at(self, comb: Comb, step: int, tolerance: int = 0) -> list[Comb]:
        """Return the other active combs that have a tooth at a step."""
        return [each for each in self._combs if each is not comb and each.is_active and each.has(step, tolerance)]

    def _own_misses(self, comb: Comb) -> int:
        """Count the misses since the last hit. Teeth that are also teeth of another active comb are not counted."""
        misses, end = 0, self._steps_done
        for hit in reversed(comb.newest):
            passed = range(hit + comb.length, end - comb.tolerance, comb.length)[:TEETH_SEARCHED]
            misses += sum(not self._others_at(comb, tooth, comb.tolerance) for tooth in passed)
            if not self._others_at(comb, hit):
                break
            end = hit
        return misses

    def periods(self) -> list[Proven]:
        """Return the active periods and the newest ended ones, in the order of their proofs."""
        return [comb.proven(self._steps_done) for comb in self._combs]

    def expected(self, steps: int = 0, wanted: Callable[[Hashable], bool] = lambda kind: True) -> list[tuple[int, int]]:
        """Return (first, last) of each range of steps in which the next slow step of a wanted kind is expected.

        ``steps``: the number of ended steps, including those that may still be added as slow.
        """
        done = max(steps, self._steps_done)
        upcoming = ((comb, comb.next_step(done)) for comb in self._combs if comb.is_active and wanted(comb.kind()))
        return sorted((step - comb.tolerance, step + comb.tolerance) for comb, step in upcoming)

    # -------------------------------------------------------------------------------------------------- known periods

    def _count_hits(self, causes: Sequence[_Slow]) -> list[_Slow]:
        """Count a slow step as a hit of active periods, and return those of its causes that are hits.

        Of its causes, the one of the period's kind counts, or the main cause, which comes first. Two hits in a row make an ended
        period active.
        """
        step, _, _ = main = causes[0]
        hits = []
        for comb in self._combs:
            kind = comb.kind()
            cause = next((each for each in causes if kind is not None and each.kind == kind), main)
            if comb.is_active and comb.lengths_to(step) >= 0 and comb.may_be_hit(cause.seconds, cause.kind):
                hits.append(cause)
                comb.hit(step, comb.lengths_to(step), cause.seconds, cause.kind)
        if hits:
            return hits
        for comb in self._combs:
            if not comb.is_active and comb.kind() is not None and comb.lengths_to(step) > 0:
                if comb.last_hit_after_end and 0 < step - comb.last_hit_after_end <= comb.length + comb.tolerance:
                    comb.hit(step, 1, main.seconds, main.kind)
                    comb.is_active = True
                    return [main]
                comb.last_hit_after_end = step
        return []

    def _prove(self, trial: _Trial, kind: Hashable) -> None:
        last, first = trial.steps[0], trial.steps[-1]
        comb = Comb(
            trial.length,
            trial.slack,
            first,
            last,
            len(trial.steps),
            trial.teeth,
            deque(trial.steps[::-1], HITS_SEARCHED),
            deque(maxlen=TIMED),
        )
        hits = set(trial.steps)
        counted = {step: slow for step, slow in self._one_per_step(kind).items() if step in hits}
        for slow in counted.values():
            comb.count(slow.seconds, slow.kind)
        for earlier in self._combs:
            if has_moved(earlier, comb):
                earlier.end_at(comb.first)
        predecessors = [each for each in self._combs if is_same(each, comb)]
        for earlier in predecessors:
            comb.merge(earlier)
            comb.teeth += earlier.teeth
        self._without_period = [
            slow for slow in self._without_period if slow.step not in counted or slow.kind not in (None, counted[slow.step].kind)
        ]
        self._with_period = deque(sorted({*self._with_period, *hits}), maxlen=REMEMBERED)
        if trial.slack and any(
            each.is_active and is_within(comb, each) and comb.kind() in (None, each.kind()) for each in self._combs
        ):
            return  # a known period's slow steps cause these, which come just before or after them
        if any(each.is_active and each.length == comb.length and is_within(comb, each) for each in self._combs):
            return  # another cause of the same slow steps
        self._combs = [*(each for each in self._combs if each not in predecessors), comb]
        self._unite(comb)
        self._forget()

    def _unite(self, comb: Comb) -> None:
        """End or merge the combs of the same kind that are part of this comb, or that are part of a finer comb together with
        it."""
        has_enough_hits = comb.hits >= MIN_HITS * comb.teeth
        for other in [each for each in self._combs if each is not comb and each.kind() == comb.kind()]:
            if has_enough_hits and not other.is_active:
                continue
            if not is_within(other, comb):
                if other.is_active and (length := common_length(comb, other)):
                    self._drop_merged(other)
                    self.merged.append((comb.first, comb.length))
                    comb.merge(other)
                    comb.newest.extend(sorted({*comb.newest, *other.newest}))
                    comb.last, comb.length = comb.newest[-1], length
                    comb.teeth = 1 + (comb.last - comb.first) // length
            elif has_enough_hits and comb.first - other.first >= TEETH_ALONE * other.length:
                other.is_active, other.last_hit_after_end = False, 0  # it has become the finer period
            else:
                self._drop_merged(other)

    def _drop_merged(self, part: Comb) -> None:
        self._combs.remove(part)
        self.merged.append((part.first, part.length))

    def _forget(self) -> None:
        for is_active in (True, False):
            combs = [comb for comb in self._combs if comb.is_active is is_active]
            for comb in sorted(combs, key=lambda comb: comb.last)[:-MAX_PERIODS]:
                self._combs.remove(comb)

    # -------------------------------------------------------------------------------------------------------- proofs

    def _series(self, newest: _Slow) -> list[list[int]]:
        """Return the series of slow steps in which combs are tried: slow steps of the newest one's kind first."""
        slow_steps = self._without_period
        same_kind = [slow.step for slow in slow_steps if slow.kind == newest.kind] if newest.kind is not None else []
        low, high = newest.seconds / ALIKE, newest.seconds * ALIKE
        alike = [slow.step for slow in slow_steps if low <= slow.seconds <= high]
        series = [same_kind, list(dict.fromkeys(slow.step for slow in slow_steps)), list(dict.fromkeys(alike))]
        return [steps for steps in series if len(steps) >= FEWEST_HITS]

    def _finer(self, trial: _Trial, preferred_kind: Hashable) -> _Trial | None:
        """Return the best comb of a fraction of the length if steps between the teeth are slow, too, else ``trial``; None if too
        few of the teeth are slow."""
        if trial.slack:
            return trial
        slow_steps = self._one_per_step(preferred_kind).values()
        known = Counter(slow.kind for slow in slow_steps if slow.kind is not None and slow.step in trial.steps)
        kind = max(known, key=lambda each: known[each], default=None)
        alike = {slow.step for slow in self._without_period if slow.kind in (None, kind)}
        last, first = trial.steps[0], trial.steps[-1]
        finer: list[_Trial] = []
        for parts in range(2, FINEST + 1):
            length = trial.length // parts
            if trial.length % parts or length < SHORTEST:
                continue
            teeth = range(last, first - 1, -length)[:MAX_FINER_TEETH]
            hits = [step for step in teeth if step in alike]
            between = [step for step in teeth if (last - step) % trial.length]
            off_teeth = sum(teeth[-1] <= step <= last for step in alike) - len(hits)
            rate = min(1.0, (off_teeth + 1) / max(1, last - teeth[-1] - len(teeth)))
            chance = chance_of_hits(sum(step in alike for step in between), len(between), rate)
            positions_hit = {(last - step) // length % parts for step in hits}
            if chance < MAX_CHANCE / FINEST and len(positions_hit) >= NEARLY_ALL * parts:
                finer.append(_Trial(chance, hits, len(teeth), length, 0))
        best = min(finer, key=lambda each: each.chance, default=trial)
        return best if len(best.steps) >= MIN_FINER_HITS * best.teeth else None

    def _trials(self, steps: list[int], kind: Hashable) -> Iterator[_Trial]:
        newest, with_period = steps[-1], list(self._with_period)
        kinds = {step: slow.kind for step, slow in self._one_per_step(kind).items()}
        lengths = newest - distinct(np.array(steps[-TRIED - 1 : -1], np.int64))
        lengths = lengths[lengths >= SHORTEST]
        sorted_steps = np.sort([*steps, *with_period, np.iinfo(np.int64).max])
        wide = np.round(SLACK_SHARE * lengths).astype(int)
        for slack in (np.zeros_like(lengths), np.full_like(lengths, SLACK), np.where(wide > SLACK, wide, lengths)):
            tried = 10 * slack < lengths
            self._tests += int(tried.sum())
            # Two misses in a row end a comb. So most combs are excluded by a test for hits 2 or 3 lengths back.
            plausible = tried & (
                _any_near(sorted_steps, newest - 2 * lengths, slack) | _any_near(sorted_steps, newest - 3 * lengths, slack)
            )
            for length, tolerance in zip(lengths[plausible].tolist(), slack[plausible].tolist()):
                trial = _follow(steps, with_period, length, tolerance)
                if trial and _may_have_one_cause([kinds[step] for step in trial.steps]):
                    yield trial


def _may_have_one_cause(kinds: Sequence[Hashable]) -> bool:
    """Return whether enough hits have one kind (or an unknown one) and few have other known kinds.

    If two causes alternate, each needs a separate proof.
    """
    times = Counter(kinds).most_common()
    known = [count for kind, count in times if kind is not None]
    return len(kinds) >= FEWEST_HITS + len(kinds) - times[0][1] and sum(known[1:]) <= OTHER_KINDS * sum(known)


def _follow(steps: Sequence[int], with_period: Sequence[int], length: int, slack: int) -> _Trial | None:
    """Follow a comb back from the newest step while enough teeth are hits. Steps of other periods do not count as misses."""
    at, hits, teeth, lengths, missed = steps[-1], [steps[-1]], 1, 0, False
    accepted = (1, 1, 0)  # (hits, teeth, lengths) from the newest step to the last hit at which enough teeth were hits
    while at - length + slack >= steps[0] and len(hits) < REMEMBERED:
        at -= length
        lengths += 1
        near = _nearest(steps, at, slack)
        if near is not None:
            at, missed, teeth = near, False, teeth + 1
            hits.append(near)
            if len(hits) >= MIN_HITS * teeth:
                accepted = (len(hits), teeth, lengths)
        elif _nearest(with_period, at, slack) is None:
            if missed:
                break
            teeth, missed = teeth + 1, True
    count, teeth, lengths = accepted
    if count < FEWEST_HITS:
        return None
    del hits[count:]
    span = hits[0] - hits[-1]
    off_teeth = bisect_right(steps, hits[0]) - bisect_left(steps, hits[-1]) - count
    # Share of slow steps among the steps that are not teeth.
    rate = min(1.0, (2 * slack + 1) * (off_teeth + 1) / max(1, span - teeth))
    # The newest step and the length were selected, so two of the hits are no evidence.
    return _Trial(chance_of_hits(count - 2, teeth - 2, rate), hits, teeth, round(span / lengths), slack)


def _any_near(steps: Longs, at: Longs, slack: Longs) -> npt.NDArray[np.bool_]:
    """Return for each position whether one of the sorted steps is within ``slack`` of it.

    The last step must be larger than any position.
    """
    near: npt.NDArray[np.bool_] = steps[np.searchsorted(steps, at - slack)] <= at + slack
    return near


def _nearest(steps: Sequence[int], at: int, slack: int) -> int | None:
    """Return the sorted step nearest to a position, within ``slack`` of it; None if there is none."""
    index = bisect_left(steps, at - slack)
    nearest = None
    while index < len(steps) and steps[index] <= at + slack:
        if nearest is None or abs(steps[index] - at) < abs(nearest - at):
            nearest = steps[index]
        index += 1
    return nearest
