"""Counters over the time of a step, constant between their changes, on the timeline's axis.

- *Ops running*: ops of the host that have started and not ended. Communication ops are left out: they wait without a thread.
- *Ops ready*: the same ops from ``scheduled`` to their start: they wait for a thread.
- *Bytes in flight*: transfers between processes count from the moment at which the sender began to send (communication.py):
  before that, their ops only wait. Collectives count from start to end, with the bytes of their results.
- *GPU busy*: 1 while a kernel or a copy runs on one of the GPU's streams, else 0.
- *Memory*: the bytes of an allocator (memory.py, allocations.py).

A counter has every change, so that values and extremes are exact at each zoom. Counters that a trace does not have are in
``missing`` with the reason. NumPy, with one Python iteration per GPU and per allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union, cast

import numpy as np
import numpy.typing as npt

from tftracer.contract.trace import Counter, Counters, CounterUnit, MissingCounter
from tftracer.trace.analyses import physical_devices, scheduling
from tftracer.trace.analyses.communication import transfers
from tftracer.trace.analyses.memory import HeldBytes, curve
from tftracer.trace.arrays.columns import column
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.node_kinds import NO_COLLECTIVE
from tftracer.trace.decode.outputs_and_memory import Outputs
from tftracer.trace.model import DeviceKind, NodeKind, Trace

MAX_BYTES = 1 << 53
RUNNING, READY, IN_FLIGHT, MEMORY = "Ops running", "Ops ready", "Bytes in flight", "Memory"

CounterOrMissing = Union[Counter, MissingCounter]


def counters(trace: Trace, outputs: Outputs, held: Sequence[HeldBytes]) -> Counters:
    """Compute all counters. ``outputs``: for the sizes of collectives. ``held``: the bytes of each allocator over time."""
    parts = [_running(trace), _ready(trace), _in_flight(trace, outputs), *_gpus(trace), *_memory(trace, held)]
    return {
        "counters": [part for part in parts if "reason" not in part],
        "missing": [cast(MissingCounter, part) for part in parts if "reason" in part],
    }


def _missing(title: str, reason: str) -> MissingCounter:
    return {"title": title, "reason": reason}


def _running(trace: Trace) -> CounterOrMissing:
    selected = _on_threads(trace)
    if not selected.any():
        return _missing(RUNNING, "The trace has no ops of the host.")
    return _counter(
        "running", RUNNING, "ops", curve(trace.start[selected], trace.end[selected], np.ones(int(selected.sum()), np.int64))
    )


def _ready(trace: Trace) -> CounterOrMissing:
    on_threads = _on_threads(trace)
    node, _ = scheduling.delays(trace)
    node = node[on_threads[node]]
    known, ops = len(node), int(on_threads.sum())
    if not known:
        return _missing(READY, "The trace has no scheduling times.")
    note = "" if known == ops else f"Of {known:,} of {ops:,} ops: the others have no scheduling time."
    return _counter("ready", READY, "ops", curve(trace.scheduled[node], trace.start[node], np.ones(known, np.int64)), note)


def _on_threads(trace: Trace) -> Bool:
    """Return [n] whether an op takes a thread of the host while it runs."""
    elsewhere = physical_devices.runs_on(trace, *physical_devices.ON_DEVICE, DeviceKind.SYNC)
    result: Bool = trace.counted & ~elsewhere & (trace.kind != NodeKind.COMMUNICATION)
    return result


def _in_flight(trace: Trace, outputs: Outputs) -> CounterOrMissing:
    moved = transfers(trace)
    others = moved.without_link
    collective = others[~trace.op_types_where(NO_COLLECTIVE.fullmatch)[trace.op[others]]]
    node = np.concatenate([moved.node, collective])
    size = np.concatenate([trace.bytes_moved[moved.node], _result_bytes(outputs, collective)])
    counted = trace.counted[node]
    node, size = node[counted], size[counted]
    unknown = int((size <= 0).sum())
    if not len(node):
        return _missing(IN_FLIGHT, "The step has neither transfers between processes nor collectives.")
    if unknown == len(node):
        return _missing(IN_FLIGHT, "The trace does not tell how many bytes its transfers and collectives move.")
    note = (
        f"Without {unknown:,} of {len(node):,} transfers and collectives: the trace does not tell their sizes." if unknown else ""
    )
    return _counter("in-flight", IN_FLIGHT, "bytes", curve(trace.start[node], trace.end[node], np.maximum(size, 0)), note)


def _result_bytes(outputs: Outputs, node: Int64) -> Int64:
    """Return for each node the bytes of its outputs; 0 if they are not known or impossible."""
    size = np.where(outputs.requested_bytes > 0, outputs.requested_bytes, outputs.allocated_bytes)
    nodes = int(max(outputs.node.max(initial=-1), node.max(initial=-1))) + 1
    sums = np.bincount(outputs.node, size, nodes)
    return np.where(np.abs(sums) < MAX_BYTES, sums, 0).astype(np.int64)[node]


def _gpus(trace: Trace) -> Iterator[CounterOrMissing]:
    on_stream = physical_devices.on_stream(trace)
    gpus = [group for group in physical_devices.physical_devices(trace) if group.kind is DeviceKind.GPU]
    for number, group in enumerate(gpus):
        title = f"{group.title} busy"
        on_gpu = on_stream & physical_devices.members(trace, group)
        if on_gpu.any():
            busy = Cover.of(trace.start[on_gpu], trace.end[on_gpu])
            yield _counter(f"gpu-{number}", title, "share", curve(busy.start, busy.end, np.ones(len(busy), np.int64)))
        else:
            yield _missing(title, "The trace has no kernels of this GPU.")


def _memory(trace: Trace, held: Sequence[HeldBytes]) -> Iterator[CounterOrMissing]:
    if not held:
        yield _missing(MEMORY, "The trace has no records of allocators.")
    titles = {device.name: device.title for device in trace.devices}
    for number, each in enumerate(held):
        allocator = f" ({each.allocator})" if each.allocator else ""
        title = f"{MEMORY} of {titles.get(each.device, each.device)}{allocator}"
        yield _counter(f"memory-{number}", title, "bytes", (each.time, each.bytes))


def _counter(key: str, title: str, unit: CounterUnit, points: tuple[Int64, Int64], note: str = "") -> Counter:
    """Return a counter. ``points``: (ascending times, the value from each time to the next)."""
    time, value = points
    if not len(time) or time[0] > 0:
        time, value = np.append(0, time), np.append(0, value)
    changes = np.append(True, value[1:] != value[:-1])
    time, value = time[changes], value[changes]
    gap = np.diff(time, prepend=0)
    wide = len(gap) > 0 and int(gap.max()) >= 1 << 32
    return {
        "key": key,
        "title": title,
        "unit": unit,
        "note": note,
        "gap_ns": column(gap if wide else gap.astype(np.uint32)),
        "value": column(_narrow(value)),
    }


def _narrow(value: Int64) -> npt.NDArray[np.generic]:
    """Convert to the smallest unsigned type that fits; values that fit none stay int64."""
    low, high = int(value.min(initial=0)), int(value.max(initial=0))
    return value.astype(np.min_scalar_type(high)) if low >= 0 and high < 1 << 32 else value
