"""Ops over the traces of one run (GET /api/runs/ID/ops?by=type)."""

from __future__ import annotations

from typing import Literal, TypedDict


class ReadTrace(TypedDict):
    """A trace that the ops were read from. ``step_ns``: from the step's first op to its last op."""

    id: int
    step: int | None
    step_ns: float


class RunOp(TypedDict):
    """An op type, node or scope over several traces. Its time in a trace is the sum of its executions there.

    Means and other statistics are over the traces in which it was executed.
    """

    key: str
    op: str
    traces: int  # number of traces in which it was executed
    count: float  # mean executions per trace
    mean_ns: float
    median_ns: float
    spread_ns: float | None  # sample standard deviation; None with one trace
    shortest_ns: float
    longest_ns: float
    flops: float | None  # mean nominal FLOPs, over the traces in which all executions' FLOPs are known; None: no such trace
    best_flop_rate: float | None  # FLOP/s: the highest of all traces
    median_flop_rate: float | None
    share: float  # share of the total op time of all traces
    total_ns: list[float | None]  # in each trace; None if it is not among the trace's ops
    node: list[int]  # node of the longest execution in each trace, or -1


class RunOps(TypedDict):
    by: Literal["type", "name", "scope"]
    traces: list[ReadTrace]  # the oldest first
    rows: list[RunOp]  # the largest share first, at most 10,000
    left_out: int
    summary: str  # which of the run's traces were read, and which data is missing
