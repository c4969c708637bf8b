"""A comb: the steps at equal distances (its teeth) at which the slow steps of a period come. A slow step on a tooth is a hit,
any other tooth a miss. Pure."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

#: Slow steps at shorter distances are no period, only uneven steps.
SHORTEST = 4
#: Tolerances of the distance between two teeth: none, SLACK steps (each tooth may be a step off), or this share of the length, as
#: for work that is done by the clock.
SLACK, SLACK_SHARE = 2, 0.02
#: A period without a common kind ends when less than this share of its recent teeth were hits.
RECENT_TEETH, MIN_HIT_SHARE = 12, 0.5
#: A period has the kind that more than half of its hits of known kind share, and this share of all hits.
OF_A_KIND = 1 / 3
#: The period may be the length of a comb divided by a whole number up to this.
FINEST = 8
#: The share of a finer comb's teeth that must be hit at times: slow steps that come twice in an epoch of 100 steps do not come
#: every 20th step.
NEARLY_ALL = 0.75
#: The lengths of two slow steps are similar up to this factor.
ALIKE = 1.3
#: A period ends when a series of misses this long has at most this probability.
SURPRISE = 1e-3


def is_tooth(distance: int, length: int, tolerance: int) -> bool:
    """Whether a step at this distance from a tooth is at a tooth, too."""
    off = distance % length
    return min(off, length - off) <= tolerance


class Proven(NamedTuple):
    """A period that the slow steps of a run prove."""

    length: int  # steps from one slow step to the next
    tolerance: int  # steps by which a distance may differ from it
    first: int  # the first slow step
    last: int  # the last slow step
    hits: int  # number of its slow steps
    median_s: float  # of the newest hits
    kind: Hashable  # the kind of most hits of known kind; None: no such kind
    stands: bool  # False: it has ended
    next_step: int | None  # the next expected slow step; None: it has ended

    def has(self, step: int) -> bool:
        return is_tooth(step - self.last, self.length, self.tolerance)


@dataclass(eq=False)
class Comb:
    length: int
    tolerance: int
    first: int
    last: int
    hits: int
    teeth: int  # number of teeth from the first to the last hit
    newest: deque[int]  # the newest hits
    seconds: deque[float]  # lengths of the newest hits
    kinds: Counter[Hashable] = field(default_factory=Counter)
    stands: bool = True
    again: int = 0  # for an ended period: the step at which a tooth was hit again; 0: none
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT_TEETH))  # whether each of the newest teeth was hit

    def lengths_to(self, step: int) -> int:
        """Return the number of lengths from the last hit to the tooth at a step. 0: the last hit; -1: no tooth is there."""
        lengths = round((step - self.last) / self.length)
        return lengths if lengths >= 0 and abs(step - self.last - lengths * self.length) <= self.tolerance else -1

    def may_be_hit(self, seconds: float, kind: Hashable) -> bool:
        """Whether a slow step on a tooth can be a hit. With a wide tolerance its kind or length has to be similar, too."""
        has_its_length = abs(math.log(max(seconds, 1e-9) / max(median(self.seconds), 1e-9))) <= math.log(ALIKE)
        is_kind = kind is not None and kind == max(self.kinds, key=lambda each: self.kinds[each], default=None)
        return self.tolerance <= SLACK or has_its_length or is_kind

    def has(self, step: int, tolerance: int) -> bool:
        """Whether a tooth is at a step that has passed."""
        return is_tooth(step - self.last, self.length, self.tolerance + tolerance)

    def kind(self) -> Hashable:
        """Return the kind of most hits; None if there is none. Then the hits may be chance, as where many steps are slow."""
        known = {kind: times for kind, times in self.kinds.items() if kind is not None}
        kind = max(known, key=lambda each: known[each], default=None)
        enough = max(sum(known.values()) / 2, OF_A_KIND * sum(self.kinds.values()), 1)
        return kind if kind is not None and known[kind] > enough else None

    def is_chance(self) -> bool:
        """Whether the comb has no kind and too few of its newest teeth were hits."""
        is_full = len(self.recent) == RECENT_TEETH
        return is_full and self.kind() is None and sum(self.recent) < MIN_HIT_SHARE * RECENT_TEETH

    def patience(self, misses: int) -> int:
        """Return how many misses in a row end the period. ``misses``: those so far, which its usual rate does not include."""
        teeth = max(self.teeth - misses, self.hits)
        miss = (teeth - self.hits + 1) / (teeth + 2)
        return max(2, math.ceil(math.log(SURPRISE) / math.log(miss)))

    def hit(self, step: int, lengths: int, seconds: float, kind: Hashable) -> None:
        self.last = step
        self.newest.append(step)
        self.hits += 1
        self.teeth += lengths
        self.recent.extend([False] * min(lengths - 1, RECENT_TEETH))
        self.recent.append(True)
        self.count(seconds, kind)

    def follows_a_miss(self) -> bool:
        """Whether the tooth before the newest hit was none."""
        return len(self.newest) > 1 and self.last - self.newest[-2] > self.length + 2 * self.tolerance

    def drop_newest(self) -> None:
        self.newest.pop()
        self.last = self.newest[-1]
        self.hits -= 1

    def count(self, seconds: float, kind: Hashable) -> None:
        self.seconds.append(seconds)
        self.kinds[kind] += 1
        if len(self.kinds) > 16:
            self.kinds.pop(min(self.kinds, key=lambda each: self.kinds[each]))

    def take(self, other: Comb) -> None:
        """Add the slow steps of another comb."""
        self.first = min(self.first, other.first)
        self.hits += other.hits
        self.kinds.update(other.kinds)
        self.seconds.extend(other.seconds)

    def next_step(self, steps_done: int) -> int:
        """Return the first tooth that may still come."""
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
            self.stands,
            self.next_step(steps_done) if self.stands else None,
        )


def is_same(one: Comb, other: Comb) -> bool:
    return abs(one.length - other.length) <= max(one.tolerance, other.tolerance) and not one.stands


def is_within(wider: Comb, comb: Comb) -> bool:
    """Whether all teeth of ``wider`` are teeth of ``comb``."""
    return wider.length % comb.length == 0 and comb.has(wider.last, wider.tolerance)


def common_length(one: Comb, other: Comb) -> int:
    """Return the length of one comb that has the teeth of both; 0 if there is none."""
    low, high = sorted((one.length, other.length))
    length = math.gcd(low, one.last - other.last)
    is_one = high % low == 0 and not one.tolerance and not other.tolerance
    both = (high // low + 1) * length / high  # share of its teeth
    return length if is_one and length >= SHORTEST and both >= NEARLY_ALL else 0
