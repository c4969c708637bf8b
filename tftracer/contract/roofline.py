"""The roofline: the rates of a trace's ops, and their limits."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Finding

#: Where a roof comes from: a measurement (`tftracer roof`), the table of GPUs' peak rates, or the best rate in the run's traces.
RoofSource = Literal["measured", "peak", "best"]


class Roof(TypedDict):
    """A line that no op should be above."""

    source: RoofSource
    device: str  # "CPU", "GPU"
    dtype: str  # type of the numbers, such as "float32"; "" for memory
    unit: str  # the part of the device that computes: "tensor cores"; "" for the ordinary cores
    rate: float  # floating-point operations per second; for memory, bytes per second
    node: int  # the execution that reached the rate; -1 if it is not in this trace


class RoofWords(TypedDict):
    """The origin of the roofs of a kind of device, or why there are none."""

    source: RoofSource
    device: str
    text: str


class RooflineRow(TypedDict):
    key: str  # node name or op type
    op: str
    device: str  # as in the trace
    kind: str  # kind of device whose roofs apply: "CPU", "GPU"
    dtype: str  # type of the ops' results, such as "float32"
    count: int  # executions with known operations and bytes
    total_ns: float
    flops: float  # floating-point operations; 0 for ops that are not matrix ops
    bytes: float  # compulsory traffic
    flops_per_s: float
    bytes_per_s: float
    intensity: float | None  # flops per byte; None without traffic
    of_roof: float | None  # rate as a share of the rate that the roof allows at this intensity; None without a roof
    judged_by: RoofSource | None  # source of that roof
    node: int  # the longest execution


class Roofline(TypedDict):
    by: Literal["name", "type"]
    rows: list[RooflineRow]  # by total time, descending, at most 3,000
    left_out: int
    left_out_ns: float
    roofs: list[Roof]
    words: list[RoofWords]
    known_ns: float  # time of the ops with known operations and bytes
    work_ns: float  # time of all ops that compute
    unknown_matrix_ops: int  # executions of matrix ops with unknown operations or bytes
    remedy: str  # if no matrix op's operations are known: the reason and what to do; else ""
    findings: list[Finding]
