"""Memory of a step, from the allocator events that a profile recorded.

The *curve* of an allocator is its bytes in use after each event, including memory from before the profile. Each allocation is one
*tensor*. It lives until the next event at its address; if there is none in the profile, it lives to the end of the step. A tensor
that was allocated before the step began counts from the step's beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Memory, MemoryCurve
from tftracer.trace.analyses.memory import MAX_TENSORS, HeldBytes, curve_message, tensor_rows
from tftracer.trace.arrays.columns import Coded, Columns
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.outputs_and_memory import dtype_name
from tftracer.trace.model import Allocations, Trace

_GPU = re.compile(r"GPU_(\d+)_bfc")


@dataclass(frozen=True)
class Lives:
    """The tensors of a profile that lived longer than 0 ns, on the trace's clock."""

    recorded: Allocations
    time: Int64  # [events] ns since the trace's origin
    alloc_event: Int64  # [tensors] index of the event that allocated each
    free_ns: Int64  # [tensors] when each was freed, in ns since the trace's origin
    largest: Int64  # indices of the tensors, largest first

    def alive(self, curve: MemoryCurve) -> Int64:
        """Return the indices of the tensors of a curve's allocator that are alive at its peak."""
        of_curve = self.recorded.allocator[self.alloc_event] == self.recorded.allocators.index(curve["allocator"])
        return np.flatnonzero(of_curve & (self.time[self.alloc_event] <= curve["peak_ns"]) & (self.free_ns > curve["peak_ns"]))


def lives(trace: Trace, recorded: Allocations, origin: int) -> Lives:
    """Compute the lives of all tensors. ``origin``: the profile's time at the trace's time 0."""
    time = np.clip(recorded.time - origin, 0, trace.duration_ns)
    alloc_event = np.flatnonzero(~recorded.is_freed)
    free_ns = _free_times(recorded, time, alloc_event, trace.duration_ns)
    lived = free_ns > time[alloc_event]
    alloc_event, free_ns = alloc_event[lived], free_ns[lived]
    return Lives(recorded, time, alloc_event, free_ns, np.argsort(-recorded.bytes[alloc_event], kind="stable"))


def curves(lived: Lives) -> list[MemoryCurve]:
    """Return the curve of each allocator, highest peak first."""
    return [curve_message(held) for held in held_bytes(lived)]


def memory_of_allocations(trace: Trace, lived: Lives, findings: list[Finding], limit: int = MAX_TENSORS) -> Memory:
    """Return the answer with the ``limit`` largest tensors."""
    tensors = tensor_columns(trace, lived, lived.largest[:limit], trace.start)
    return {
        "curves": curves(lived),
        "tensors": tensor_rows(tensors),
        "tensors_total": len(lived.alloc_event),
        "temporary": [],
        "persistent_bytes": 0.0,
        "findings": findings,
    }


def _free_times(allocations: Allocations, time: Int64, alloc_event: Int64, end: int) -> Int64:
    """Return [tensors] when each was freed: at the next event of its address; ``end`` if there is none."""
    order = np.lexsort((allocations.address, allocations.allocator))
    following = np.full(len(time), -1, np.int64)
    first, second = order[:-1], order[1:]
    same = allocations.address[first] == allocations.address[second]
    same &= allocations.allocator[first] == allocations.allocator[second]
    following[first[same]] = second[same]
    freed = following[alloc_event]
    return np.where(freed >= 0, time[freed], end)


def held_bytes(lived: Lives) -> list[HeldBytes]:
    """Return the bytes of each allocator over time, highest peak first."""
    names = lived.recorded.allocators
    each = [HeldBytes(name, device_of(name), *_in_use(lived.recorded, lived.time, code)) for code, name in enumerate(names)]
    return sorted(each, key=lambda held: -int(held.bytes.max()))


def _in_use(allocations: Allocations, time: Int64, code: int) -> tuple[Int64, Int64]:
    """Return (times, bytes) of one allocator, from the step's beginning on."""
    events = np.flatnonzero(allocations.allocator == code)
    in_use, times = allocations.in_use[events], time[events]
    initial = in_use[0] + allocations.bytes[events[0]] * (1 if allocations.is_freed[events[0]] else -1)  # before the first event
    in_use, times = np.append(initial, in_use), np.append(0, times)
    is_last = np.append(np.diff(times) > 0, True)  # only the last of several events at the same time counts
    return times[is_last], in_use[is_last]


def device_of(allocator: str) -> str:
    gpu = _GPU.fullmatch(allocator)
    return f"/device:GPU:{gpu.group(1)}" if gpu else "/host:CPU"


def name_of(trace: Trace, recorded: Allocations, event: int) -> str:
    """Return the name of the op that allocated, from the event or else from the node that was running; "" if unknown."""
    node = int(recorded.node[event])
    return recorded.ops[int(recorded.op[event])] or (trace.names[trace.name[node]] if node >= 0 else "")


def tensor_columns(trace: Trace, lived: Lives, shown: Int64, start: Int64) -> Columns:
    """Return the columns of some tensors; slot, shape and consumers are not known.

    ``shown``: the indices of these tensors. ``start``: [n] the start of each node on the clock of the table.
    """
    recorded, event = lived.recorded, lived.alloc_event[shown]
    node, allocator = recorded.node[event], recorded.allocator[event]
    shift, unknown = _shift(trace, node, start), np.ma.masked_array(np.zeros(len(event), np.int64), True)
    return {
        "node": lambda: np.ma.masked_less(node, 0),
        "name": lambda: [name_of(trace, recorded, one) for one in event.tolist()],
        "output": lambda: unknown,
        "op": lambda: Coded(np.where(node >= 0, trace.op[node], -1), trace.ops),
        "device": lambda: Coded(allocator, [device_of(name) for name in recorded.allocators]),
        "allocator": lambda: Coded(allocator, recorded.allocators),
        "bytes": lambda: recorded.bytes[event],
        "shape": lambda: Coded(np.full(len(event), -1), []),
        "dtype": lambda: [dtype_name(code) for code in recorded.dtype[event].tolist()],
        "alloc_ns": lambda: lived.time[event] + shift,
        "free_ns": lambda: lived.free_ns[shown] + shift,
        "last_consumer": lambda: unknown,
    }


def _shift(trace: Trace, node: Int64, start: Int64) -> Int64:
    """Return [node] the offset from the trace's clock to the table's. Tensors without a node use the earliest node's offset."""
    if not trace.n:
        return np.zeros(len(node), np.int64)
    shift = start - trace.start
    return np.where(node >= 0, shift[node], shift[int(trace.start.argmin())])
