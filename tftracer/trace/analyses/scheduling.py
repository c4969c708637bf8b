"""Scheduling delay: the time from when an op was ready (``scheduled``) to its start, in which it waited for a thread.

Nodes without a valid scheduling time are left out.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import DelayRow, Scheduling
from tftracer.trace.arrays.columns import Values, rows_of
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.types import Int64
from tftracer.trace.model import UNKNOWN_TIME, Trace

MAX_ROWS = 1_000

#: Upper bounds of the histogram's bins in ns, 1 µs to 10 s in steps of 1, 2, 5; longer delays are in the last bin.
BOUNDS = [float(m * 10**e) for e in range(3, 10) for m in (1, 2, 5)] + [1e10]


def delays(trace: Trace) -> tuple[Int64, Int64]:
    """Return (counted nodes with a known delay, their delays in nanoseconds)."""
    timed = (trace.scheduled != UNKNOWN_TIME) & (trace.start >= trace.scheduled) & trace.counted
    node = np.flatnonzero(timed)
    return node, trace.start[node] - trace.scheduled[node]


def scheduling(trace: Trace, findings: list[Finding]) -> Scheduling:
    """Return the distribution of the delays, and the ops that waited longest."""
    node, delay = delays(trace)
    longest = largest_first(delay, MAX_ROWS)
    bins = np.minimum(np.searchsorted(BOUNDS, delay, "left"), len(BOUNDS) - 1)
    p50, p95 = (float(value) for value in np.percentile(delay, [50, 95])) if len(delay) else (None, None)
    return {
        "rows": _rows(trace, node[longest], delay[longest]),
        "known": len(node),
        "total_ns": float(delay.sum()) if len(delay) else None,
        "p50_ns": p50,
        "p95_ns": p95,
        "max_ns": float(delay.max()) if len(delay) else None,
        "histogram_ns": BOUNDS,
        "histogram_count": np.bincount(bins, minlength=len(BOUNDS)).tolist(),
        "findings": findings,
    }


def _rows(trace: Trace, node: Int64, delay: Int64) -> list[DelayRow]:
    columns: dict[str, Values] = {
        **trace.node_columns(node),
        "delay_ns": delay.astype(np.float64),
        "duration_ns": (trace.end[node] - trace.start[node]).astype(np.float64),
    }
    return cast("list[DelayRow]", rows_of(columns))
