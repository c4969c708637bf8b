"""In which order sessions were recorded.

Those of one side, one after the other, all take part in whatever the machine did then: they are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tftracer.trace.arrays.types import Float64

#: Sessions are not in turns if this many of one side come in a row, on average.
IN_TURNS = 1.5
#: How much of what a machine that drifts at random would add is added, times the sessions of a side in a row. Chosen by
#: simulation: neighbours differ by chance, too (tests/comparison/test_order.py).
DRIFT_SHARE = 0.04


def in_a_row(a: Sequence[float], b: Sequence[float]) -> float:
    """``a``, ``b``: when the sessions of each side began. How many of one side follow each other, on average: 1 in turns."""
    order = np.argsort([*a, *b], kind="stable") < len(a)
    return len(order) / (1 + int((order[1:] != order[:-1]).sum()))


def drift_variance(a: Float64, b: Float64, started_a: Sequence[float], started_b: Sequence[float]) -> float:
    """What a drifting machine adds to the variance of the difference of the sides' means. 0 for sessions recorded in turns."""
    row = in_a_row(started_a, started_b)
    steps = [np.diff(side[np.argsort(started, kind="stable")]) for side, started in ((a, started_a), (b, started_b))]
    known = [float((each**2).mean()) for each in steps if len(each)]
    if row < IN_TURNS or not known:
        return 0.0
    rows = (len(a) + len(b)) / row / 2
    return DRIFT_SHARE * row * float(np.mean(known)) * 2 * row / 3 / rows


def in_turns(times: Float64, started_a: Sequence[float], started_b: Sequence[float]) -> tuple[Float64, int]:
    """[rows, turns] the means of the columns of one side that follow each other, those of A first; how many are of A.

    ``times``: [rows, columns] of what began at ``started_a`` and, behind it, of what began at ``started_b``.
    """
    of_a = np.arange(times.shape[1]) < len(started_a)
    order = np.argsort([*started_a, *started_b], kind="stable")
    starts = np.flatnonzero(np.diff(of_a[order], prepend=~of_a[order[:1]]))
    turns = np.split(order, starts[1:])
    turns.sort(key=lambda turn: not of_a[turn[0]])
    return np.stack([times[:, turn].mean(axis=1) for turn in turns], axis=1), sum(bool(of_a[turn[0]]) for turn in turns)
