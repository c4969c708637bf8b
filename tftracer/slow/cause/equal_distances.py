"""A comb: steps at equal distances (its teeth), at which the slow steps of a period are expected. A tooth with a slow step is a
hit, a tooth without one is a miss. No side effects."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

#: Minimum length of a period, in steps. Slow steps at shorter distances only show that steps are uneven.
SHORTEST = 4
#: Possible tolerances of the distance between two teeth: 0, SLACK steps (each tooth may be a step off), or SLACK_SHARE of the
#: length, for work that is done after a fixed time, not after a fixed number of steps.
SLACK, SLACK_SHARE = 2, 0.02
#: A period whose hits have no common kind ends if less than MIN_HIT_SHARE of its last RECENT_TEETH teeth were hits.
RECENT_TEETH, MIN_HIT_SHARE = 12, 0.5
#: A period has a kind if more than half of its hits of known kind, and more than this share of all its hits, have that kind.
OF_A_KIND = 1 / 3
#: No comb is proven if random slow steps would make more than this share of its teeth slow: slow steps may come in bursts.
MAX_RATE = 0.25
#: A slow step between two teeth makes a period finer only if it had at most this many teeth.
FEW_TEETH = 8
#: The length of a comb is divided by whole numbers up to this, to find a shorter period.
FINEST = 8
#: A finer comb has several teeth within the original length. At least this share of these positions must have been hit: slow
#: steps that come twice in an epoch of 100 steps do not come every 20th step.
NEARLY_ALL = 0.75
#: The durations of two slow steps are similar if they differ by at most this factor.
ALIKE = 1.3
#: A period ends if the probability of as many misses in a row is at most this.
SURPRISE = 1e-3


def is_tooth(distance: int, length: int, tolerance: int) -> bool:
    """Return whether a step at this distance from a tooth is also at a tooth."""
    off = distance % length
    return min(off, length - off) <= tolerance


def chance_of_hits(hits: int, teeth: int, rate: float) -> float:
    """Return an upper bound of the chance of at least this many hits: the tail of the binomial distribution."""
    if hits <= teeth * rate or rate > MAX_RATE:
        return 1.0
    log_ways = math.lgamma(teeth + 1) - math.lgamma(hits + 1) - math.lgamma(teeth - hits + 1)
    log_first_term = log_ways + hits * math.log(rate) + (teeth - hits) * math.log1p(-rate)
    shrinks = (teeth - hits) * rate / ((hits + 1) * (1 - rate))  # ratio of consecutive terms of the tail
    return min(1.0, math.exp(log_first_term) / (1 - shrinks)) if shrinks < 1 else 1.0


class Proven(NamedTuple):
    """A proven period of a run's slow steps."""

    length: int  # steps from one slow step to the next
    tolerance: int  # steps by which a distance may differ from the length
    first: int  # the first slow step
    last: int  # the last slow step
    hits: int  # number of its slow steps
    median_s: float  # median duration of the newest hits
    kind: Hashable  # the kind of most hits of known kind; None: no such kind
    is_active: bool  # False: the period has ended
    next_step: int | None  # the next expected slow step; None: the period has ended

    def has(self, step: int) -> bool:
        return is_tooth(step - self.last, self.length, self.tolerance)


@dataclass(eq=False)
class Comb:
    """A period with its hits. Lengths, tolerances and positions are in steps."""

    length: int  # the distance from one tooth to the next
    tolerance: int
    first: int  # the first hit
    last: int  # the last hit
    hits: int  # number of hits
    teeth: int  # number of teeth from the first to the last hit
    newest: deque[int]  # the newest hits
    seconds: deque[float]  # durations of the newest hits
    kinds: Counter[Hashable] = field(default_factory=Counter)
    is_active: bool = True
    last_kind: Hashable = None  # kind of the last hit
    last_hit_after_end: int = 0  # for an ended period: the last step at which a tooth was hit again; 0: none
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT_TEETH))  # whether each of the newest teeth was hit

    def lengths_to(self, step: int) -> int:
        """Return the number of lengths from the last hit to the tooth at a step.

        0: the step is at the last hit. -1: the step is before the last hit, or not at a tooth.
        """
        lengths = round((step - self.last) / self.length)
        return lengths if lengths >= 0 and abs(step - self.last - lengths * self.length) <= self.tolerance else -1

    def may_be_hit(self, seconds: float, kind: Hashable) -> bool:
        """Return whether a slow step on a tooth can be a hit. With a wide tolerance, its kind or its duration must be similar."""
        is_as_long = abs(math.log(max(seconds, 1e-9) / max(median(self.seconds), 1e-9))) <= math.log(ALIKE)
        has_kind = kind is not None and kind == max(self.kinds, key=lambda each: self.kinds[each], default=None)
        return self.tolerance <= SLACK or is_as_long or has_kind

    def has(self, step: int, tolerance: int) -> bool:
        """Return whether a step is at a tooth. ``tolerance``: steps by which it may be off, besides the comb's own tolerance."""
        return is_tooth(step - self.last, self.length, self.tolerance + tolerance)

    def kind(self) -> Hashable:
        """Return the comb's kind (see OF_A_KIND); None if it has none.

        Hits without a common kind may be chance, for example if many steps are slow.
        """
        known = {kind: times for kind, times in self.kinds.items() if kind is not None}
        kind = max(known, key=lambda each: known[each], default=None)
        enough = max(sum(known.values()) / 2, OF_A_KIND * sum(self.kinds.values()), 1)
        return kind if kind is not None and known[kind] > enough else None

    def is_chance(self) -> bool:
        """Return whether the comb has no kind and too few of its newest teeth were hits."""
        is_full = len(self.recent) == RECENT_TEETH
        return is_full and self.kind() is None and sum(self.recent) < MIN_HIT_SHARE * RECENT_TEETH

    def patience(self, misses: int) -> int:
        """Return the number of misses in a row that ends the period.

        ``misses``: the number of misses since the last hit. They do not count in the period's usual rate of misses.
        """
        teeth = max(self.teeth - misses, self.hits)
        miss = (teeth - self.hits + 1) / (teeth + 2)
        return max(2, math.ceil(math.log(SURPRISE) / math.log(miss)))

    def hit(self, step: int, lengths: int, seconds: float, kind: Hashable) -> None:
        """Add a hit. ``lengths``: the number of lengths since the last hit. ``seconds``: the duration of the slow step.

        If it is at the tooth of the last hit (``lengths``: 0), it only replaces a hit of another kind.
        """
        if not lengths:
            if kind is not None and kind == self.kind() != self.last_kind:
                self.last = self.newest[-1] = step
                self.last_kind = kind
            return
        self.last, self.last_kind = step, kind
        self.newest.append(step)
        self.hits += 1
        self.teeth += lengths
        self.recent.extend([False] * min(lengths - 1, RECENT_TEETH))
        self.recent.append(True)
        self.count(seconds, kind)

    def becomes_finer(self, step: int, alike: Sequence[int], max_chance: float) -> bool:
        """Divide the length by a whole number if a slow step between two teeth shows that the period is finer; return whether it
        did.

        That is so if random slow steps would be at such fractions of the length with less than ``max_chance``. ``alike``: the
        other slow steps of the comb's kind, without its hits. A period that had many steps alone was not a finer one.
        """
        if self.teeth > FEW_TEETH:
            return False
        for parts in range(2, FINEST + 1):
            length = self.length // parts
            if self.tolerance or self.length % parts or length < SHORTEST or (step - self.last) % length:
                continue
            hits = [each for each in (*alike, step) if not (each - self.last) % length]
            teeth, own_teeth = ((step - self.first) // each + 1 for each in (length, self.length))
            rate = min(1.0, (len(alike) + 2 - len(hits)) / max(1, step - self.first))
            positions_hit = {(each - self.last) // length % parts for each in (*hits, self.last)}
            if len(positions_hit) >= NEARLY_ALL * parts and chance_of_hits(len(hits), teeth - own_teeth, rate) < max_chance:
                self.length, self.last, self.last_kind, self.teeth = length, step, self.kind(), teeth
                self.newest.extend(sorted({*self.newest, *hits}))
                self.hits += len(hits)
                self.kinds[self.last_kind] += len(hits)
                return True
        return False

    def follows_a_miss(self) -> bool:
        """Return whether the tooth before the newest hit was a miss."""
        return len(self.newest) > 1 and self.last - self.newest[-2] > self.length + 2 * self.tolerance

    def drop_newest(self) -> None:
        self.newest.pop()
        self.last = self.newest[-1]
        self.hits -= 1

    def end_at(self, step: int) -> None:
        """End the period, without its hits after a step."""
        self.is_active, self.last_hit_after_end = False, 0
        while self.last > step and len(self.newest) > 1:
            self.drop_newest()

    def count(self, seconds: float, kind: Hashable) -> None:
        """Add the duration and the kind of a hit. If there are many kinds, drop the rarest."""
        self.seconds.append(seconds)
        self.kinds[kind] += 1
        if len(self.kinds) > 16:
            self.kinds.pop(min(self.kinds, key=lambda each: self.kinds[each]))

    def merge(self, other: Comb) -> None:
        """Add the hits, kinds and durations of another comb. The caller updates the teeth, and the last and newest hits."""
        self.first = min(self.first, other.first)
        self.hits += other.hits
        self.kinds.update(other.kinds)
        self.seconds.extend(other.seconds)

    def next_step(self, steps_done: int) -> int:
        """Return the first tooth that has not passed yet."""
        return self.last + self.length * max(1, math.ceil((steps_done + 1 - self.tolerance - self.last) / self.length))

    def proven(self, steps_done: int) -> Proven:
        return Proven(
            self.length,
            self.tolerance,
            self.first,
            self.last,
            self.hits,
            median(self.seconds),
            self.kind(),
            self.is_active,
            self.next_step(steps_done) if self.is_active else None,
        )


def is_same(one: Comb, other: Comb) -> bool:
    """Return whether ``one`` has ended and has about the same length as ``other``."""
    return abs(one.length - other.length) <= max(one.tolerance, other.tolerance) and not one.is_active


def has_moved(earlier: Comb, comb: Comb) -> bool:
    """Return whether a comb continues an earlier one of the same kind and length at other steps.

    That is so if at most half of the earlier comb's teeth since the first hit of ``comb`` were hits: these may be chance.
    """
    since = sum(step > comb.first for step in earlier.newest)
    is_alike = earlier.length == comb.length and comb.kind() is not None and earlier.kind() == comb.kind()
    return earlier.is_active and is_alike and earlier.first < comb.first and 2 * since * comb.length <= comb.last - comb.first


def is_within(wider: Comb, comb: Comb) -> bool:
    """Return whether all teeth of ``wider`` are teeth of ``comb``."""
    return wider.length % comb.length == 0 and comb.has(wider.last, wider.tolerance)


def common_length(one: Comb, other: Comb) -> int:
    """Return the length of a comb that has the teeth of both combs, and few others; 0 if there is none."""
    low, high = sorted((one.length, other.length))
    length = math.gcd(low, one.last - other.last)
    can_join = high % low == 0 and not one.tolerance and not other.tolerance
    share = (high // low + 1) * length / high  # share of its teeth that belong to one of the combs
    return length if can_join and length >= SHORTEST and share >= NEARLY_ALL else 0
