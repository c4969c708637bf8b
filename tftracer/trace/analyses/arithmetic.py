"""How much each op computes, and how much memory it has to read and write for that: floating-point operations and bytes.

Floating-point operations are those of matrix ops (flop_formulas.py), nominal; all other ops have none by this count. Bytes are
compulsory traffic (traffic.py). Each execution has the shapes of the tensors that it read and made: in a loop, its own turn's.

On a GPU both belong to the kernels that an op launched, shared by their times; its launch has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.flop_formulas import Call, flops_of
from tftracer.trace.analyses.op_kinds import canonical, is_matrix_op
from tftracer.trace.analyses.traffic import Rules
from tftracer.trace.arrays.intervals import batches
from tftracer.trace.arrays.strings import Hasher, distinct
from tftracer.trace.arrays.types import Bool, Float64, Int32, Int64
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode.tensor_shapes import element_bytes
from tftracer.trace.model import NodeKind, Trace

if TYPE_CHECKING:
    from tftracer.trace.analyses.dependencies import Graph
    from tftracer.trace.decode.resources import Outputs

#: More than any op computes or moves.
MOST = 1e24

#: Inputs that formulas look at: a BlockLSTM's weights are its fifth.
MOST_INPUTS = 5

_HOLDS_NO_DATA = (20,)  # tensorflow.DT_RESOURCE: what an op reads through one is known from the op's rule (traffic.py)
_MISSING = -1  # in place of a shape's code: the op has this input or output, but its shape is not known


@dataclass(frozen=True)
class Arithmetic:
    """One entry a node."""

    flops: Float64  # [n] floating-point operations; NaN where not known; 0 of what is no matrix op
    bytes: Float64  # [n] compulsory traffic; NaN where not known
    is_matrix: Bool  # [n]
    dtype: Int32  # [n] tensorflow.DataType of output 0, 0 where not known


def arithmetic(trace: Trace, outputs: Outputs, graph: Graph) -> Arithmetic:
    """The arithmetic of each node of the trace."""
    tensors = _Tensors.of(trace, outputs, graph)
    is_matrix = np.array([is_matrix_op(op) for op in trace.ops] or [False])[trace.op]
    flops = np.where(known_ops(trace), 0.0, np.nan)
    rows = np.flatnonzero(is_matrix)
    flops[rows] = _flops(trace, outputs, graph, tensors, rows)
    result = Arithmetic(flops, _traffic(trace, outputs, graph, tensors), is_matrix, tensors.dtype)
    return on_kernels(trace, result, np.ones(trace.n, np.bool_))


def known_ops(trace: Trace) -> Bool:
    """[n] whether it is known what each node is."""
    known = np.array([bool(op) for op in trace.ops] or [False])
    result: Bool = known[trace.op] & (trace.kind != NodeKind.REPEAT)
    return result


@dataclass(frozen=True)
class _Tensors:
    """What the outputs of all nodes are, found by node and slot. What a RecvTensor received is what was sent."""

    bytes: Float64  # [outputs] NaN where not known
    first: Int64  # [n] the first output of each node, -1 for none
    past: Int64  # [n] the one behind its last
    regular: bool  # whether output k of each node is in its place first + k
    dtype: Int32  # [n] of output 0
    received: Int64  # [n] of a RecvTensor, whose own output says nothing, the output that was sent; -1 elsewhere

    @classmethod
    def of(cls, trace: Trace, outputs: Outputs, graph: Graph) -> _Tensors:
        elements = np.append(outputs.shapes.elements, np.nan)
        size = elements[outputs.shape] * element_bytes(outputs.dtype)
        size[np.isin(outputs.dtype, _HOLDS_NO_DATA)] = 0.0
        node, slot = outputs.node, outputs.slot
        first = np.full(trace.n + 1, -1, np.int64)
        first[node[::-1]] = np.arange(len(node))[::-1]
        first = first[:-1]
        past = first + np.bincount(node, minlength=trace.n)
        regular = bool((np.arange(len(node)) - first[node] == slot).all())
        tensors = cls(size, first, past, regular, np.zeros(trace.n, np.int32), np.full(trace.n, -1, np.int64))
        if "RecvTensor" in trace.ops:
            sent = np.flatnonzero(~graph.control & (trace.op[graph.consumer] == list(trace.ops).index("RecvTensor")))
            tensors.received[graph.consumer[sent]] = tensors.find(outputs, graph.producer[sent], graph.slot[sent])
        zeroth = np.flatnonzero(slot == 0)
        tensors.dtype[node[zeroth]] = outputs.dtype[zeroth]
        received = np.flatnonzero(tensors.received >= 0)
        tensors.dtype[received] = outputs.dtype[tensors.received[received]]
        return tensors

    def find(self, outputs: Outputs, node: Int64 | Int32, slot: Int64 | Int32) -> Int64:
        """[wanted] the output with this node and slot, -1 for none."""
        if not len(outputs.node):
            return np.full(len(node), -1, np.int64)
        at = self.first[node]
        missing = at < 0
        at += slot
        missing |= at >= self.past[node]
        at[missing] = -1
        if not self.regular:
            missing |= outputs.slot[at] != slot
            rest = np.flatnonzero(missing)
            at[rest] = _searched(outputs, node[rest], slot[rest])
        if (self.received >= 0).any():
            received = self.received[node]
            return np.where((received >= 0) & (slot == 0), received, at)
        return at


def _searched(outputs: Outputs, node: Int64 | Int32, slot: Int64 | Int32) -> Int64:
    """As ``find``, for nodes that made only some of their outputs: a Switch."""
    stride = int(outputs.slot.max(initial=0)) + 1
    key = outputs.node * stride + outputs.slot
    order = np.argsort(key, kind="stable")
    wanted = np.where(slot < stride, node.astype(np.int64) * stride + slot, -1)
    place = np.minimum(np.searchsorted(key[order], wanted), len(order) - 1)
    return np.where(key[order[place]] == wanted, order[place], -1)


def _flops(trace: Trace, outputs: Outputs, graph: Graph, tensors: _Tensors, rows: Int64) -> Float64:
    """[rows] of matrix ops; a Python turn for each distinct call."""
    if not len(rows):
        return np.zeros(0)
    place = np.full(trace.n, -1, np.int64)
    place[rows] = np.arange(len(rows))
    key = np.full((len(rows), MOST_INPUTS + 3), -2, np.int64)
    key[:, -1] = trace.op[rows]
    first_output = tensors.find(outputs, rows, np.zeros(len(rows), np.int64))
    key[:, -2] = _codes(outputs, first_output)
    equations = _equations(graph, place, key)
    arguments = graph.arguments
    known = arguments.position < MOST_INPUTS
    edge, position = arguments.edge[known], arguments.position[known]
    read = tensors.find(outputs, graph.producer[edge], graph.slot[edge])
    key[place[graph.consumer[edge]], position] = _codes(outputs, read)
    which, first = _alike(key)
    dims, kinds = outputs.shapes.dims, [canonical(op) for op in trace.ops]
    values = []
    for batch in batches(len(first)):
        for row in first[batch.start : batch.stop].tolist():
            *inputs, equation, output, op = key[row].tolist()
            shapes = [dims[code] if code >= 0 else None for code in inputs]
            call = Call(shapes, dims[output] if output >= 0 else None, equations[equation] if equation >= 0 else None)
            values.append(flops_of(kinds[op], call))
    return np.array([np.nan if value is None else value for value in values])[which]


def _codes(outputs: Outputs, output: Int64) -> Int64:
    return np.where(output >= 0, outputs.shape[np.maximum(output, 0)], _MISSING) if len(outputs.node) else output


def _equations(graph: Graph, place: Int64, key: Int64) -> list[str]:
    """The equations, with their numbers in the key."""
    for number, nodes in enumerate(graph.arguments.equations.values()):
        key[place[nodes], MOST_INPUTS] = number
    return list(graph.arguments.equations)


def _alike(key: Int64) -> tuple[Int32, Int64]:
    """(which of the distinct rows each is, the first of each)."""
    raw = key.tobytes()
    size = np.full(len(key), key.itemsize * key.shape[1])
    return distinct(Hasher.random().spans(Window(raw, 0, len(raw)), np.arange(len(key)) * size, size))


def _traffic(trace: Trace, outputs: Outputs, graph: Graph, tensors: _Tensors) -> Float64:
    """[n] bytes."""
    n, sizes = trace.n, np.append(tensors.bytes, np.nan)
    data = np.flatnonzero(~graph.control)
    consumer = graph.consumer[data]
    read = sizes[tensors.find(outputs, graph.producer[data], graph.slot[data])]
    inputs = np.bincount(consumer, read, n).astype(np.float64)
    rules, largest = Rules(trace.ops), np.zeros(n)
    by_largest = np.flatnonzero(rules.largest[trace.op[consumer]] != 0)
    by_size = by_largest[np.argsort(read[by_largest], kind="stable")]
    largest[consumer[by_size]] = read[by_size]
    if len(graph.complete):
        inputs[~graph.complete] = np.nan
    else:
        inputs[:] = np.nan
    written = np.bincount(outputs.node, tensors.bytes, n).astype(np.float64)
    written[tensors.first < 0] = np.nan
    received = np.flatnonzero(tensors.received >= 0)
    written[received] = tensors.bytes[tensors.received[received]]
    return rules.traffic(trace.op, inputs, written, largest)


def on_kernels(trace: Trace, result: Arithmetic, moved: Bool) -> Arithmetic:
    """Moves the arithmetic of launches to the kernels that they launched.

    ``moved``: [n] False for kernels whose own arithmetic is known.
    """
    for column in (result.flops, result.bytes):
        column[~(column <= MOST)] = np.nan  # of shapes that no tensor has: files are not to be trusted
    kernel = np.flatnonzero(physical_devices.kernels(trace))
    if not len(kernel):
        return result
    launch = physical_devices.launch_of(trace)[kernel]
    kernel, launch = kernel[launch >= 0], launch[launch >= 0]
    duration = (trace.end[kernel] - trace.start[kernel]).astype(np.float64) + 1  # none is without a share
    share = duration / np.bincount(launch, duration, trace.n)[launch]
    to, of, part = kernel[moved[kernel]], launch[moved[kernel]], share[moved[kernel]]
    for column in (result.flops, result.bytes):
        column[to] = column[of] * part
        column[launch] = 0.0
    result.is_matrix[to], result.dtype[to] = result.is_matrix[of], result.dtype[of]
    result.is_matrix[launch] = False
    return result
