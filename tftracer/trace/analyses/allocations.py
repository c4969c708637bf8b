"""Memory by the allocations that a profile recorded: an allocator's own account of what it holds, and of each piece of it.

The *curve* of an allocator is what it said to hold after each event; what it held before the profile is part of it. A *tensor* is
one allocation, from its event to the freeing of the same address. One that is not freed in the profile lives to the end of the
step; what was allocated before the step's first op lives from its beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Memory, MemoryCurve, Tensor
from tftracer.trace.analyses.memory import MAX_AT_PEAK, MAX_TENSORS, HeldBytes, thinned
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.resources import dtype_name
from tftracer.trace.model import Allocations, Trace

_GPU = re.compile(r"GPU_(\d+)_bfc")


@dataclass(frozen=True)
class Lives:
    """The allocations of a profile in its trace's time, and the pieces of memory that lived for some of it."""

    recorded: Allocations
    time: Int64  # [events] ns since the trace's origin
    alloc: Int64  # [pieces] the event that allocated each
    free: Int64  # [pieces] ns since the trace's origin
    largest: Int64  # pieces, by size

    def alive(self, curve: MemoryCurve, at_ns: float | None = None, most: int | None = MAX_AT_PEAK) -> Int64:
        """The ``most`` largest pieces of a curve's allocator, at its peak or at ``at_ns``; None: all of them."""
        moment = curve["peak_ns"] if at_ns is None else at_ns
        of_curve = self.recorded.allocator[self.alloc] == self.recorded.allocators.index(curve["allocator"])
        alive = np.flatnonzero(of_curve & (self.time[self.alloc] <= moment) & (self.free > moment))
        largest: Int64 = alive[np.argsort(-self.recorded.bytes[self.alloc[alive]], kind="stable")][:most]
        return largest


def lives(trace: Trace, recorded: Allocations, origin: int) -> Lives:
    """``origin``: the profile's time at the trace's time 0."""
    time = np.clip(recorded.time - origin, 0, trace.duration_ns)
    alloc = np.flatnonzero(~recorded.is_freed)
    free = _freed(recorded, time, alloc, trace.duration_ns)
    lived = free > time[alloc]
    alloc, free = alloc[lived], free[lived]
    return Lives(recorded, time, alloc, free, np.argsort(-recorded.bytes[alloc], kind="stable"))


def curves(lived: Lives) -> list[MemoryCurve]:
    """The highest peak first."""
    each = [_curve(lived.recorded, lived.time, code) for code in range(len(lived.recorded.allocators))]
    return sorted(each, key=lambda curve: -curve["peak_bytes"])


def memory_of_allocations(
    trace: Trace, lived: Lives, findings: list[Finding], at_ns: float | None = None, most: int = MAX_TENSORS
) -> Memory:
    """The answer, with the ``most`` largest pieces. ``at_ns``: list what was alive then instead of at the peak."""
    of_allocators = curves(lived)
    return {
        "curves": of_allocators,
        "tensors": _tensors(trace, lived, lived.largest[:most]),
        "tensors_total": len(lived.alloc),
        "at_peak": _tensors(trace, lived, lived.alive(of_allocators[0], at_ns)),
        "temporary": [],
        "persistent_bytes": 0.0,
        "findings": findings,
    }


def _freed(allocations: Allocations, time: Int64, alloc: Int64, end: int) -> Int64:
    """[alloc] when each was freed: at the next event of its address, if that is a freeing."""
    order = np.lexsort((allocations.address, allocations.allocator))
    following = np.full(len(time), -1, np.int64)
    first, second = order[:-1], order[1:]
    same = allocations.address[first] == allocations.address[second]
    same &= allocations.allocator[first] == allocations.allocator[second]
    following[first[same]] = second[same]
    freed = following[alloc]
    return np.where(freed >= 0, time[freed], end)


def held_bytes(lived: Lives) -> list[HeldBytes]:
    """Of each allocator, the highest peak first."""
    names = lived.recorded.allocators
    each = [HeldBytes(name, device_of(name), *_in_use(lived.recorded, lived.time, code)) for code, name in enumerate(names)]
    return sorted(each, key=lambda held: -int(held.bytes.max()))


def _in_use(allocations: Allocations, time: Int64, code: int) -> tuple[Int64, Int64]:
    """(times, bytes) of one allocator, from the step's beginning on."""
    mine = np.flatnonzero(allocations.allocator == code)
    in_use, times = allocations.in_use[mine], time[mine]
    held = in_use[0] + allocations.bytes[mine[0]] * (1 if allocations.is_freed[mine[0]] else -1)  # before its first event
    in_use, times = np.append(held, in_use), np.append(0, times)
    last = np.append(np.diff(times) > 0, True)  # of several events at a time the last says what is held then
    return times[last], in_use[last]


def _curve(allocations: Allocations, time: Int64, code: int) -> MemoryCurve:
    times, in_use = _in_use(allocations, time, code)
    peak = int(np.argmax(in_use))
    shown = thinned(in_use, peak)
    return {
        "allocator": allocations.allocators[code],
        "device": device_of(allocations.allocators[code]),
        "time_ns": times[shown].astype(np.float64).tolist(),
        "bytes": in_use[shown].astype(np.float64).tolist(),
        "peak_bytes": float(in_use[peak]),
        "peak_ns": float(times[peak]),
    }


def device_of(allocator: str) -> str:
    gpu = _GPU.fullmatch(allocator)
    return f"/device:GPU:{gpu.group(1)}" if gpu else "/host:CPU"


def name_of(trace: Trace, recorded: Allocations, event: int) -> str:
    """Of the op that an allocation was for: as the allocator was told, else of the node that was running; "" for none."""
    node = int(recorded.node[event])
    return recorded.ops[int(recorded.op[event])] or (trace.names[trace.name[node]] if node >= 0 else "")


def _tensors(trace: Trace, lived: Lives, pieces: Int64) -> list[Tensor]:
    return [_tensor(trace, lived, piece) for piece in pieces.tolist()]


def _tensor(trace: Trace, lived: Lives, piece: int) -> Tensor:
    recorded, event = lived.recorded, int(lived.alloc[piece])
    node, allocator = int(recorded.node[event]), recorded.allocators[int(recorded.allocator[event])]
    return {
        "node": node,
        "name": name_of(trace, recorded, event),
        "output": -1,
        "op": trace.ops[trace.op[node]] if node >= 0 else "",
        "device": device_of(allocator),
        "allocator": allocator,
        "bytes": float(recorded.bytes[event]),
        "shape": "",
        "dtype": dtype_name(int(recorded.dtype[event])),
        "alloc_ns": float(lived.time[event]),
        "free_ns": float(lived.free[piece]),
        "last_consumer": -1,
    }
