"""The rows of the table of tensors: outputs of ops, or, in a profile, what its allocators recorded. The largest first."""

from __future__ import annotations

import numpy as np

from tftracer.export.tables.table import Coded, Columns, Values
from tftracer.trace.analyses import allocations
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.resources import dtype_name
from tftracer.trace.model import Trace


def tensor_columns(answers: Answers, start: Int64) -> tuple[int, Columns]:
    """(how many, their columns). ``start``: [n] of the trace's nodes, on the clock that the table shows."""
    recorded = answers.recorded
    if recorded is not None:
        return len(recorded.largest), _allocated(answers.trace, recorded, start)
    return len(answers.used.largest), _made(answers, start)


def _made(answers: Answers, start: Int64) -> Columns:
    """Of the outputs that RunMetadata tells."""
    trace, used, outputs = answers.trace, answers.used, answers.outputs
    lives, buffers, shown = used.lives, used.buffers, used.largest
    output = lives.output[buffers.first[shown]]
    node = outputs.node[output]
    shift = (start - trace.start)[node]
    place, places = buffers.place[shown], lives.places
    dtypes, dtype = np.unique(outputs.dtype[output], return_inverse=True)
    return {
        "node": lambda: node,
        "name": lambda: Coded(trace.name[node], trace.names),
        "output": lambda: outputs.slot[output],
        "op": lambda: Coded(trace.op[node], trace.ops),
        "device": lambda: Coded(place, [trace.devices[device].name for device, _ in places]),
        "allocator": lambda: Coded(place, [allocator for _, allocator in places]),
        "bytes": lambda: buffers.bytes[shown],
        "shape": lambda: Coded(outputs.shape[output], outputs.shapes.texts),
        "dtype": lambda: Coded(dtype.reshape(-1), [dtype_name(code) for code in dtypes.tolist()]),
        "alloc_ns": lambda: buffers.alloc[shown] + shift,
        "free_ns": lambda: buffers.free[shown] + shift,
        "last_consumer": lambda: np.ma.masked_less(used.last[shown], 0),
    }


def _allocated(trace: Trace, lives: allocations.Lives, start: Int64) -> Columns:
    """Of the pieces that a profile's allocators recorded: whose slot, shape and consumers are not known."""
    recorded, event = lives.recorded, lives.alloc[lives.largest]
    node, allocator, rows = recorded.node[event], recorded.allocator[event], len(event)
    shift = _shift(trace, node, start)
    return {
        "node": lambda: np.ma.masked_less(node, 0),
        "name": lambda: [allocations.name_of(trace, recorded, one) for one in event.tolist()],
        "output": lambda: _unknown(rows),
        "op": lambda: Coded(np.where(node >= 0, trace.op[node], -1), trace.ops),
        "device": lambda: Coded(allocator, [allocations.device_of(name) for name in recorded.allocators]),
        "allocator": lambda: Coded(allocator, recorded.allocators),
        "bytes": lambda: recorded.bytes[event],
        "shape": lambda: Coded(np.full(rows, -1), []),
        "dtype": lambda: [dtype_name(code) for code in recorded.dtype[event].tolist()],
        "alloc_ns": lambda: lives.time[event] + shift,
        "free_ns": lambda: lives.free[lives.largest] + shift,
        "last_consumer": lambda: _unknown(rows),
    }


def _unknown(rows: int) -> Values:
    return np.ma.masked_array(np.zeros(rows, np.int64), True)


def _shift(trace: Trace, node: Int64, start: Int64) -> Int64:
    """[node] from the trace's clock to the table's; what no op allocated takes that of the trace's earliest node."""
    if not trace.n:
        return np.zeros(len(node), np.int64)
    shift = start - trace.start
    return np.where(node >= 0, shift[node], shift[int(trace.start.argmin())])
