"""Ops that differ between two groups of sessions: their values do not overlap, and the difference is large enough to matter.

An op's value in a session is the median of its time in the traces. It is *separated* if every session of one group is above every
one of the other, and the medians differ by more than the floors of trace/analyses/compare.py. With n sessions a side chance
separates an op once in C(2n, n) / 2 times; the floors leave out most of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tftracer.trace.analyses.compare import matters

#: With fewer sessions on a side, chance separates too many ops.
LEAST_SESSIONS = 4


@dataclass(frozen=True)
class OpChange:
    """Medians of the sessions' values, in ns a step. ``separated``: as defined above."""

    key: str
    a_ns: float
    b_ns: float
    separated: bool

    @property
    def delta_ns(self) -> float:
        return self.b_ns - self.a_ns

    @property
    def matters(self) -> bool:
        """Whether the medians differ by more than the floors."""
        return matters(self.a_ns, self.b_ns)


@dataclass(frozen=True)
class OpChanges:
    """``changes``: the ops above the floors, the separated ones first.

    ``enough_sessions``: whether the groups are large enough for a separation to mean anything.
    """

    compared: int
    changes: list[OpChange]
    only_a: dict[str, float]  # ops that no session of b has -> ns, the longest first
    only_b: dict[str, float]
    enough_sessions: bool
    by_chance: float  # how many ops chance alone would separate, before the floors


def op_changes(a: Sequence[Mapping[str, float]], b: Sequence[Mapping[str, float]]) -> OpChanges:
    """``a``, ``b``: of each session with traces, op -> ns. An op that a session does not have took no time in it."""
    in_a, in_b = set().union(*a), set().union(*b)
    shared = sorted(in_a & in_b)
    times = (([side.get(key, 0.0) for side in a], [side.get(key, 0.0) for side in b]) for key in shared)
    changes = [change for key, (first, second) in zip(shared, times) if (change := op_change(key, first, second)).matters]
    enough_sessions = min(len(a), len(b)) >= LEAST_SESSIONS
    chance = 2 / math.comb(len(a) + len(b), len(a)) if enough_sessions else 1.0
    return OpChanges(
        len(shared),
        sorted(changes, key=lambda change: (not change.separated, -abs(change.delta_ns), change.key)),
        _longest_first(a, in_a - in_b) if b else {},
        _longest_first(b, in_b - in_a) if a else {},
        enough_sessions,
        chance * len(shared),
    )


def _longest_first(side: Sequence[Mapping[str, float]], keys: Iterable[str]) -> dict[str, float]:
    """The ops with the medians of their times, without ops that took no time in most sessions."""
    times = {key: median([session.get(key, 0.0) for session in side]) for key in sorted(keys)}
    return dict(sorted(((key, ns) for key, ns in times.items() if ns), key=lambda op: -op[1]))


def op_change(key: str, a: Sequence[float], b: Sequence[float]) -> OpChange:
    """``a``, ``b``: the op's times, one a session."""
    apart = min(b) > max(a) or max(b) < min(a)
    enough = min(len(a), len(b)) >= LEAST_SESSIONS
    return OpChange(key, median(a), median(b), apart and enough)
