"""Finds ops that differ between two groups of sessions by more than chance and by enough to matter.

An op's value in a session is the median of its times in the traces, or the shortest of them: traces follow each other, so if the
machine was busy for a moment, most times of a session are longer, but the shortest is hardly longer. Of the two values, the one
that scatters less between the sessions of a side is used and shown; the shortest only if all sessions have equally many traces.

An op is *separated* if its means in the two groups differ by more than those of any op in 97% of the other ways to divide the
sessions into two groups (odd_ops.py; one test covers medians and shortest times), and if their medians differ, in the same
direction, by more than the floors of odd_ops.py. If the sides differ by chance only, one comparison in twenty
still separates an op. Sessions of one side that were recorded one after the other count once, as their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tftracer.comparison import odd_ops
from tftracer.comparison.odd_ops import matters
from tftracer.comparison.recorded_in_turns import mean_of_each_turn
from tftracer.trace.arrays.types import Bool, Float64, Int64
from tftracer.trace.units import percent

#: If only differences above this share would be separated, the text recommends more traces.
SMALL_DIFFERENCE = 0.1
DETECT_SMALLER = (
    "To detect smaller ones, record more sessions, more traces in each (tftracer run --trace 25), or ops that share no threads "
    "(TF_NUM_INTRAOP_THREADS=1)."
)
#: With fewer sessions per side, too many ops would be separated by chance.
MIN_SESSIONS = 4


@dataclass(frozen=True)
class OpChange:
    """Medians of the sessions' values, in ns per step.

    ``separated``: as defined above. ``of_shortest``: whether the values are the shortest times of the sessions' traces.
    """

    key: str
    a_ns: float
    b_ns: float
    separated: bool
    of_shortest: bool

    @property
    def delta_ns(self) -> float:
        return self.b_ns - self.a_ns


@dataclass(frozen=True)
class OpChanges:
    """The compared ops. ``changes``: the ops that differ by more than the floors, separated ops first.

    ``enough_sessions``: whether separations are meaningful: the groups are large enough and were recorded in turns.
    ``longest``: the op that takes most time. ``told_from``: the smallest relative difference at which it would be separated.
    """

    compared: int  # number of ops that both sides have
    changes: list[OpChange]
    only_a: dict[str, float]  # ops that no session of b has -> ns, longest first
    only_b: dict[str, float]
    enough_sessions: bool
    longest: str = ""
    told_from: float | None = None  # None: no difference would be separated

    @property
    def smallest_difference(self) -> str:
        """The smallest difference of the longest op that these sessions show, in words; "" if they can show none."""
        if self.told_from is None:
            return ""
        share = percent(self.told_from)
        more = "" if self.told_from <= SMALL_DIFFERENCE else f" {DETECT_SMALLER}"
        shown = f"these sessions separate a difference of {share} or more from chance"
        return f"Of {self.longest}, which takes most time, {shown}.{more}"


def op_changes(
    a: Sequence[Mapping[str, float]],
    b: Sequence[Mapping[str, float]],
    started: tuple[Sequence[float], Sequence[float]] | None = None,
    shortest: Sequence[Mapping[str, float]] = (),
) -> OpChanges:
    """Compare the ops. ``a``, ``b``: for each session with traces, op -> ns; a missing op took no time.

    ``started``: when these sessions began, if known for all. ``shortest``: for each of these sessions, op -> shortest ns over its
    traces; empty if the sessions have different numbers of traces.
    """
    in_a, in_b = set().union(*a), set().union(*b)
    shared = sorted(in_a & in_b)
    tables = np.stack([_table((*a, *b), shared), *([_table(shortest, shared)] if any(shortest) else [])])
    which = _scatters_less(tables, len(a))
    separated, smallest_ns, enough_sessions = _separated(tables, which, len(a), started)
    times = tables[which, np.arange(len(shared))]
    medians = np.median(times, axis=1) if times.size else np.zeros(0)
    longest = int(medians.argmax()) if len(medians) else None
    told_from = None
    if longest is not None and np.isfinite(smallest_ns[longest]):
        told_from = float(smallest_ns[longest] / max(medians[longest], 1.0))
    changes = [
        OpChange(key, median(row[: len(a)]), median(row[len(a) :]), bool(is_separated), bool(of_shortest))
        for key, row, is_separated, of_shortest in zip(shared, times.tolist(), separated, which)
    ] if a and b else []  # fmt: skip
    large = [change for change in changes if matters(change.a_ns, change.b_ns)]
    return OpChanges(
        len(shared),
        sorted(large, key=lambda each: (not each.separated, -abs(each.delta_ns), each.key)),
        _longest_first(a, in_a - in_b) if b else {},
        _longest_first(b, in_b - in_a) if a else {},
        enough_sessions,
        "" if longest is None else shared[longest],
        told_from,
    )


def _table(sessions: Sequence[Mapping[str, float]], keys: Sequence[str]) -> Float64:
    """Return [keys, sessions] times."""
    return np.array([[session.get(key, 0.0) for session in sessions] for key in keys]).reshape(len(keys), len(sessions))


def _scatters_less(tables: Float64, count_a: int) -> Int64:
    """Return [ops] the index of the table whose times scatter less between the sessions of a side."""
    logs = np.log(np.maximum(tables, 1.0))
    sides = [side for side in (logs[..., :count_a], logs[..., count_a:]) if side.shape[-1]]
    return np.asarray(sum(side.var(axis=-1) for side in sides)).argmin(axis=0) if sides else np.zeros(tables.shape[1], np.int64)


def _separated(
    tables: Float64, which: Int64, count_a: int, started: tuple[Sequence[float], Sequence[float]] | None
) -> tuple[Bool, Float64, bool]:
    """Return ([ops] whether each is separated, [ops] the smallest ns that would be separated, whether there are enough sessions).

    ``tables``: [tables, ops, sessions] times, all in one test. ``which``: [ops] index of the table that counts for the op.
    """
    (table_count, ops, sessions), op = tables.shape, np.arange(tables.shape[1])
    times = tables.reshape(table_count * ops, sessions)
    means, first = mean_of_each_turn(times, *started) if 0 < count_a < sessions and started is not None else (times, count_a)
    enough_sessions = min(first, means.shape[1] - first) >= MIN_SESSIONS
    if not enough_sessions:
        return np.zeros(ops, bool), np.full(ops, np.inf), False
    changed, smallest_ns = (rows.reshape(table_count, ops)[which, op] for rows in odd_ops.changed(means, first))
    used = tables[which, op]
    by_medians = np.median(used[:, count_a:], axis=1) - np.median(used[:, :count_a], axis=1)
    by_means = (means[:, first:].mean(axis=1) - means[:, :first].mean(axis=1)).reshape(table_count, ops)[which, op]
    return np.asarray(changed & (np.sign(by_means) == np.sign(by_medians))), np.asarray(smallest_ns), True


def _longest_first(side: Sequence[Mapping[str, float]], keys: Iterable[str]) -> dict[str, float]:
    """Return op -> median time, longest first, without ops that took no time in most sessions."""
    times = {key: median([session.get(key, 0.0) for session in side]) for key in sorted(keys)}
    return dict(sorted(((key, ns) for key, ns in times.items() if ns), key=lambda op: -op[1]))
