"""The rows of one run in the table of ops over several traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tftracer.export.tables.table import Part
from tftracer.trace.analyses.over_traces import OpTotals, over_traces
from tftracer.trace.arrays.columns import Columns


def ops_over_traces_part(run_id: int, traces: Sequence[OpTotals]) -> Part:
    """``traces``: those of the run that can be read."""
    ops = over_traces(traces)
    rows = len(ops.keys)
    columns: Columns = {
        "run_id": lambda: np.full(rows, run_id),
        "key": lambda: ops.keys,
        "op": lambda: ops.op,
        "traces": lambda: ops.traces,
        "of_traces": lambda: np.full(rows, len(traces)),
        "count": lambda: ops.mean_count,
        "mean_ns": lambda: ops.mean_ns,
        "median_ns": lambda: ops.median_ns,
        "spread_ns": lambda: np.ma.masked_invalid(ops.spread_ns),
        "shortest_ns": lambda: ops.shortest_ns,
        "longest_ns": lambda: ops.longest_ns,
        "share": lambda: ops.share,
        "flops": lambda: np.ma.masked_invalid(ops.mean_flops),
        "best_flops_per_s": lambda: np.ma.masked_invalid(ops.best_flop_rate),
        "median_flops_per_s": lambda: np.ma.masked_invalid(ops.median_flop_rate),
    }
    return Part(rows, columns)
