"""Ops over several traces of one run: the number of traces in which each op ran, its times in them, and their spread.

An op's value in a trace is its total: the sum of the lengths of its executions (ops.py). So each step counts once, however
often the op ran in it. Over the traces in which it ran:

- *mean*, *median*, *shortest*, *longest* of these totals;
- *spread*: their sample standard deviation (n - 1); unknown with one trace;
- *share*: the op's part of the total op time of all traces, including traces without the op.
- *FLOPs*: their mean (arithmetic.py). *FLOP/s*: FLOPs per second of the op's time in a trace, on a GPU of its kernels' time;
  *best* is the highest of all traces. Unknown unless the FLOPs of all executions are known.

The time in one trace can mislead: on a busy machine equal ops of one step differed 57-fold. So an op's rate is judged only with
``MIN_TRACES`` (contract/analyses.py) traces, and its shortest time is the one that other work disturbed least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.ops import By, Work, op_statistics
from tftracer.trace.arrays.columns import Columns
from tftracer.trace.arrays.types import Float64, Int64
from tftracer.trace.model import Trace


@dataclass(frozen=True)
class OpTotals:
    """The ops of one trace by type, node or scope (``Answers.op_totals``), times in ns.

    ``left_out``: number of ops that are not in the table, those with the smallest totals. The sequences have one entry per op.
    """

    step_ns: float
    work_ns: float  # total time of all ops
    left_out: int
    keys: Sequence[str]
    op: Sequence[str]
    total_ns: Sequence[float]
    count: Sequence[int]
    node: Sequence[int]  # the longest execution
    device_ns: Sequence[float] = ()  # the part of the total that ran on a GPU's streams
    flops: Sequence[float | None] = ()  # None: unknown for some executions; empty: not requested

    @cached_property
    def by_key(self) -> Mapping[str, float]:
        return dict(zip(self.keys, self.total_ns))

    def time_of(self, key: str) -> float | None:
        """Return an op's total in ns, 0 if it did not run; None if it may be one of the ops that are left out."""
        return self.by_key.get(key, None if self.left_out else 0.0)

    def rates(self) -> tuple[Float64, Float64]:
        """Return (FLOPs, FLOP/s) of each op; NaN where unknown."""
        total, flops = np.array(self.total_ns, np.float64), np.array(self.flops, np.float64)
        if not len(flops):
            return np.full(len(total), np.nan), np.full(len(total), np.nan)
        kernels = np.array(self.device_ns, np.float64)
        spent = np.where(kernels > 0, kernels, total)
        return flops, np.divide(flops, spent / 1e9, out=np.full(len(total), np.nan), where=spent > 0)


def op_totals(trace: Trace, by: By, work: Work, arithmetic: Arithmetic | None) -> dict[str, Any]:
    """Return the fields of ``OpTotals``. ``arithmetic``: None if FLOPs are not requested."""
    table = op_statistics(trace, by, [], work, arithmetic=arithmetic)
    rows = table["rows"]
    totals = {
        "step_ns": float(trace.duration_ns),
        "work_ns": table["total_ns"],
        "left_out": table["left_out"],
        "keys": [row["key"] for row in rows],
        **{name: [row[name] for row in rows] for name in ("op", "total_ns", "count", "node")},
    }
    if arithmetic is None:
        return totals
    flops = [None if row["flops_unknown"] else row["flops"] for row in rows]
    return {**totals, "device_ns": [row["device_ns"] for row in rows], "flops": flops}


@dataclass(frozen=True)
class OpsOverTraces:
    """k ops in t traces, as defined above. Properties have one value per op.

    ``[k, t]`` arrays hold NaN, 0 or -1 where the op is not in a trace's table.
    """

    keys: list[str]
    op: list[str]
    total_ns: Float64  # [k, t]
    count: Int64  # [k, t] executions
    node: Int64  # [k, t] the longest execution
    flops: Float64  # [k, t]
    flop_rate: Float64  # [k, t] FLOP/s
    work_ns: Float64  # [t] total op time
    cut_tables: int  # number of traces whose tables are cut: an op missing there may have run

    @cached_property
    def traces(self) -> Int64:
        """[k] number of traces in which the op ran."""
        return np.asarray(np.count_nonzero(self.count, axis=1), np.int64)

    @cached_property
    def mean_ns(self) -> Float64:
        return _floats(_sum(self.total_ns) / self.traces)

    @cached_property
    def spread_ns(self) -> Float64:
        """[k] NaN with one trace."""
        squares = _sum((self.total_ns - self.mean_ns[:, None]) ** 2)
        many = self.traces > 1
        return _floats(np.sqrt(np.divide(squares, self.traces - 1, out=np.full(len(squares), np.nan), where=many)))

    @cached_property
    def median_ns(self) -> Float64:
        return row_medians(self.total_ns)

    @cached_property
    def shortest_ns(self) -> Float64:
        return _floats(np.fmin.reduce(self.total_ns, axis=1, initial=np.nan))

    @cached_property
    def longest_ns(self) -> Float64:
        return _floats(np.fmax.reduce(self.total_ns, axis=1, initial=np.nan))

    @cached_property
    def longest_in_other_traces_ns(self) -> Float64:
        """[k] The longest total in all traces but the first; NaN if the op ran in none of them."""
        return _floats(np.fmax.reduce(self.total_ns[:, 1:], axis=1, initial=np.nan))

    @property
    def mean_flops(self) -> Float64:
        """[k] Mean over the traces in which the FLOPs are known; NaN if they are known in none."""
        known = np.count_nonzero(~np.isnan(self.flops), axis=1)
        return _floats(np.divide(_sum(self.flops), known, out=np.full(len(known), np.nan), where=known > 0))

    @cached_property
    def best_flop_rate(self) -> Float64:
        """[k] The highest FLOP/s of all traces: the one in the trace in which other work disturbed the op least."""
        return _floats(np.fmax.reduce(self.flop_rate, axis=1, initial=np.nan))

    @cached_property
    def median_flop_rate(self) -> Float64:
        """[k] FLOP/s."""
        return row_medians(self.flop_rate)

    @property
    def share(self) -> Float64:
        work = self.work_ns.sum()
        return _floats(_sum(self.total_ns) / work) if work else np.zeros(len(self.keys))

    @property
    def mean_count(self) -> Float64:
        """[k] Mean number of executions, over the traces in which the op ran."""
        return _floats(self.count.sum(1) / self.traces)

    def columns(self, limit: int | None = None) -> Columns:
        """Return the columns of the ``limit`` ops with the largest shares; unknown values are masked."""
        unknown = np.ma.masked_invalid
        return {
            "key": lambda: self.keys[:limit],
            "op": lambda: self.op[:limit],
            "traces": lambda: self.traces[:limit],
            "count": lambda: self.mean_count[:limit],
            "mean_ns": lambda: self.mean_ns[:limit],
            "median_ns": lambda: self.median_ns[:limit],
            "spread_ns": lambda: unknown(self.spread_ns[:limit]),
            "shortest_ns": lambda: self.shortest_ns[:limit],
            "longest_ns": lambda: self.longest_ns[:limit],
            "share": lambda: self.share[:limit],
            "flops": lambda: unknown(self.mean_flops[:limit]),
            "best_flop_rate": lambda: unknown(self.best_flop_rate[:limit]),
            "median_flop_rate": lambda: unknown(self.median_flop_rate[:limit]),
        }


def over_traces(traces: Sequence[OpTotals]) -> OpsOverTraces:
    """Combine the totals of several traces. The op with the largest share comes first."""
    position: dict[str, int] = {}
    ops: list[str] = []
    for trace in traces:
        for key, op in zip(trace.keys, trace.op):
            if position.setdefault(key, len(ops)) == len(ops):
                ops.append(op)
    shape = (len(ops), len(traces))
    total, count, node = np.full(shape, np.nan), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    flops, rate = np.full(shape, np.nan), np.full(shape, np.nan)
    for column, trace in enumerate(traces):
        row = np.fromiter(map(position.__getitem__, trace.keys), np.int64, len(trace.keys))
        total[row, column], count[row, column], node[row, column] = trace.total_ns, trace.count, trace.node
        flops[row, column], rate[row, column] = trace.rates()
    order = np.argsort(-_sum(total), kind="stable")
    keys = list(position)
    return OpsOverTraces(
        [keys[row] for row in order.tolist()],
        [ops[row] for row in order.tolist()],
        total[order],
        count[order],
        node[order],
        flops[order],
        rate[order],
        np.array([trace.work_ns for trace in traces], np.float64),
        sum(trace.left_out > 0 for trace in traces),
    )


def row_medians(values: Float64) -> Float64:
    """Return the median of the known values of each row; NaN if there are none. (NumPy's nanmedian loops over the rows.)"""
    known = np.count_nonzero(~np.isnan(values), axis=1)
    if not values.size:
        return np.full(len(values), np.nan)
    ordered = np.sort(values, axis=1)  # puts NaN last
    row = np.arange(len(values))
    middle = (ordered[row, np.maximum(known - 1, 0) // 2] + ordered[row, known // 2]) / 2
    return _floats(middle)


def _sum(values: Float64) -> Float64:
    """Return the sum of the known values of each row."""
    return _floats(np.nansum(values, axis=1))


def _floats(values: Any) -> Float64:
    return np.asarray(values, np.float64)
