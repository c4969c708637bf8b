"""Ops over the traces of one run: the table that the page shows of them (trace/analyses/over_traces.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tftracer.comparison.two_traces_words import counted
from tftracer.contract.encoding import unpacked
from tftracer.trace.analyses.ops import MAX_ROWS
from tftracer.trace.analyses.over_traces import LEAST_TRACES, OpsOverTraces, OpTotals, over_traces

if TYPE_CHECKING:
    from tftracer.contract.over_traces import ReadTrace, RunOp, RunOps
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.arrays.types import Float64


class RunTraces(NamedTuple):
    """``traces``: (number, step, ``Answers.op_totals``, encoded) of each that was read, the oldest first."""

    traces: Sequence[tuple[int, int | None, bytes]]
    older: int = 0  # traces that were not read
    unreadable: int = 0


def run_ops(run: RunTraces, by: By) -> RunOps:
    totals = [OpTotals(**unpacked(body)) for _, _, body in run.traces]
    ops = over_traces(totals)
    read: list[ReadTrace] = [
        {"id": number, "step": step, "step_ns": of_trace.step_ns} for (number, step, _), of_trace in zip(run.traces, totals)
    ]
    return {
        "by": by,
        "traces": read,
        "rows": _rows(ops, MAX_ROWS),
        "left_out": max(0, len(ops.keys) - MAX_ROWS),
        "summary": summary(len(totals), run.older, run.unreadable, ops.cut),
    }


def _rows(ops: OpsOverTraces, most: int) -> list[RunOp]:
    return [
        {
            "key": key,
            "op": op,
            "traces": traces,
            "count": count,
            "mean_ns": mean,
            "median_ns": median,
            "spread_ns": spread,
            "shortest_ns": shortest,
            "longest_ns": longest,
            "share": share,
            "total_ns": totals,
            "node": nodes,
        }
        for key, op, traces, count, mean, median, spread, shortest, longest, share, totals, nodes in zip(
            ops.keys[:most],
            ops.op,
            ops.traces.tolist(),
            ops.mean_count.tolist(),
            ops.mean_ns.tolist(),
            ops.median_ns.tolist(),
            _known(ops.spread_ns),
            ops.shortest_ns.tolist(),
            ops.longest_ns.tolist(),
            ops.share.tolist(),
            _known(ops.total_ns[:most]),
            ops.node[:most].tolist(),
        )
    ]


def _known(values: Float64) -> list[float | None]:
    """None for NaN; a matrix becomes a list of lists."""
    known = values.astype(object)
    known[np.isnan(values)] = None
    return list(known.tolist())


def summary(read: int, older: int, unreadable: int, cut: int) -> str:
    """Which of a run's traces the table is of."""
    if older:
        text = f"Of the run's {counted(read + older + unreadable, 'trace')} the newest {read:,} are read."
    else:
        text = f"From {counted(read, 'trace')} of the run."
    if unreadable:
        text += f" {counted(unreadable, 'trace')} cannot be read and {'is' if unreadable == 1 else 'are'} left out."
    if cut:
        text += (
            f" {counted(cut, 'trace')} {'has' if cut == 1 else 'have'} more than {MAX_ROWS:,} rows; the smallest do not count."
        )
    if read < LEAST_TRACES:
        text += f" So few mislead: trace at least {LEAST_TRACES} steps of the run."
    return text
