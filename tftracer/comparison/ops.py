"""Ops that differ between two groups of sessions, by more than chance and by enough to matter.

An op's value in a session is the median of its time in the traces. It is *separated* if the means of the groups differ by more
than any op's do in 97% of the other ways to deal the sessions out to two groups (odd_ops.py), and their medians, in the same
direction, by more than the floors of trace/analyses/compare.py: of equal sessions one comparison in twenty separates any op.
Where all sessions have as many traces, the means of an op's shortest times count as well: traces follow each other, so a busy
moment makes most of a session's long, and the shortest is disturbed least. Sessions of one side that were recorded in a row
count once, as their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tftracer.comparison import odd_ops
from tftracer.comparison.order import in_turns
from tftracer.trace.analyses.compare import matters
from tftracer.trace.arrays.types import Bool, Float64

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

    ``enough_sessions``: whether the groups are large enough, and were recorded in turns, for a separation to mean anything.
    """

    compared: int
    changes: list[OpChange]
    only_a: dict[str, float]  # ops that no session of b has -> ns, the longest first
    only_b: dict[str, float]
    enough_sessions: bool


def op_changes(
    a: Sequence[Mapping[str, float]],
    b: Sequence[Mapping[str, float]],
    started: tuple[Sequence[float], Sequence[float]] | None = None,
    shortest: Sequence[Mapping[str, float]] = (),
) -> OpChanges:
    """``a``, ``b``: of each session with traces, op -> ns. An op that a session does not have took no time in it.

    ``started``: when these sessions began, where that is known of all. ``shortest``: of all of them, op -> ns in the trace in
    which it took least; empty where sessions have different numbers of traces.
    """
    in_a, in_b = set().union(*a), set().union(*b)
    shared = sorted(in_a & in_b)
    times = _table((*a, *b), shared)
    separated, enough_sessions = _separated([times, *([_table(shortest, shared)] if shortest else [])], len(a), started)
    changes = [
        OpChange(key, median(row[: len(a)]), median(row[len(a) :]), bool(is_separated))
        for key, row, is_separated in zip(shared, times.tolist(), separated)
    ] if a and b else []  # fmt: skip
    return OpChanges(
        len(shared),
        sorted((each for each in changes if each.matters), key=lambda each: (not each.separated, -abs(each.delta_ns), each.key)),
        _longest_first(a, in_a - in_b) if b else {},
        _longest_first(b, in_b - in_a) if a else {},
        enough_sessions,
    )


def _table(sessions: Sequence[Mapping[str, float]], keys: Sequence[str]) -> Float64:
    """[keys, sessions]"""
    return np.array([[session.get(key, 0.0) for session in sessions] for key in keys]).reshape(len(keys), len(sessions))


def _separated(
    tables: Sequence[Float64], in_a: int, started: tuple[Sequence[float], Sequence[float]] | None
) -> tuple[Bool, bool]:
    """([ops] whether they are separated in one of the tables, whether there are enough sessions). All tables are one test. The
    first has the values that are shown: no op is separated in another direction than they differ in."""
    times, count = np.concatenate(tables), tables[0].shape[1]
    means, first = in_turns(times, *started) if 0 < in_a < count and started is not None else (times, in_a)
    enough_sessions = min(first, means.shape[1] - first) >= LEAST_SESSIONS
    if not enough_sessions:
        return np.zeros(len(tables[0]), bool), False
    shown = np.sign(np.median(tables[0][:, in_a:], axis=1) - np.median(tables[0][:, :in_a], axis=1))
    direction = np.sign(means[:, first:].mean(axis=1) - means[:, :first].mean(axis=1)).reshape(len(tables), -1)
    changed = odd_ops.changed(means, first).reshape(len(tables), -1)
    return np.asarray((changed & (direction == shown)).any(axis=0)), True


def _longest_first(side: Sequence[Mapping[str, float]], keys: Iterable[str]) -> dict[str, float]:
    """The ops with the medians of their times, without ops that took no time in most sessions."""
    times = {key: median([session.get(key, 0.0) for session in side]) for key in sorted(keys)}
    return dict(sorted(((key, ns) for key, ns in times.items() if ns), key=lambda op: -op[1]))
