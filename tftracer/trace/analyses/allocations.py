"""Memory of a step, from the allocator events that a profile recorded.

The *curve* of an allocator is its bytes in use after each event, including memory from before the profile. Each allocation is one
*tensor*. It lives until the next event at its address; if there is none in the profile, it lives to the end of the step. A tensor
that was allocated before the step began counts from the step's beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tftracer.contract.trace import MemoryCurve
from tftracer.trace.analyses.memory import Alive, HeldBytes, StepTensors, curve_message
from tftracer.trace.arrays.columns import Coded, Columns
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.outputs_and_memory import dtype_name
from tftracer.trace.model import Allocations, Trace

_GPU = re.compile(r"GPU_(\d+)_bfc")


@dataclass(frozen=True)
class AllocatedTensors(StepTensors):
    """The tensors that a profile's allocators held, and that lived longer than 0 ns, on the trace's clock."""

    recorded: Allocations
    time: Int64  # [events] ns since the trace's origin
    alloc_event: Int64  # [tensors] index of the event that allocated each
    free_ns: Int64  # [tensors] when each was freed, in ns since the trace's origin

    def held(self) -> list[HeldBytes]:
        return _held_bytes(self.recorded, self.time)

    def alive(self, curve: MemoryCurve) -> Int64:
        """Return the indices of the tensors of a curve's allocator that are alive at its peak."""
        of_curve = self.recorded.allocator[self.alloc_event] == self.recorded.allocators.index(curve["allocator"])
        return np.flatnonzero(of_curve & (self.time[self.alloc_event] <= curve["peak_ns"]) & (self.free_ns > curve["peak_ns"]))

    def at_peak(self) -> Alive:
        """Return the memory that is alive at the highest peak. Memory from before the profile is one piece without an op."""
        peak = self.curves[0]
        event = self.alloc_event[self.alive(peak)]
        size = self.recorded.bytes[event].astype(np.float64)
        before = peak["peak_bytes"] - size.sum()
        node, size = np.append(self.recorded.node[event], -1), np.append(size, max(before, 0.0))
        return Alive(node, size, peak["allocator"], peak["device"], peak["peak_ns"])

    def columns(self, shown: Int64, start: Int64) -> Columns:
        """Slot, shape and consumers are not known."""
        trace, recorded, event = self.trace, self.recorded, self.alloc_event[shown]
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
            "alloc_ns": lambda: self.time[event] + shift,
            "free_ns": lambda: self.free_ns[shown] + shift,
            "last_consumer": lambda: unknown,
        }


def allocated_tensors(trace: Trace, recorded: Allocations, origin: int) -> AllocatedTensors:
    """Compute the lives of all tensors. ``origin``: the profile's time at the trace's time 0."""
    time = np.clip(recorded.time - origin, 0, trace.duration_ns)
    alloc_event = np.flatnonzero(~recorded.is_freed)
    free_ns = _free_times(recorded, time, alloc_event, trace.duration_ns)
    lived = free_ns > time[alloc_event]
    alloc_event, free_ns = alloc_event[lived], free_ns[lived]
    curves = [curve_message(held) for held in _held_bytes(recorded, time)]
    largest = np.argsort(-recorded.bytes[alloc_event], kind="stable")
    return AllocatedTensors(trace, curves, largest, recorded, time, alloc_event, free_ns)


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


def _held_bytes(recorded: Allocations, time: Int64) -> list[HeldBytes]:
    """Return the bytes of each allocator over time, highest peak first."""
    names = recorded.allocators
    each = [HeldBytes(name, device_of(name), *_in_use(recorded, time, code)) for code, name in enumerate(names)]
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


def _shift(trace: Trace, node: Int64, start: Int64) -> Int64:
    """Return [node] the offset from the trace's clock to the table's. Tensors without a node use the earliest node's offset."""
    if not trace.n:
        return np.zeros(len(node), np.int64)
    shift = start - trace.start
    return np.where(node >= 0, shift[node], shift[int(trace.start.argmin())])
