"""Which ops differ by more than chance between traces, looked at all at once: many ops give chance many tries.

The step itself is one of the rows. A row's differences are measured in its own *unit*: how much it scatters, and no less than the
floors from which on a difference matters.

- Traces of one run: one of two traces is *odd* if a row deviates from the median of all traces by more than any row of any other
  trace does. If nothing differs, each of n traces is equally likely to be the farthest. So one of the two is it in 2 of n cases,
  which is 5% with ``LEAST_OTHERS`` others. With fewer, none is called odd: on a busy machine an op of 60 us takes 20 ms in one of
  fifty traces, and no margin tells that from a change.
- Traces of two runs: the traces are dealt out to two groups of the same sizes in other ways, in all of them or in many. A row
  has *changed* if its means differ by more than any row's do in 97% of these. That holds for any number of rows, whatever their
  times are like, as long as traces of equal runs are alike. In each deal only rows count whose means differ by more than the
  floors: those that do not matter take no power from those that do. Each row is looked at twice: as it is, and as it would be had
  the machine been as fast as usual in each trace, which the median of all long rows against their usual times tells. A machine
  whose speed varies hides a change of single ops otherwise. Where most rows differ, so does that median: then only the times as
  they are count.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from tftracer.trace.analyses.compare import FLOOR_NS, FLOOR_SHARE
from tftracer.trace.arrays.types import Bool, Float64

#: How often chance may call one of two equal traces odd.
FALSE_CLAIMS = 0.05
#: With so many other traces, chance does it no more often than that.
LEAST_OTHERS = round(2 / FALSE_CLAIMS) - 2
#: The share of deals that may differ as much as the real groups do. Traces that were taken one after the other are not quite
#: independent: of 120 equal pairs of runs, traced in turns on a busy machine, 9 were told apart with 5% and 6 with 3%. Four
#: traces a side are enough.
DEALS_SHARE = 0.03
MOST_DEALS = 1_000
#: Rows that tell how fast the machine was, and how many of them it takes: few may all have changed.
LONG_NS, LEAST_LONG = 50_000, 5
#: The standard deviation of normal values by their median absolute deviation.
_MAD = 1.4826


def odd(times: Float64) -> Bool:
    """[rows, 2] whether the first two of the traces deviate. ``times``: [rows, traces] ns, NaN where not known."""
    if times.shape[1] < 2 + LEAST_OTHERS:
        return np.zeros((len(times), 2), bool)
    middle = _nanmedian(times)[:, None]
    away = np.abs(times - middle)
    deviation = np.nan_to_num(away / np.maximum(_floor(middle), _MAD * _nanmedian(away)[:, None]))
    result: Bool = deviation[:, :2] > deviation[:, 2:].max(initial=0.0)
    return result


class Changed(NamedTuple):
    """By rows. ``shown``: whether it has changed. ``least_ns``: by how much its means have to differ for that; infinite where
    there are too few traces to tell any change from chance, or the row has NaN."""

    shown: Bool
    least_ns: Float64


def changed(times: Float64, first: int) -> Changed:
    """Whether the rows' means differ between the ``first`` traces and the others. ``times``: [rows, traces] ns; rows with NaN
    never do."""
    known = ~np.isnan(times).any(axis=1)
    result = Changed(np.zeros(len(times), bool), np.full(len(times), np.inf))
    rows, count = times[known], times.shape[1]
    if not len(rows) or count - first < 2 or first < 2:
        return result
    deals = _deals(count, first)
    if 2 / math.comb(count, first) > DEALS_SHARE:
        return result
    slowness = _slowness(rows)
    is_as_fast = _apart(slowness[None], deals)[0] <= FLOOR_SHARE
    (distance, unit), (at_one_speed, other_unit) = _distance(rows, deals), _distance(rows / np.exp(slowness), deals)
    distances = np.concatenate([distance, at_one_speed * is_as_fast])
    limit = np.sort(distances.max(axis=0))[math.ceil((1 - DEALS_SHARE) * len(deals)) - 1]
    result.shown[known] = ((distances[:, 0] > limit) & (distances[:, 0] > 0)).reshape(2, -1).any(axis=0)
    least = limit * (np.minimum(unit, other_unit) if is_as_fast[0] else unit)
    result.least_ns[known] = np.maximum(least, _floor(np.median(rows, axis=1)))
    return result


def _slowness(rows: Float64) -> Float64:
    """[traces] how slow the machine was in each, as a logarithm: the median of what long rows took against their usual times."""
    long = rows[np.median(rows, axis=1) >= LONG_NS]
    if len(long) < LEAST_LONG:
        return np.zeros(rows.shape[1])
    logs = np.log(np.maximum(long, 1.0))
    return np.asarray(np.median(logs - np.median(logs, axis=1)[:, None], axis=0))


def _deals(count: int, first: int) -> Bool:
    """[deals, traces] which traces are in the first group. The first deal is the real one."""
    real = np.arange(count) < first
    if math.comb(count, first) <= MOST_DEALS:
        members = list(itertools.combinations(range(count), first))  # the first is the real one
        deals = np.zeros((len(members), count), bool)
        deals[np.repeat(np.arange(len(members)), first), np.array(members).ravel()] = True
        return deals
    random = np.random.default_rng(0)  # the same answer each time
    return np.array([real, *(real[random.permutation(count)] for _ in range(MOST_DEALS - 1))])


def _distance(rows: Float64, deals: Bool) -> tuple[Float64, Float64]:
    """([rows, deals] how far the groups' means lie apart, in units of the scatter within the groups and the floor, 0 where it
    does not matter; [rows] that unit in the first deal)."""
    first, second = deals.sum(axis=1), (~deals).sum(axis=1)
    in_first = deals.T.astype(np.float64)
    total, squares = rows.sum(axis=1)[:, None], (rows**2).sum(axis=1)[:, None]
    sum_first = rows @ in_first
    mean_first, mean_second = sum_first / first, (total - sum_first) / second
    within = np.maximum(squares - first * mean_first**2 - second * mean_second**2, 0.0) / (len(deals[0]) - 2)
    unit = np.sqrt(within) + _floor(np.median(rows, axis=1)[:, None])
    apart = np.abs(mean_second - mean_first)
    matters = apart > np.maximum(FLOOR_NS, FLOOR_SHARE * np.maximum(mean_first, mean_second))
    return np.where(matters, apart / unit, 0.0), unit[:, 0]


def _apart(rows: Float64, deals: Bool) -> Float64:
    """[rows, deals] how far the groups' means lie apart."""
    in_first, in_second = deals.T.astype(np.float64), (~deals).T.astype(np.float64)
    return np.asarray(np.abs(rows @ (in_first / in_first.sum(axis=0)) - rows @ (in_second / in_second.sum(axis=0))))


def _floor(usual: Float64) -> Float64:
    return np.maximum(FLOOR_NS, FLOOR_SHARE * usual)


def _nanmedian(rows: Float64) -> Float64:
    """[rows] NaN where nothing is known."""
    result = np.full(len(rows), np.nan)
    known = ~np.isnan(rows).all(axis=1)
    result[known] = np.nanmedian(rows[known], axis=1)
    return result
