"""Memory by the allocations that a profile recorded: an allocator's own account of what it holds, and of each piece of it.

The *curve* of an allocator is what it said to hold after each event; what it held before the profile is part of it. A *tensor* is
one allocation, from its event to the freeing of the same address. One that is not freed in the profile lives to the end of the
step; what was allocated before the step's first op lives from its beginning.
"""

from __future__ import annotations

import re

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Memory, MemoryCurve, Tensor
from tftracer.trace.analyses.memory import MAX_AT_PEAK, MAX_TENSORS, thinned
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.resources import dtype_name
from tftracer.trace.model import Allocations, Trace

_GPU = re.compile(r"GPU_(\d+)_bfc")


def memory_of_allocations(
    trace: Trace, allocations: Allocations, origin: int, findings: list[Finding], at_ns: float | None = None
) -> Memory:
    """``origin``: the profile's time at the trace's time 0. ``at_ns``: list what was alive then instead of at the peak."""
    time = np.clip(allocations.time - origin, 0, trace.duration_ns)
    alloc = np.flatnonzero(~allocations.is_freed)
    free = _freed(allocations, time, alloc, trace.duration_ns)
    lived = free > time[alloc]
    alloc, free = alloc[lived], free[lived]
    curves = [_curve(allocations, time, code) for code in range(len(allocations.allocators))]
    curves.sort(key=lambda curve: -curve["peak_bytes"])
    size = allocations.bytes[alloc]
    peak: Int64 = alloc[:0]
    if curves:
        moment = curves[0]["peak_ns"] if at_ns is None else at_ns
        of_first = allocations.allocator[alloc] == allocations.allocators.index(curves[0]["allocator"])
        alive = np.flatnonzero(of_first & (time[alloc] <= moment) & (free > moment))
        peak = alive[np.argsort(-size[alive], kind="stable")][:MAX_AT_PEAK]
    largest = np.argsort(-size, kind="stable")[:MAX_TENSORS]
    return {
        "curves": curves,
        "tensors": [_tensor(trace, allocations, int(alloc[i]), float(time[alloc[i]]), float(free[i])) for i in largest.tolist()],
        "tensors_total": len(alloc),
        "at_peak": [_tensor(trace, allocations, int(alloc[i]), float(time[alloc[i]]), float(free[i])) for i in peak.tolist()],
        "temporary": [],
        "persistent_bytes": 0.0,
        "findings": findings,
    }


def _freed(allocations: Allocations, time: Int64, alloc: Int64, end: int) -> Int64:
    """[alloc] when each was freed: at the next event of its address, if that is a freeing."""
    order = np.lexsort((np.arange(len(time)), allocations.address, allocations.allocator))
    following = np.full(len(time), -1, np.int64)
    first, second = order[:-1], order[1:]
    same = allocations.address[first] == allocations.address[second]
    same &= allocations.allocator[first] == allocations.allocator[second]
    following[first[same]] = second[same]
    freed = following[alloc]
    return np.where(freed >= 0, time[freed], end)


def _curve(allocations: Allocations, time: Int64, code: int) -> MemoryCurve:
    mine = np.flatnonzero(allocations.allocator == code)
    in_use, times = allocations.in_use[mine], time[mine]
    held = in_use[0] + allocations.bytes[mine[0]] * (1 if allocations.is_freed[mine[0]] else -1)  # before its first event
    in_use, times = np.append(held, in_use), np.append(0, times)
    last = np.append(np.diff(times) > 0, True)  # of several events at a time the last says what is held then
    in_use, times = in_use[last], times[last]
    peak = int(np.argmax(in_use))
    shown = thinned(in_use, peak)
    return {
        "allocator": allocations.allocators[code],
        "device": _device(allocations.allocators[code]),
        "time_ns": times[shown].astype(np.float64).tolist(),
        "bytes": in_use[shown].astype(np.float64).tolist(),
        "peak_bytes": float(in_use[peak]),
        "peak_ns": float(times[peak]),
    }


def _device(allocator: str) -> str:
    gpu = _GPU.fullmatch(allocator)
    return f"/device:GPU:{gpu.group(1)}" if gpu else "/host:CPU"


def _tensor(trace: Trace, allocations: Allocations, at: int, alloc_ns: float, free_ns: float) -> Tensor:
    node = int(allocations.node[at])
    return {
        "node": node,
        "name": allocations.ops[int(allocations.op[at])] or (trace.names[trace.name[node]] if node >= 0 else ""),
        "output": 0,
        "op": trace.ops[trace.op[node]] if node >= 0 else "",
        "device": _device(allocations.allocators[int(allocations.allocator[at])]),
        "allocator": allocations.allocators[int(allocations.allocator[at])],
        "bytes": float(allocations.bytes[at]),
        "shape": "",
        "dtype": dtype_name(int(allocations.dtype[at])) if allocations.dtype[at] else "",
        "alloc_ns": alloc_ns,
        "free_ns": free_ns,
        "last_consumer": -1,
    }
