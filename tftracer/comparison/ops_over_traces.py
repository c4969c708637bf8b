"""The page's table of ops over the traces of one run (trace/analyses/over_traces.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tftracer.comparison.wording import left_out
from tftracer.contract.analyses import MIN_TRACES
from tftracer.contract.encoding import unpacked
from tftracer.trace.analyses.ops import MAX_ROWS
from tftracer.trace.analyses.over_traces import OpTotals, over_traces
from tftracer.trace.arrays.columns import Columns, rows_of
from tftracer.trace.units import counted

if TYPE_CHECKING:
    from tftracer.contract.over_traces import ReadTrace, RunOp, RunOps
    from tftracer.trace.analyses.ops import By


class RunTraces(NamedTuple):
    """The traces of a run. ``traces``: (id, step, encoded ``Answers.op_totals``) of each trace that was read, oldest first."""

    traces: Sequence[tuple[int, int | None, bytes]]
    older: int = 0  # number of older traces that were not read
    unreadable: int = 0  # number of traces that cannot be read


def run_ops(run: RunTraces, by: By) -> RunOps:
    totals = [OpTotals(**unpacked(body)) for _, _, body in run.traces]
    ops = over_traces(totals)
    read: list[ReadTrace] = [
        {"id": number, "step": step, "step_ns": total.step_ns} for (number, step, _), total in zip(run.traces, totals)
    ]
    per_trace: Columns = {"total_ns": lambda: np.ma.masked_invalid(ops.total_ns[:MAX_ROWS]), "node": lambda: ops.node[:MAX_ROWS]}
    return {
        "by": by,
        "traces": read,
        "rows": cast("list[RunOp]", rows_of({**ops.columns(MAX_ROWS), **per_trace})),
        "left_out": max(0, len(ops.keys) - MAX_ROWS),
        "summary": summary(len(totals), run.older, run.unreadable, ops.cut_tables),
    }


def summary(read: int, older: int, unreadable: int, cut_tables: int) -> str:
    """Return a text about the traces that the table is based on."""
    if older:
        text = f"Of the run's {counted(read + older + unreadable, 'trace')} the newest {read:,} are read."
    else:
        text = f"From {counted(read, 'trace')} of the run."
    text += left_out(unreadable)
    if cut_tables:
        has = "has" if cut_tables == 1 else "have"
        text += f" {counted(cut_tables, 'trace')} {has} more than {MAX_ROWS:,} rows; the smallest do not count."
    if read < MIN_TRACES:
        text += f" So few traces can mislead: trace at least {MIN_TRACES} steps of the run."
    return text
