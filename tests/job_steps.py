"""Steps of small jobs for the tests of ``tftracer.job``: written down, or recorded by real ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from traces import N, make_trace

from tftracer.contract.basics import Column
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.model import NodeKind, Trace

DATA = Path(__file__).parent / "data"
MS = 1_000_000
ALLREDUCES = 10


def recorded(name: str) -> Trace:
    return decode_run_metadata((DATA / name).read_bytes())


def horovod_pair() -> list[ProcessTrace]:
    """The same step of two real ranks; they ran on one machine, so their clocks are one."""
    return [ProcessTrace(f"p{r}", f"rank {r}", recorded(f"horovod_rank{r}_tf2.15_cpu.pb")) for r in (0, 1)]


def skew(trace: Trace, offset_ns: int, drift: float) -> Trace:
    """The trace as a clock would have timed it that is ahead and runs fast (its length on the clock grows with it)."""

    def stretch(times: Int64) -> Int64:
        return np.where(times < 0, times, times + np.rint(times * drift).astype(np.int64))

    columns: dict[str, Any] = {key: stretch(getattr(trace, key)) for key in ("start", "end", "op_start", "op_end", "scheduled")}
    return replace(trace, origin_ns=trace.origin_ns + offset_ns, **columns)


def column(value: Column) -> npt.NDArray[Any]:
    """A column of an answer, as the page reads it."""
    return np.frombuffer(value["data"], {"f8": "<f8", "u4": "<u4", "u1": "<u1"}[value["dtype"]])


def rank_nodes(late_ns: int = 0, compute_ns: int = 2 * MS, input_ns: int = 0, end: int = 40 * MS) -> list[N]:
    """A data-parallel step: input, a forward and backward pass, then ten allreduces that end together at ``end``."""
    begin, ready = late_ns, late_ns + input_ns + compute_ns
    nodes = [N("get_next", "IteratorGetNext", begin, begin + input_ns, kind=NodeKind.INPUT)] if input_ns else []
    nodes.append(N("MatMul", "MatMul", begin + input_ns, ready))
    for i in range(ALLREDUCES):
        name = f"HorovodAllreduce_{i}"
        nodes.append(N(name, "HorovodAllreduce", ready + i * 1000, end + i * 200_000, kind=NodeKind.COMMUNICATION))
    return nodes


def ranks(*steps: list[N]) -> list[ProcessTrace]:
    return [ProcessTrace(f"p{i}", f"rank {i}", make_trace(nodes)) for i, nodes in enumerate(steps)]
