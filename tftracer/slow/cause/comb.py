"""A period of slow steps as it goes on: its hits, its misses, its kind. Pure."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

#: Shorter periods are none: such steps are just uneven.
SHORTEST = 4
#: Teeth may lie so far from where the tooth after them puts them: exactly there, both teeth a step off, or by this part of the
#: length, as what comes by the clock does.
SLACK, SLACK_SHARE = 2, 0.02
#: A period of slow steps without a common kind ends when fewer of so many teeth were slow.
NEWEST_TEETH, WHOLE_LATER = 12, 0.5
#: A period has the kind that more than half of its hits of known kind share, and this part of all.
OF_A_KIND = 1 / 3
#: Parts of a comb's length that may be the period's.
FINEST = 8
#: The share of a finer comb's teeth that must be hit now and then: what comes twice in an epoch of 100 steps has no length of 20.
NEARLY_ALL = 0.75
#: Slow steps are about as long up to this factor.
ALIKE = 1.3
#: A period ends with so many misses in a row that a share of its teeth no larger than this would miss as often.
SURPRISE = 1e-3


class Proven(NamedTuple):
    """A period that the slow steps of a run prove."""

    length: int  # every so many steps
    tolerance: int  # steps by which a distance may differ from it
    first: int  # steps
    last: int
    hits: int  # slow steps that were its teeth
    median_s: float  # of the newest of them
    kind: Hashable  # that most of them share whose kind is known; None: no such kind
    stands: bool  # False: teeth passed without a slow step
    next_step: int | None  # that is expected to be slow; None: it does not stand


@dataclass(eq=False)
class Comb:
    length: int
    tolerance: int
    first: int
    last: int
    hits: int
    teeth: int  # that passed, from its first to its last
    newest: deque[int]  # hits
    seconds: deque[float]
    kinds: Counter[Hashable] = field(default_factory=Counter)
    stands: bool = True
    again: int = 0  # of an ended one: the step at which it came back
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=NEWEST_TEETH))  # of its newest teeth: which were hits

    def turns_to(self, step: int) -> int:
        """The number of lengths from the last hit to the tooth that a step lies on; 0: the last hit, -1: on none."""
        turns = round((step - self.last) / self.length)
        return turns if turns >= 0 and abs(step - self.last - turns * self.length) <= self.tolerance else -1

    def is_alike(self, seconds: float, kind: Hashable) -> bool:
        """Whether a slow step on a tooth can be one of its hits. Wide teeth are hit by chance: kind or length has to agree."""
        has_its_length = abs(math.log(max(seconds, 1e-9) / max(median(self.seconds), 1e-9))) <= math.log(ALIKE)
        is_kind = kind is not None and kind == max(self.kinds, key=lambda each: self.kinds[each], default=None)
        return self.tolerance <= SLACK or has_its_length or is_kind

    def has(self, step: int, tolerance: int) -> bool:
        """Whether one of its teeth is at a step that is known so far."""
        off = (step - self.last) % self.length
        return min(off, self.length - off) <= self.tolerance + tolerance

    def kind(self) -> Hashable:
        """None: it may be chance's; where many steps are slow, some lie on any comb."""
        known = {kind: times for kind, times in self.kinds.items() if kind is not None}
        kind = max(known, key=lambda each: known[each], default=None)
        enough = max(sum(known.values()) / 2, OF_A_KIND * sum(self.kinds.values()), 1)
        return kind if kind is not None and known[kind] > enough else None

    def is_chance(self) -> bool:
        """Whether too few of its newest teeth were hits for a comb without a kind."""
        is_full = len(self.recent) == NEWEST_TEETH
        return is_full and self.kind() is None and sum(self.recent) < WHOLE_LATER * NEWEST_TEETH

    def patience(self, misses: int) -> int:
        """Misses in a row that end it. ``misses``: that came so far; its past before them tells how many are usual."""
        teeth = max(self.teeth - misses, self.hits)
        miss = (teeth - self.hits + 1) / (teeth + 2)
        return max(2, math.ceil(math.log(SURPRISE) / math.log(miss)))

    def hit(self, step: int, turns: int, seconds: float, kind: Hashable) -> None:
        self.last = step
        self.newest.append(step)
        self.hits += 1
        self.teeth += turns
        self.recent.extend([False] * min(turns - 1, NEWEST_TEETH))
        self.recent.append(True)
        self.count(seconds, kind)

    def count(self, seconds: float, kind: Hashable) -> None:
        self.seconds.append(seconds)
        self.kinds[kind] += 1
        if len(self.kinds) > 16:
            self.kinds.pop(min(self.kinds, key=lambda each: self.kinds[each]))

    def take(self, other: Comb) -> None:
        """Its slow steps are this one's, too."""
        self.first = min(self.first, other.first)
        self.hits += other.hits
        self.kinds.update(other.kinds)
        self.seconds.extend(other.seconds)

    def next_step(self, steps_done: int) -> int:
        """The first tooth that may still come."""
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
    """Whether all teeth of one are teeth of another."""
    return wider.length % comb.length == 0 and comb.has(wider.last, wider.tolerance)


def common_length(one: Comb, other: Comb) -> int:
    """The length of the comb that has the teeth of both; 0: of two that are no parts of one."""
    low, high = sorted((one.length, other.length))
    length = math.gcd(low, one.last - other.last)
    is_one = high % low == 0 and not one.tolerance and not other.tolerance
    both = (high // low + 1) * length / high  # of its teeth
    return length if is_one and length >= SHORTEST and both >= NEARLY_ALL else 0
