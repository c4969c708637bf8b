"""Reads outputs and memory of all nodes from the raw bytes into columns, without a Python object per node.

Submessages are read like the nodes: the first field of all messages of a block, then the second field of all, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tftracer.trace.arrays.strings import Hasher, StringTable, numbered, table
from tftracer.trace.arrays.types import Int32, Int64, UInt64
from tftracer.trace.arrays.window import Window, blocks
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.node_fields import MEMORY_STATS, OUTPUT, Messages, read_messages, take
from tftracer.trace.decode.tensor_shapes import Shapes
from tftracer.trace.model import Trace

_NO_SHAPE = -1  # in place of a size


@dataclass
class Outputs:
    """The outputs of all nodes, [outputs] each, in the order of nodes and slots in the file."""

    node: Int64
    slot: Int64
    requested_bytes: Int64
    allocated_bytes: Int64
    ptr: Int64  # address, 0 if not known
    allocator: Int32  # codes into allocators
    dtype: Int32  # tensorflow.DataType
    shape: Int32  # codes into shapes
    shapes: Shapes
    allocators: StringTable

    def dtype_of(self, output: int) -> str:
        """Return `float32`; "" if not known."""
        return dtype_name(int(self.dtype[output]))


class MemoryStats(NamedTuple):
    """[n] bytes that each node allocates besides its outputs."""

    temp_bytes: Int64  # freed when the node ends
    persistent_bytes: Int64


def message(name: str, data: bytes) -> Any:
    """Parse a message; return an empty one if protobuf rejects it, for example for text that is not UTF-8."""
    parsed = message_class(name)()
    try:
        parsed.ParseFromString(data)
    except Exception:  # google.protobuf.message.DecodeError, or what an older C parser raises
        return message_class(name)()
    return parsed


@lru_cache(maxsize=256)
def dtype_name(dtype: int) -> str:
    """Return the usual name, `float32`; "" for 0, the number itself for an unknown type."""
    if not dtype:
        return ""
    values = message_class("TensorDescription").DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number
    if dtype not in values:
        return str(dtype)
    text: str = values[dtype].name[3:].lower()
    return {"float": "float32", "double": "float64", "half": "float16"}.get(text, text)


def decode_resources(trace: Trace) -> tuple[Outputs, MemoryStats]:
    """Read outputs and memory in one pass over the nodes; no outputs and all 0 for a trace without raw bytes.

    Raises FormatError if the bytes are not NodeExecStats.
    """
    outputs, memory = _Outputs(), MemoryStats(*np.zeros((2, trace.n), np.int64))
    if not trace.content.size:
        return outputs.columns(b""), memory
    for block, window, start, end in blocks(trace.raw, trace.offset, trace.offset + trace.size):
        messages = read_messages(window, start, end)
        outputs.add(window, block.start, messages[OUTPUT])
        columns = {1: memory.temp_bytes[block], 3: memory.persistent_bytes[block]}  # temp_memory_size, persistent_memory_size
        take(window, messages[MEMORY_STATS], columns, 0, by_parent=True)
    return outputs.columns(trace.raw), memory


#: Maximum slot of an output. TensorFlow's own limit is a tenth of it.
_MAX_SLOT = 1 << 20


class _Outputs:
    """Collects the outputs of all blocks."""

    def __init__(self) -> None:
        self.parts: list[list[Int64]] = []
        self.names: list[tuple[UInt64, Int64, Int64]] = []  # of allocators, as ``_hashed`` returns them for each block
        self.shapes: list[tuple[UInt64, Int64, Int64]] = []  # the same for shapes
        self.hasher = Hasher.random()

    def add(self, window: Window, first: int, outputs: Messages) -> None:
        n = len(outputs.row)
        slot, dtype = np.zeros(n, np.int64), np.zeros(n, np.int64)
        # NodeOutput: slot 1, tensor_description 3. TensorDescription: dtype 1, shape 2, allocation_description 4.
        tensors = take(window, outputs, {1: slot}, 3)
        shape = {2: (np.zeros(n, np.int64), np.full(n, _NO_SHAPE))}
        allocations = take(window, tensors, {1: dtype}, 4, by_parent=True, spans=shape)
        self.shapes.append(_hashed(self.hasher, window, *shape[2]))
        # AllocationDescription: requested_bytes 1, allocated_bytes 2, allocator_name 3, ptr 6.
        numbers = {number: np.zeros(n, np.int64) for number in (1, 2, 6)}
        spans = {3: (np.zeros(n, np.int64), np.zeros(n, np.int64))}
        take(window, allocations, numbers, 0, by_parent=True, spans=spans)
        self.names.append(_hashed(self.hasher, window, *spans[3]))
        self.parts.append([outputs.row + first, np.clip(slot, 0, _MAX_SLOT), numbers[1], numbers[2], numbers[6], dtype])

    def columns(self, raw: bytes) -> Outputs:
        numbers = map(np.concatenate, zip(*self.parts)) if self.parts else np.zeros((6, 0), np.int64)
        node, slot, requested, allocated, ptr, dtype = numbers
        allocator, *names = _coded(self.names)
        shape, *shapes = _coded(self.shapes)
        codes = allocator, dtype.astype(np.int32), shape
        return Outputs(node, slot, requested, allocated, ptr, *codes, Shapes(raw, *shapes), table(raw, *names))


def _hashed(hasher: Hasher, window: Window, offset: Int64, size: Int64) -> tuple[UInt64, Int64, Int64]:
    """Return (hashes, offsets in the raw bytes, sizes). Size -1 (no shape) has hash 0, unlike the empty shape of a scalar."""
    hashes = hasher.spans(window, offset, np.maximum(size, 0))
    return np.where(size < 0, np.uint64(0), hashes), offset + window.low, size


def _coded(parts: list[tuple[UInt64, Int64, Int64]]) -> tuple[Int32, Int64, Int64]:
    """Return (code of each string, offset and size of each distinct one)."""
    if not parts:
        return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    hashes, offset, size = (np.concatenate(column) for column in zip(*parts))
    codes, first = numbered(hashes)
    return codes, offset[first], size[first]
