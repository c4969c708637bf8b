"""How fast the ops of a trace compute, and how fast they could: the roofline."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Finding

#: Where a roof comes from: `tftracer roof` measured it, a GPU's table of peak rates, or the best that the run's traces reached.
RoofSource = Literal["measured", "peak", "best"]


class Roof(TypedDict):
    """A line that no op should be above."""

    source: RoofSource
    device: str  # "CPU", "GPU"
    dtype: str  # of the numbers, "float32"; "" for memory
    unit: str  # what computes: "tensor cores", "" for the ordinary cores
    rate: float  # floating-point operations a second; of memory bytes a second
    node: int  # the execution that reached it, -1 where it is not of this trace


class RoofWords(TypedDict):
    """Where the roofs of a kind of device come from, or why there are none."""

    source: RoofSource
    device: str
    text: str


class RooflineRow(TypedDict):
    key: str  # node name or op type
    op: str
    device: str  # as in the trace
    kind: str  # "CPU", "GPU": whose roofs they are
    dtype: str  # of what the ops make, "float32"
    count: int  # executions of which operations and bytes are known
    total_ns: float
    flops: float  # floating-point operations; 0 of what is no matrix op
    bytes: float  # compulsory traffic
    flops_per_s: float
    bytes_per_s: float
    intensity: float | None  # flops a byte; None without traffic
    of_roof: float | None  # of what the roof allows at this intensity; None without a roof
    judged_by: RoofSource | None  # whose roof that is
    node: int  # the longest execution


class Roofline(TypedDict):
    by: Literal["name", "type"]
    rows: list[RooflineRow]  # by total, descending, at most 3,000
    left_out: int
    left_out_ns: float
    roofs: list[Roof]
    words: list[RoofWords]
    known_ns: float  # time of the ops of which operations and bytes are known
    work_ns: float  # of all ops that compute
    unknown_matrix_ops: int  # executions of matrix ops of which they are not
    remedy: str  # where no matrix op's operations are known: why, and what to do; "" otherwise
    findings: list[Finding]
