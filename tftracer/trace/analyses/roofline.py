"""The roofline: the rate at which ops compute, by their intensity, compared with the limits of roofs.py.

Executions of ops that compute (no communication, copies or input), and whose FLOPs and bytes are both known (arithmetic.py), are
summed by node name or op type, by device and by type of number. Each row has:

- *rate*: FLOPs per second of execution time; kernels count for the op that launched them.
- *intensity*: FLOPs per byte of compulsory traffic.
- *of roof*: the rate as a share of the roof's limit at this intensity. The limit is the lower of two rates: the roof's FLOP/s for
  this type of number, and its bytes/s times the intensity. For ops without FLOPs: bytes/s as a share of the roof's bytes/s.
  The roof is the first available one of: measured, peak, the best of the run's traces.

FLOPs are nominal and bytes compulsory, so a row can be above a roof: for example a convolution with a faster algorithm, or
tensors in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.roofline import Roof, Roofline, RooflineRow, RoofSource
from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.ops import NO_OP, Work
from tftracer.trace.analyses.physical_devices import Group, physical_devices
from tftracer.trace.analyses.roofs import Executions, Limit, Roofs, best_rates, kind_of, roofs_of
from tftracer.trace.arrays.columns import Coded, Values, rows_of
from tftracer.trace.arrays.groups import largest_in_groups
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Bool, Float64, Int64, Rows
from tftracer.trace.decode.outputs_and_memory import dtype_name
from tftracer.trace.decode.tensor_shapes import plain_types
from tftracer.trace.model import NodeKind, Trace, TraceContext

MAX_ROWS = 3_000

By = Literal["name", "type"]


def roofline(
    trace: Trace,
    work: Work,
    arithmetic: Arithmetic,
    context: TraceContext,
    findings: list[Finding],
    by: By,
    limit: int = MAX_ROWS,
    other_traces: Sequence[Sequence[Roof]] = (),
) -> Roofline:
    """Compute the roofline. ``other_traces``: the result of ``best_rates_of`` for other traces of the run."""
    groups = physical_devices(trace)
    at, executions = _executions(trace, work, arithmetic, groups)
    names = _dtype_names(executions)
    roofs = roofs_of(trace, groups, executions, names, context, other_traces)
    code = (work.op if by == "type" else work.name)[at].astype(np.int64)
    sums = _Sums.of(code, executions)
    order = np.argsort(-sums.total_ns, kind="stable")
    rows = _rows(trace, work, at, by, groups, names, roofs, sums.only(order[:limit]))
    unknown = arithmetic.is_matrix[work.node] & np.isnan(arithmetic.flops[work.node] + arithmetic.bytes[work.node])
    return {
        "by": by,
        "rows": rows,
        "left_out": max(len(order) - limit, 0),
        "left_out_ns": float(sums.total_ns[order[limit:]].sum()),
        "roofs": roofs.roofs,
        "words": roofs.words,
        "known_ns": float(executions.duration.sum()),
        "work_ns": float(work.duration[_computes(trace, work)].sum()),
        "unknown_matrix_ops": int(np.count_nonzero(unknown)),
        "remedy": "" if executions.flops.any() or not (unknown.any() or len(at) == 0) else _remedy(trace),
        "findings": findings,
    }


def best_rates_of(trace: Trace, work: Work, arithmetic: Arithmetic) -> list[Roof]:
    """Return the best rates by kind of device and type of number, and the best rates of memory."""
    groups = physical_devices(trace)
    _, executions = _executions(trace, work, arithmetic, groups)
    return best_rates(groups, executions, _dtype_names(executions))


def _dtype_names(executions: Executions) -> dict[int, str]:
    return {code: dtype_name(code) for code in distinct(executions.dtype).tolist()}


def _computes(trace: Trace, work: Work) -> Bool:
    """Return [work] whether each node computes."""
    computes: Bool = trace.kind[work.node] == NodeKind.COMPUTE
    return computes


def _executions(trace: Trace, work: Work, arithmetic: Arithmetic, groups: list[Group]) -> tuple[Int64, Executions]:
    """Return (positions in ``work``, executions) of ops with known FLOPs and bytes (not both 0) and a known time."""
    flops, moved = arithmetic.flops[work.node], arithmetic.bytes[work.node]
    at = np.flatnonzero((flops + moved > 0) & (work.duration > 0) & _computes(trace, work))  # NaN is not more than 0
    group_of = np.zeros(len(trace.devices), np.int64)
    for number, group in enumerate(groups):
        group_of[group.codes] = number
    node = work.node[at]
    dtype = plain_types(arithmetic.dtype[node].astype(np.int64))
    duration = work.duration[at].astype(np.float64)
    return at, Executions(node, group_of[trace.device[node]], dtype, flops[at], moved[at], duration)


@dataclass(frozen=True)
class _Sums(Rows):
    """Sums, one entry per row."""

    code: Int64  # code of the name or of the op type
    group: Int64
    dtype: Int64
    count: Int64
    total_ns: Float64
    flops: Float64
    bytes: Float64
    longest: Int64  # position among the executions

    @classmethod
    def of(cls, code: Int64, executions: Executions) -> _Sums:
        dtypes = int(executions.dtype.max(initial=0)) + 1
        groups = int(executions.group.max(initial=0)) + 1
        key = (code * groups + executions.group) * dtypes + executions.dtype
        keys, row = np.unique(key, return_inverse=True)
        row = row.reshape(-1)
        total, flops, moved = (
            np.bincount(row, column, len(keys)).astype(np.float64)
            for column in (executions.duration, executions.flops, executions.bytes)
        )
        longest = largest_in_groups(row, executions.duration, len(keys))
        group = keys // dtypes % groups
        return cls(keys // dtypes // groups, group, keys % dtypes, np.bincount(row), total, flops, moved, longest)


def _rows(
    trace: Trace, work: Work, at: Int64, by: By, groups: list[Group], names: dict[int, str], roofs: Roofs, sums: _Sums
) -> list[RooflineRow]:
    position, kinds = at[sums.longest], [kind_of(group) for group in groups]
    keys, unnamed = (trace.ops, NO_OP) if by == "type" else (trace.names, "")
    rate, traffic = sums.flops / sums.total_ns * 1e9, sums.bytes / sums.total_ns * 1e9
    limits = {(kind, name): roofs.limits(kind, name) for kind in set(kinds) for name in names.values()}
    rows = zip(sums.group.tolist(), sums.dtype.tolist(), rate.tolist(), traffic.tolist())
    judged = [_share_of_roof(limits[kinds[group], names[dtype]], flops, moved) for group, dtype, flops, moved in rows]
    intensity = np.divide(sums.flops, sums.bytes, out=np.full(len(rate), np.nan), where=sums.bytes > 0)
    columns: dict[str, Values] = {
        "key": [key or unnamed for key in keys.texts(sums.code)],
        "op": Coded(sums.code if by == "type" else work.op[position], trace.ops),
        "device": Coded(sums.group, [group.key for group in groups]),
        "kind": Coded(sums.group, kinds),
        "dtype": [names[code] for code in sums.dtype.tolist()],
        "count": sums.count,
        "total_ns": sums.total_ns,
        "flops": sums.flops,
        "bytes": sums.bytes,
        "flops_per_s": rate,
        "bytes_per_s": traffic,
        "intensity": np.ma.masked_invalid(intensity),
        "of_roof": [share for share, _ in judged],
        "judged_by": [source for _, source in judged],
        "node": work.node[position],
    }
    return cast("list[RooflineRow]", rows_of(columns))


def _share_of_roof(limits: list[Limit], rate: float, traffic: float) -> tuple[float | None, RoofSource | None]:
    """Return (share of the roof, source of the roof) by the first source with a limit; (None, None) if there is none."""
    for source, compute, memory in limits:
        by_memory = traffic / memory if memory else 0.0
        if not rate and memory:
            return by_memory, source
        if rate and compute:
            # rate / min(compute, intensity * memory), where intensity is rate / traffic
            return max(rate / compute, by_memory), source
    return None, None


def _remedy(trace: Trace) -> str:
    if trace.source == "xspace":
        return (
            "This profile does not have the shapes of its tensors, so the FLOPs of its matrix ops are unknown. Start the "
            "script with tftracer run: it keeps the graph that ran, from which shapes are inferred. Without it, shapes are known "
            "for ops on GPUs, for ops that XLA compiled, and for steps of session.run."
        )
    return (
        "This trace does not have the shapes of its tensors, so the FLOPs of its matrix ops are unknown. Traces of steps that "
        "tftracer records have them: they contain the ops' outputs and the partition graphs."
    )
