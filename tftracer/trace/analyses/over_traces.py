"""Ops over several traces of one run: in how many each ran, how long it took in them, and how much that differs.

An op's value in a trace is its total: the sum of the lengths of its executions (ops.py), so that a step counts once, however
often the op ran in it. Over the traces that it ran in:

- *mean*, *median*, *shortest*, *longest* of these totals;
- *spread*: their sample standard deviation (n - 1); unknown with one trace;
- *share*: of the total op time of all traces together, those without the op included.
- *FLOPs*: their mean (arithmetic.py). *FLOP/s*: FLOPs by the op's time in a trace, on a GPU by that of its kernels; *best* is the
  highest. Unknown where FLOPs are not known of all executions.

The time of one trace misleads: on a busy machine equal ops of one step differed 57-fold. What is said of an op's rate takes
``LEAST_TRACES`` traces, and its shortest time is the one that other work disturbed least.
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

    ``left_out``: ops that are not in the table, with the smallest totals. The sequences have an entry for each op in it.
    """

    step_ns: float
    work_ns: float  # of all ops
    left_out: int
    keys: Sequence[str]
    op: Sequence[str]
    total_ns: Sequence[float]
    count: Sequence[int]
    node: Sequence[int]  # the longest execution
    device_ns: Sequence[float] = ()  # of the total, on a GPU's streams
    flops: Sequence[float | None] = ()  # None: not known of all executions; none: they were not asked for

    @cached_property
    def by_key(self) -> Mapping[str, float]:
        return dict(zip(self.keys, self.total_ns))

    def time_of(self, key: str) -> float | None:
        """None: not known."""
        return self.by_key.get(key, None if self.left_out else 0.0)

    def rates(self) -> tuple[Float64, Float64]:
        """(FLOPs, FLOP/s) of each op, NaN where not known."""
        total, flops = np.array(self.total_ns, np.float64), np.array(self.flops, np.float64)
        if not len(flops):
            return np.full(len(total), np.nan), np.full(len(total), np.nan)
        kernels = np.array(self.device_ns, np.float64)
        spent = np.where(kernels > 0, kernels, total)
        return flops, np.divide(flops, spent / 1e9, out=np.full(len(total), np.nan), where=spent > 0)


def op_totals(trace: Trace, by: By, work: Work, computed: Arithmetic | None) -> dict[str, Any]:
    """The fields of ``OpTotals``. ``computed``: None where FLOPs are not asked for."""
    table = op_statistics(trace, by, [], work, computed=computed)
    rows = table["rows"]
    totals = {
        "step_ns": float(trace.duration_ns),
        "work_ns": table["total_ns"],
        "left_out": table["left_out"],
        "keys": [row["key"] for row in rows],
        **{name: [row[name] for row in rows] for name in ("op", "total_ns", "count", "node")},
    }
    if computed is None:
        return totals
    flops = [None if row["flops_unknown"] else row["flops"] for row in rows]
    return {**totals, "device_ns": [row["device_ns"] for row in rows], "flops": flops}


@dataclass(frozen=True)
class OpsOverTraces:
    """k ops in t traces, as defined above. ``[k, t]`` arrays hold NaN, 0 and -1 where the op is not in a trace's table."""

    keys: list[str]
    op: list[str]
    total_ns: Float64  # [k, t]
    count: Int64  # [k, t] executions
    node: Int64  # [k, t] the longest
    flops: Float64  # [k, t]
    flop_rate: Float64  # [k, t] FLOP/s
    work_ns: Float64  # [t] total op time
    cut: int  # traces with more ops than their tables hold: what is not in those may have run

    @cached_property
    def traces(self) -> Int64:
        """[k] how many it ran in."""
        return np.asarray(np.count_nonzero(self.count, axis=1), np.int64)

    @cached_property
    def mean_ns(self) -> Float64:
        """[k]"""
        return _floats(_sum(self.total_ns) / self.traces)

    @cached_property
    def spread_ns(self) -> Float64:
        """[k] NaN with one trace."""
        squares = _sum((self.total_ns - self.mean_ns[:, None]) ** 2)
        many = self.traces > 1
        return _floats(np.sqrt(np.divide(squares, self.traces - 1, out=np.full(len(squares), np.nan), where=many)))

    @cached_property
    def median_ns(self) -> Float64:
        """[k]"""
        return row_medians(self.total_ns)

    @cached_property
    def shortest_ns(self) -> Float64:
        """[k]"""
        return _floats(np.fmin.reduce(self.total_ns, axis=1, initial=np.nan))

    @cached_property
    def longest_ns(self) -> Float64:
        """[k]"""
        return _floats(np.fmax.reduce(self.total_ns, axis=1, initial=np.nan))

    @cached_property
    def longest_of_others_ns(self) -> Float64:
        """[k] without the first trace; NaN where it ran in none of them."""
        return _floats(np.fmax.reduce(self.total_ns[:, 1:], axis=1, initial=np.nan))

    @property
    def mean_flops(self) -> Float64:
        """[k] of the traces in which they are known; NaN where they are in none."""
        known = np.count_nonzero(~np.isnan(self.flops), axis=1)
        return _floats(np.divide(_sum(self.flops), known, out=np.full(len(known), np.nan), where=known > 0))

    @cached_property
    def best_flop_rate(self) -> Float64:
        """[k] FLOP/s: how fast it ran where other work disturbed it least."""
        return _floats(np.fmax.reduce(self.flop_rate, axis=1, initial=np.nan))

    @cached_property
    def median_flop_rate(self) -> Float64:
        """[k] FLOP/s."""
        return row_medians(self.flop_rate)

    @property
    def share(self) -> Float64:
        """[k]"""
        work = self.work_ns.sum()
        return _floats(_sum(self.total_ns) / work) if work else np.zeros(len(self.keys))

    @property
    def mean_count(self) -> Float64:
        """[k] executions, in the traces that it ran in."""
        return _floats(self.count.sum(1) / self.traces)

    def columns(self, most: int | None = None) -> Columns:
        """Of the ``most`` ops with the largest shares; what is not known is masked."""
        unknown = np.ma.masked_invalid
        return {
            "key": lambda: self.keys[:most],
            "op": lambda: self.op[:most],
            "traces": lambda: self.traces[:most],
            "count": lambda: self.mean_count[:most],
            "mean_ns": lambda: self.mean_ns[:most],
            "median_ns": lambda: self.median_ns[:most],
            "spread_ns": lambda: unknown(self.spread_ns[:most]),
            "shortest_ns": lambda: self.shortest_ns[:most],
            "longest_ns": lambda: self.longest_ns[:most],
            "share": lambda: self.share[:most],
            "flops": lambda: unknown(self.mean_flops[:most]),
            "best_flop_rate": lambda: unknown(self.best_flop_rate[:most]),
            "median_flop_rate": lambda: unknown(self.median_flop_rate[:most]),
        }


def over_traces(traces: Sequence[OpTotals]) -> OpsOverTraces:
    """The op with the largest share first."""
    place: dict[str, int] = {}
    ops: list[str] = []
    for trace in traces:
        for key, op in zip(trace.keys, trace.op):
            if place.setdefault(key, len(ops)) == len(ops):
                ops.append(op)
    shape = (len(ops), len(traces))
    total, count, node = np.full(shape, np.nan), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    flops, rate = np.full(shape, np.nan), np.full(shape, np.nan)
    for column, trace in enumerate(traces):
        row = np.fromiter(map(place.__getitem__, trace.keys), np.int64, len(trace.keys))
        total[row, column], count[row, column], node[row, column] = trace.total_ns, trace.count, trace.node
        flops[row, column], rate[row, column] = trace.rates()
    order = np.argsort(-_sum(total), kind="stable")
    keys = list(place)
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


def of_messages(messages: Sequence[Mapping[str, Any]]) -> OpsOverTraces:
    """``messages``: what ``Answers.op_totals`` returned for each trace."""
    return over_traces([OpTotals(**message) for message in messages])


def row_medians(values: Float64) -> Float64:
    """[k] the median of what is known in each row; NaN where nothing is. (NumPy's nanmedian loops over the rows.)"""
    known = np.count_nonzero(~np.isnan(values), axis=1)
    if not values.size:
        return np.full(len(values), np.nan)
    ordered = np.sort(values, axis=1)  # NaN last
    row = np.arange(len(values))
    middle = (ordered[row, np.maximum(known - 1, 0) // 2] + ordered[row, known // 2]) / 2
    return _floats(middle)


def _sum(values: Float64) -> Float64:
    return _floats(np.nansum(values, axis=1))


def _floats(values: Any) -> Float64:
    return np.asarray(values, np.float64)
