"""Memory of a step over time, per allocator, from the outputs in the trace and their consumers in the graph.

- An *output* lives from the start of its op to the end of its last consumer. An output without consumers lives to the end of its
  op if the edges come from partition graphs; otherwise consumers may be missing, and it lives to the end of the step.
- A *buffer* is shared by outputs with the same address whose lives overlap (ops forward buffers). It counts once, with
  the largest of their sizes. An output without a recorded address is a buffer of its own.
- Outputs of variables and constants exist before and after the step, so they live through all of it.
- The *curve* of an allocator is the sum of its buffers' allocated bytes (or requested bytes, if only these are known). Workspaces
  that ops hold only while they run are listed separately by op type (``temporary``). Memory that ops keep is a single sum
  (``persistent_bytes``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Memory, MemoryCurve, OpRow, Tensor
from tftracer.trace.analyses import ops as ops_
from tftracer.trace.arrays.columns import Coded, Columns, rows_of
from tftracer.trace.arrays.intervals import Numbering, distinct
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Float64, Int32, Int64
from tftracer.trace.decode.outputs_and_memory import dtype_name
from tftracer.trace.model import Trace

if TYPE_CHECKING:
    from tftracer.trace.analyses.dependencies import Graph
    from tftracer.trace.decode.outputs_and_memory import MemoryStats, Outputs

MAX_POINTS = 4_000
MAX_TENSORS = 5_000
MAX_TEMPORARY = 100

#: Op types whose outputs live in memory that was allocated before the step.
PERSISTENT = frozenset([
    "Const", "HostConst", "Variable", "VariableV2", "ReadVariableOp", "VarHandleOp", "_VarHandlesOp", "AutoReloadVariable",
    "ImmutableConst",
])  # fmt: skip


@dataclass(frozen=True)
class Lives:
    """One entry per output that holds memory. Times in ns since the step began."""

    output: Int64  # index into Outputs
    alloc: Int64
    free: Int64
    consumer: Int64  # the last consumer, -1: none known
    bytes: Int64
    place: Int64  # the allocator that holds it: index into places
    places: list[tuple[int, str]]  # (device code, allocator)


def lifetimes(trace: Trace, outputs: Outputs, graph: Graph) -> Lives:
    """Return when each output was allocated and freed; forwarded buffers are not merged yet."""
    size = np.maximum(outputs.allocated_bytes, outputs.requested_bytes)
    index = np.flatnonzero((size > 0) & trace.counted[outputs.node] & (trace.start[outputs.node] >= 0))
    node = outputs.node[index]
    last_end, consumer = _last_consumers(trace, graph, node, outputs.slot[index])
    alloc = trace.start[node].copy()
    without_consumer = trace.end[node] if graph.source == "partition_graph" else np.full(len(node), trace.duration_ns)
    free = np.where(consumer >= 0, np.maximum(last_end, trace.end[node]), without_consumer)
    lasting = trace.op_types_where(PERSISTENT.__contains__)[trace.op[node]]
    alloc[lasting], free[lasting] = 0, trace.duration_ns
    place, places = _places(trace, node, outputs.allocator[index], outputs.allocators)
    return Lives(index, alloc, free, consumer, size[index], place, places)


def _last_consumers(trace: Trace, graph: Graph, node: Int64, slot: Int64) -> tuple[Int64, Int64]:
    """Return for each output (node, slot) when its last consumer ended, and this consumer; -1 if it has none."""
    data = np.flatnonzero(~graph.control)
    stride = int(max(graph.slot[data].max(initial=0), slot.max(initial=0))) + 1
    wanted = node.astype(np.int64) * stride + slot
    key = graph.producer[data].astype(np.int64) * stride + np.maximum(graph.slot[data], 0)
    consumer = graph.consumer[data].astype(np.int64)
    order = np.lexsort((consumer, trace.end[consumer], key))
    key, consumer = key[order], consumer[order]
    at = np.searchsorted(key, wanted, "right") - 1
    if not len(key):
        return np.full(len(node), -1, np.int64), np.full(len(node), -1, np.int64)
    consumed = (at >= 0) & (key[at] == wanted)
    last_consumer = np.where(consumed, consumer[at], -1)
    return np.where(consumed, trace.end[last_consumer], -1), last_consumer


def _places(trace: Trace, node: Int64, allocator: Int32, names: StringTable) -> tuple[Int64, list[tuple[int, str]]]:
    """Number the pairs of device and allocator: the same allocator name on two devices is two allocators."""
    stride = max(len(names), 1)
    key = trace.device[node].astype(np.int64) * stride + allocator
    numbers = Numbering(key)
    return numbers(key), [(k // stride, names[k % stride]) for k in numbers.values.tolist()]


@dataclass(frozen=True)
class Buffers:
    """One entry per buffer. Times in ns since the step began."""

    alloc: Int64
    free: Int64
    bytes: Int64
    place: Int64  # the allocator that holds it: index into Lives.places
    first: Int64  # position in Lives of the output that created it
    buffer_of: Int64  # [lives] the buffer of each output


def buffers(lives: Lives, ptr: Int64) -> Buffers:
    """Merge outputs at the same address of an allocator whose lives overlap. ``ptr``: [lives], 0: not known."""
    n = len(lives.output)
    # Outputs with an unknown address, or with no lifetime, get a distinct negative address: real ones have 48 bits.
    address = np.where((ptr == 0) | (lives.free <= lives.alloc), -1 - np.arange(n), ptr)
    order = np.lexsort((lives.free, lives.alloc, address, lives.place))
    place, address = lives.place[order], address[order]
    alloc, free = lives.alloc[order], lives.free[order]
    new_address = np.ones(n, bool)
    new_address[1:] = (place[1:] != place[:-1]) | (address[1:] != address[:-1])
    reached = _reached(free, new_address)
    first = new_address.copy()
    first[1:] |= alloc[1:] >= reached[:-1]
    group = np.cumsum(first) - 1
    begin = np.flatnonzero(first)
    buffer_of = np.empty(n, np.int64)
    buffer_of[order] = group
    ends = np.maximum.reduceat(free, begin)
    sizes = np.maximum.reduceat(lives.bytes[order], begin)
    return Buffers(alloc[begin], ends, sizes, place[begin], order[begin], buffer_of)


def _reached(free: Int64, new: Bool) -> Int64:
    """Return the running maximum of ``free``, which starts again at each position where ``new`` is True."""
    lift = (np.cumsum(new) - 1) * (int(free.max(initial=0)) + 1)  # separates the ranges of the addresses
    reached: Int64 = np.maximum.accumulate(free + lift) - lift
    return reached


def curve(alloc: Int64, free: Int64, size: Int64) -> tuple[Int64, Int64]:
    """Return (times, live bytes from each time on). A buffer does not count at the time at which it is freed."""
    times = np.concatenate([alloc, free])
    change = np.concatenate([size, -size])
    order = np.argsort(times, kind="stable")
    live = np.cumsum(change[order])
    is_last = np.append(np.diff(times[order]) > 0, True)[: len(order)]
    return times[order][is_last], live[is_last]


@dataclass(frozen=True)
class Alive:
    """The pieces of memory of an allocator at its peak."""

    node: Int64  # the node that allocated each piece, -1: not known
    bytes: Float64
    allocator: str
    device: str
    at_ns: float


class HeldBytes(NamedTuple):
    """The bytes of an allocator over a step: ``bytes[i]`` from ``time[i]`` on."""

    allocator: str
    device: str  # the name of its device
    time: Int64  # ns
    bytes: Int64


@dataclass(frozen=True)
class StepTensors(ABC):
    """The tensors of a step: buffers of its outputs (``OutputBuffers``), or a profile's allocations (``AllocatedTensors``)."""

    trace: Trace
    curves: list[MemoryCurve]  # of each allocator, highest peak first
    largest: Int64  # indices of the tensors, largest first

    @abstractmethod
    def held(self) -> list[HeldBytes]:
        """Return the bytes of each allocator over time, highest peak first."""

    @abstractmethod
    def at_peak(self) -> Alive | None:
        """Return the memory that is alive at the highest peak; None if no memory is known."""

    @abstractmethod
    def columns(self, shown: Int64, start: Int64) -> Columns:
        """Return the columns of the tensors ``shown``. ``start``: [n] the start of each node by the clock of the columns."""


@dataclass(frozen=True)
class OutputBuffers(StepTensors):
    """The buffers that hold the outputs of a step's ops."""

    outputs: Outputs
    lives: Lives
    buffers: Buffers
    places: list[int]  # the index into Lives.places of each curve
    last: Int64  # [buffers] the consumer that ended last, -1: no consumers

    def held(self) -> list[HeldBytes]:
        return [_held_bytes(self.trace, self.lives, self.buffers, place) for place in self.places]

    def alive(self) -> Int64:
        """Return the buffers of the allocator with the highest peak that are alive at this peak."""
        highest, allocated = self.curves[0], self.buffers
        at_peak = (allocated.alloc <= highest["peak_ns"]) & (allocated.free > highest["peak_ns"])
        return np.flatnonzero(at_peak & (allocated.place == self.places[0]))

    def at_peak(self) -> Alive | None:
        if not self.curves:
            return None
        peak, pieces = self.curves[0], self.alive()
        node = self.outputs.node[self.lives.output[self.buffers.first[pieces]]]
        return Alive(node, self.buffers.bytes[pieces].astype(np.float64), peak["allocator"], peak["device"], peak["peak_ns"])

    def columns(self, shown: Int64, start: Int64) -> Columns:
        trace, outputs, lives, allocated = self.trace, self.outputs, self.lives, self.buffers
        output = lives.output[allocated.first[shown]]
        node = outputs.node[output]
        shift = (start - trace.start)[node]
        place, places = allocated.place[shown], lives.places
        dtypes, dtype = np.unique(outputs.dtype[output], return_inverse=True)
        return {
            "node": lambda: node,
            "name": lambda: trace.names.texts(trace.name[node]),
            "output": lambda: outputs.slot[output],
            "op": lambda: Coded(trace.op[node], trace.ops),
            "device": lambda: Coded(place, [trace.devices[device].name for device, _ in places]),
            "allocator": lambda: Coded(place, [allocator for _, allocator in places]),
            "bytes": lambda: allocated.bytes[shown],
            "shape": lambda: Coded(outputs.shape[output], outputs.shapes.texts),
            "dtype": lambda: Coded(dtype.reshape(-1), [dtype_name(code) for code in dtypes.tolist()]),
            "alloc_ns": lambda: allocated.alloc[shown] + shift,
            "free_ns": lambda: allocated.free[shown] + shift,
            "last_consumer": lambda: np.ma.masked_less(self.last[shown], 0),
        }


def output_buffers(trace: Trace, outputs: Outputs, graph: Graph) -> OutputBuffers:
    """Compute every buffer of the step, and the curves of its allocators."""
    lives = lifetimes(trace, outputs, graph)
    allocated = buffers(lives, outputs.ptr[lives.output])
    curves = [(place, curve_message(_held_bytes(trace, lives, allocated, place))) for place in range(len(lives.places))]
    curves.sort(key=lambda each: (-each[1]["peak_bytes"], each[1]["device"]))
    largest, last = np.lexsort((allocated.first, -allocated.bytes)), _last_of_buffers(trace, lives, allocated)
    messages, places = [curve for _, curve in curves], [place for place, _ in curves]
    return OutputBuffers(trace, messages, largest, outputs, lives, allocated, places, last)


def memory(tensors: StepTensors, held: MemoryStats, findings: list[Finding], limit: int = MAX_TENSORS) -> Memory:
    """Return the answer with the ``limit`` largest tensors. ``held``: the nodes' memory other than outputs."""
    return {
        "curves": tensors.curves,
        "tensors": tensor_rows(tensors.columns(tensors.largest[:limit], tensors.trace.start)),
        "tensors_total": len(tensors.largest),
        "temporary": _temporary(tensors.trace, held.temp_bytes),
        "persistent_bytes": float(held.persistent_bytes.sum()),
        "findings": findings,
    }


def _held_bytes(trace: Trace, lives: Lives, allocated: Buffers, place: int) -> HeldBytes:
    (device, allocator), of_place = lives.places[place], allocated.place == place
    return HeldBytes(
        allocator,
        trace.devices[device].name,
        *curve(allocated.alloc[of_place], allocated.free[of_place], allocated.bytes[of_place]),
    )


def curve_message(held: HeldBytes) -> MemoryCurve:
    """Return the curve of an allocator, thinned, and its peak."""
    peak = int(np.argmax(held.bytes))
    shown = thinned(held.bytes, peak)
    return {
        "allocator": held.allocator,
        "device": held.device,
        "time_ns": held.time[shown].astype(np.float64).tolist(),
        "bytes": held.bytes[shown].astype(np.float64).tolist(),
        "peak_bytes": float(held.bytes[peak]),
        "peak_ns": float(held.time[peak]),
    }


def thinned(live: Int64, peak: int) -> Int64:
    """Return at most MAX_POINTS positions of a curve: minimum and maximum of each section, both ends and the peak."""
    n = len(live)
    if n <= MAX_POINTS:
        return np.arange(n)
    begin = np.linspace(0, n, MAX_POINTS // 2 - 2, endpoint=False).astype(np.int64)
    order = np.lexsort((live, np.searchsorted(begin, np.arange(n), "right")))
    ends = np.append(begin[1:], n) - 1
    return distinct(np.concatenate([order[begin], order[ends], [0, peak, n - 1]]))


def tensor_rows(columns: Columns) -> list[Tensor]:
    """Return the rows of a message; unknown numbers are -1."""
    return [cast("Tensor", {name: -1 if value is None else value for name, value in row.items()}) for row in rows_of(columns)]


def _last_of_buffers(trace: Trace, lives: Lives, allocated: Buffers) -> Int64:
    """Return [buffers] the consumer that ended last, -1: no consumers."""
    last = np.full(len(allocated.bytes), -1, np.int64)
    consumed = np.flatnonzero(lives.consumer >= 0)
    order = consumed[np.argsort(trace.end[lives.consumer[consumed]], kind="stable")]
    last[allocated.buffer_of[order]] = lives.consumer[order]
    return last


def _temporary(trace: Trace, temporary: Int64) -> list[OpRow]:
    """Return op types by their temporary memory; total_ns, mean_ns and max_ns hold bytes."""
    node = np.flatnonzero((temporary > 0) & trace.counted)
    return ops_.rows_by_type(trace, node, temporary[node], temporary[node])[:MAX_TEMPORARY]
