"""Corrects comparisons for the order in which the sessions were recorded.

Consecutive sessions of one side are not independent: the state of the machine at that time affects all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tftracer.trace.arrays.types import Float64

#: Sessions count as recorded in turns if on average fewer than this many of one side were recorded one after the other.
MAX_MEAN_IN_A_ROW = 1.5
#: The variance by drift is estimated from the differences of consecutive sessions of a side. These sessions also differ by
#: chance, so only this share of their mean square counts as drift, times the mean number of sessions in a row. The share was
#: found by simulation (tests/comparison/test_recorded_in_turns.py).
DRIFT_SHARE = 0.04


def in_a_row(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the mean number of sessions of one side that follow each other; 1: in turns. ``a``, ``b``: when sessions began."""
    order = np.argsort([*a, *b], kind="stable") < len(a)
    return len(order) / (1 + int((order[1:] != order[:-1]).sum()))


def drift_variance(a: Float64, b: Float64, started_a: Sequence[float], started_b: Sequence[float]) -> float:
    """Return the variance that a drifting machine adds to the difference of the sides' means; 0 for sessions in turns."""
    mean_in_a_row = in_a_row(started_a, started_b)
    differences = [np.diff(side[np.argsort(started, kind="stable")]) for side, started in ((a, started_a), (b, started_b))]
    mean_squares = [float((each**2).mean()) for each in differences if len(each)]
    if mean_in_a_row < MAX_MEAN_IN_A_ROW or not mean_squares:
        return 0.0
    turns_per_side = (len(a) + len(b)) / mean_in_a_row / 2
    return DRIFT_SHARE * mean_in_a_row * float(np.mean(mean_squares)) * 2 * mean_in_a_row / 3 / turns_per_side


def mean_of_each_turn(times: Float64, started_a: Sequence[float], started_b: Sequence[float]) -> tuple[Float64, int]:
    """Average consecutive columns of one side (a turn). Return ([rows, turns] means, A's turns first; number of A's turns).

    ``times``: [rows, columns]: first the columns that began at ``started_a``, then the columns that began at ``started_b``.
    """
    is_of_a = np.arange(times.shape[1]) < len(started_a)
    order = np.argsort([*started_a, *started_b], kind="stable")
    starts = np.flatnonzero(np.diff(is_of_a[order], prepend=~is_of_a[order[:1]]))
    turns = np.split(order, starts[1:])
    turns.sort(key=lambda turn: not is_of_a[turn[0]])
    return np.stack([times[:, turn].mean(axis=1) for turn in turns], axis=1), sum(bool(is_of_a[turn[0]]) for turn in turns)
