"""Ops over the traces of one run: the table that the page shows of them (trace/analyses/over_traces.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tftracer.contract.analyses import LEAST_TRACES
from tftracer.contract.encoding import unpacked
from tftracer.trace.analyses.ops import MAX_ROWS
from tftracer.trace.analyses.over_traces import OpsOverTraces, OpTotals, over_traces
from tftracer.trace.units import counted

if TYPE_CHECKING:
    from tftracer.contract.over_traces import ReadTrace, RunOp, RunOps
    from tftracer.trace.analyses.ops import By
    from tftracer.trace.arrays.types import Float64, Int64


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
    known: dict[str, Float64 | Int64] = {
        "traces": ops.traces,
        "count": ops.mean_count,
        "mean_ns": ops.mean_ns,
        "median_ns": ops.median_ns,
        "spread_ns": ops.spread_ns,
        "shortest_ns": ops.shortest_ns,
        "longest_ns": ops.longest_ns,
        "flops": ops.mean_flops,
        "best_flop_rate": ops.best_flop_rate,
        "median_flop_rate": ops.median_flop_rate,
        "share": ops.share,
        "total_ns": ops.total_ns,
        "node": ops.node,
    }
    columns = {"key": ops.keys[:most], "op": ops.op[:most], **{name: _known(values[:most]) for name, values in known.items()}}
    return [cast("RunOp", dict(zip(columns, row))) for row in zip(*columns.values())]


def _known(values: Float64 | Int64) -> list[Any]:
    """None for NaN; a matrix becomes a list of lists."""
    if values.dtype.kind == "i":
        return list(values.tolist())
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
