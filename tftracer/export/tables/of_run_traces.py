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
    rows, columns = len(ops.keys), ops.columns()
    for name in ("best", "median"):
        columns[f"{name}_flops_per_s"] = columns.pop(f"{name}_flop_rate")
    of_run: Columns = {"run_id": lambda: np.full(rows, run_id), "of_traces": lambda: np.full(rows, len(traces))}
    return Part(rows, {**columns, **of_run})
