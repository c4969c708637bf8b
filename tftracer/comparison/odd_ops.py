"""Finds the ops that differ between traces by more than chance.

One test covers all ops, because many tests would give many false alarms.

Each op is a row; the step itself is one more row. The differences of a row are measured in the row's *unit*. The unit depends on
the row's scatter and on the floors above which a difference matters: for traces of one run it is the larger of the two, for
traces of two runs their sum.

- Traces of one run: two traces are compared. For each of the remaining traces, compute its deviation from the median of each row,
  and take the largest over all rows. One of the two traces is *odd* for an op (a row) if its deviation there exceeds all of
  these largest deviations. If nothing differs, each of n traces is equally likely to deviate most. So the trace that deviates
  most is one of the two with a probability of 2 / n, which is 5% if there are ``MIN_OTHERS`` other traces. With fewer, no trace
  is called odd, because on a busy machine an op of 60 us takes 20 ms in one of fifty traces, and no margin separates that from a
  change.
- Traces of two runs: a permutation test. The traces are also divided in other ways into two groups of the same sizes: in all
  ways, or in up to ``MAX_DIVISIONS`` random ways. For each division, take the largest difference of any row. A row has *changed*
  if its real difference exceeds these largest differences in 97% of the divisions. The test is valid for any number of rows and
  any distribution, as long as the traces of equal runs can be exchanged with each other. In each division, rows whose means
  differ by less than the floors do not count, so that unimportant rows do not reduce the power. Each row is tested twice: with
  its times, and with its times corrected for the machine's slowness in each trace. This slowness is the median, over
  all long rows, of a row's time relative to its median time. Without the correction, a varying slowness would hide the change of
  a single op. If most rows differ, the slowness of the two groups differs, too. Then only the uncorrected times count.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from tftracer.trace.analyses.over_traces import row_medians
from tftracer.trace.arrays.types import Bool, Float64

#: A difference of two times matters if it exceeds both of these: FLOOR_SHARE is of the larger time.
FLOOR_NS, FLOOR_SHARE = 20_000.0, 0.05
#: Maximum probability that one of two traces that do not differ is called odd.
FALSE_CLAIMS = 0.05
#: With at least this many other traces, the probability is at most FALSE_CLAIMS.
MIN_OTHERS = round(2 / FALSE_CLAIMS) - 2
#: A row has changed if at most this share of the divisions have a row that differs as much. The share is not 5%, because traces
#: that follow each other are not quite independent: of 120 pairs of runs of the same code, traced alternately on a busy machine,
#: 9 pairs were called different with a share of 5%, and 6 pairs with a share of 3%. Four traces in each group are enough. They
#: can be divided in 70 ways. At least 2 of these (2.9%) differ as much as the real division: the real one itself, and the same
#: with the groups swapped.
DIVISIONS_SHARE = 0.03
MAX_DIVISIONS = 1_000  # if there are more divisions, this many are selected at random
#: Rows that take at least LONG_NS show the machine's slowness if there are at least MIN_LONG of them. If there are fewer, all of
#: them may have changed, so they do not show it.
LONG_NS, MIN_LONG = 50_000, 5
#: Factor from the median absolute deviation to the standard deviation of normal values.
_MAD = 1.4826


def matters(before_ns: float, after_ns: float) -> bool:
    """Return whether two times differ by more than the floors."""
    return abs(after_ns - before_ns) > max(FLOOR_NS, FLOOR_SHARE * max(before_ns, after_ns))


def odd(times: Float64) -> Bool:
    """Return [rows, 2] whether each of the first two traces is odd. ``times``: [rows, traces] ns, NaN: not known."""
    if times.shape[1] < 2 + MIN_OTHERS:
        return np.zeros((len(times), 2), bool)
    medians = row_medians(times)[:, None]
    deviations = np.abs(times - medians)
    in_units = np.nan_to_num(deviations / np.maximum(_floor(medians), _MAD * row_medians(deviations)[:, None]))
    result: Bool = in_units[:, :2] > in_units[:, 2:].max(initial=0.0)
    return result


class Changed(NamedTuple):
    """The result for each row. ``smallest_ns``: the smallest difference of means that would count as a change.

    ``smallest_ns`` is infinite if there are too few traces, or if the row has NaN.
    """

    is_changed: Bool
    smallest_ns: Float64


def changed(times: Float64, first: int) -> Changed:
    """Test whether the rows' means differ between the ``first`` traces and the others.

    ``times``: [rows, traces] ns; rows with NaN never count as changed.
    """
    known = ~np.isnan(times).any(axis=1)
    result = Changed(np.zeros(len(times), bool), np.full(len(times), np.inf))
    rows, count = times[known], times.shape[1]
    if not len(rows) or count - first < 2 or first < 2:
        return result
    divisions = _divisions(count, first)
    if 2 / math.comb(count, first) > DIVISIONS_SHARE:
        return result
    slowness = _slowness(rows)
    is_as_fast = _difference_of_means(slowness[None], divisions)[0] <= FLOOR_SHARE
    distance, unit = _distance(rows, divisions)
    corrected_distance, corrected_unit = _distance(rows / np.exp(slowness), divisions)
    distances = np.concatenate([distance, corrected_distance * is_as_fast])
    limit = np.sort(distances.max(axis=0))[math.ceil((1 - DIVISIONS_SHARE) * len(divisions)) - 1]
    result.is_changed[known] = ((distances[:, 0] > limit) & (distances[:, 0] > 0)).reshape(2, -1).any(axis=0)
    smallest = limit * (np.minimum(unit, corrected_unit) if is_as_fast[0] else unit)
    result.smallest_ns[known] = np.maximum(smallest, _floor(np.median(rows, axis=1)))
    return result


def _slowness(rows: Float64) -> Float64:
    """Return [traces] the machine's slowness as a logarithm: the median of long rows' times relative to their median times."""
    long = rows[np.median(rows, axis=1) >= LONG_NS]
    if len(long) < MIN_LONG:
        return np.zeros(rows.shape[1])
    logs = np.log(np.maximum(long, 1.0))
    return np.asarray(np.median(logs - np.median(logs, axis=1)[:, None], axis=0))


def _divisions(count: int, first: int) -> Bool:
    """Return [divisions, traces] whether a trace is in the first group. The first division is the real one."""
    real = np.arange(count) < first
    if math.comb(count, first) <= MAX_DIVISIONS:
        members = list(itertools.combinations(range(count), first))  # the first combination is that of the real groups
        divisions = np.zeros((len(members), count), bool)
        divisions[np.repeat(np.arange(len(members)), first), np.array(members).ravel()] = True
        return divisions
    random = np.random.default_rng(0)  # reproducible
    return np.array([real, *(real[random.permutation(count)] for _ in range(MAX_DIVISIONS - 1))])


def _distance(rows: Float64, divisions: Bool) -> tuple[Float64, Float64]:
    """Return ([rows, divisions] distance of the groups' means in units, 0 if it does not matter; [rows] unit in the first
    division)."""
    first, second = divisions.sum(axis=1), (~divisions).sum(axis=1)
    in_first = divisions.T.astype(np.float64)
    total, squares = rows.sum(axis=1)[:, None], (rows**2).sum(axis=1)[:, None]
    sum_first = rows @ in_first
    mean_first, mean_second = sum_first / first, (total - sum_first) / second
    variance_within = np.maximum(squares - first * mean_first**2 - second * mean_second**2, 0.0) / (len(divisions[0]) - 2)
    unit = np.sqrt(variance_within) + _floor(np.median(rows, axis=1)[:, None])
    difference = np.abs(mean_second - mean_first)
    matters = difference > np.maximum(FLOOR_NS, FLOOR_SHARE * np.maximum(mean_first, mean_second))
    return np.where(matters, difference / unit, 0.0), unit[:, 0]


def _difference_of_means(rows: Float64, divisions: Bool) -> Float64:
    """Return [rows, divisions] the absolute difference of the groups' means."""
    in_first, in_second = divisions.T.astype(np.float64), (~divisions).T.astype(np.float64)
    return np.asarray(np.abs(rows @ (in_first / in_first.sum(axis=0)) - rows @ (in_second / in_second.sum(axis=0))))


def _floor(usual: Float64) -> Float64:
    """Return the floor for each usual time, in ns: a smaller difference does not matter."""
    return np.maximum(FLOOR_NS, FLOOR_SHARE * usual)
