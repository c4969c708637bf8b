"""Computes the floating-point operations of each op, and the bytes that it has to read and write.

FLOPs are the nominal FLOPs of matrix ops (flop_formulas.py); other ops count as 0. Bytes are compulsory traffic
(memory_traffic.py). Each execution has the shapes of the tensors that it read and wrote; in a loop, those of its own iteration.

On a GPU the FLOPs and bytes of an op are divided among the kernels that it launched, in proportion to the kernels' times; the
launch itself keeps none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.flop_formulas import Call, flops_of
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.memory_traffic import Rules
from tftracer.trace.analyses.op_kinds import canonical, is_matrix_op
from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.strings import Hasher, find, numbered
from tftracer.trace.arrays.types import Bool, Float64, Int32, Int64
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode.tensor_shapes import RESOURCE, element_bytes
from tftracer.trace.model import NodeKind, Trace

if TYPE_CHECKING:
    from tftracer.trace.analyses.dependencies import Graph
    from tftracer.trace.decode.outputs_and_memory import Outputs

#: Above this, the FLOPs or bytes of an op are impossible and count as unknown.
MAX_VALUE = 1e24

#: The number of inputs that formulas may read: the weights of a BlockLSTM are its fifth input.
MAX_INPUTS = 5

_MISSING = -1  # instead of a shape's code: the op has this input or output, but its shape is not known


@dataclass(frozen=True)
class Arithmetic:
    """FLOPs and bytes, one entry per node."""

    flops: Float64  # [n] floating-point operations; NaN if not known; 0 for ops that are no matrix ops
    bytes: Float64  # [n] compulsory traffic; NaN if not known
    is_matrix: Bool  # [n] whether the node is a matrix op
    dtype: Int32  # [n] tensorflow.DataType of output 0, 0 if not known


def arithmetic(trace: Trace, outputs: Outputs, graph: Graph) -> Arithmetic:
    """Compute the arithmetic of each node of the trace."""
    tensors = _Tensors.of(trace, outputs, graph)
    is_matrix = trace.op_types_where(is_matrix_op)[trace.op]
    flops = np.where(known_ops(trace), 0.0, np.nan)
    rows = np.flatnonzero(is_matrix)
    flops[rows] = _flops(trace, outputs, graph, tensors, rows)
    result = Arithmetic(flops, _traffic(trace, outputs, graph, tensors), is_matrix, tensors.dtype)
    return on_kernels(trace, result, np.ones(trace.n, np.bool_))


def known_ops(trace: Trace) -> Bool:
    """Return [n] whether each node has an op type and is not a repeat of another node (``NodeKind.REPEAT``)."""
    result: Bool = trace.op_types_where(bool)[trace.op] & (trace.kind != NodeKind.REPEAT)
    return result


@dataclass(frozen=True)
class _Tensors:
    """The outputs of all nodes by node and slot. For a RecvTensor, ``find`` returns the output that was sent."""

    bytes: Float64  # [outputs] NaN if not known
    dtype: Int32  # [n] of output 0
    received: Int64  # [n] for a RecvTensor, whose own output has no shape, the output that was sent; else -1

    @classmethod
    def of(cls, trace: Trace, outputs: Outputs, graph: Graph) -> _Tensors:
        elements = np.append(outputs.shapes.elements, np.nan)
        size = elements[outputs.shape] * element_bytes(outputs.dtype)
        size[outputs.dtype == RESOURCE] = 0.0  # reads through a resource are counted by the op's rule (memory_traffic.py)
        node, slot = outputs.node, outputs.slot
        tensors = cls(size, np.zeros(trace.n, np.int32), np.full(trace.n, -1, np.int64))
        sent = np.flatnonzero(~graph.control & (trace.op[graph.consumer] == find(trace.ops, b"RecvTensor")))
        tensors.received[graph.consumer[sent]] = tensors.find(outputs, graph.producer[sent], graph.slot[sent])
        zeroth = np.flatnonzero(slot == 0)
        tensors.dtype[node[zeroth]] = outputs.dtype[zeroth]
        received = np.flatnonzero(tensors.received >= 0)
        tensors.dtype[received] = outputs.dtype[tensors.received[received]]
        return tensors

    def find(self, outputs: Outputs, node: Int64 | Int32, slot: Int64 | Int32) -> Int64:
        """Return the index of the output with each node and slot, -1 for none."""
        if not len(outputs.node):
            return np.full(len(node), -1, np.int64)
        stride = int(outputs.slot.max(initial=0)) + 1
        key = outputs.node * stride + outputs.slot
        order = np.argsort(key, kind="stable")
        wanted = np.where(slot < stride, node.astype(np.int64) * stride + slot, -1)
        position = np.minimum(np.searchsorted(key[order], wanted), len(order) - 1)
        at = np.where(key[order[position]] == wanted, order[position], -1)
        received = self.received[node]
        return np.where((received >= 0) & (slot == 0), received, at)


def _flops(trace: Trace, outputs: Outputs, graph: Graph, tensors: _Tensors, rows: Int64) -> Float64:
    """Return [rows] the FLOPs of matrix ops; one Python iteration per distinct call."""
    if not len(rows):
        return np.zeros(0)
    row_of = np.full(trace.n, -1, np.int64)
    row_of[rows] = np.arange(len(rows))
    key = np.full((len(rows), MAX_INPUTS + 3), -2, np.int64)  # -2: the op has no such input or equation
    key[:, -1] = trace.op[rows]
    first_output = tensors.find(outputs, rows, np.zeros(len(rows), np.int64))
    key[:, -2] = _codes(outputs, first_output)
    arguments = graph.arguments
    equations = list(arguments.equations)
    for number, nodes in enumerate(arguments.equations.values()):
        key[row_of[nodes], MAX_INPUTS] = number
    known = arguments.position < MAX_INPUTS
    edge, position = arguments.edge[known], arguments.position[known]
    read = tensors.find(outputs, graph.producer[edge], graph.slot[edge])
    key[row_of[graph.consumer[edge]], position] = _codes(outputs, read)
    call_of_row, first = _distinct_rows(key)
    dims, kinds = outputs.shapes.dims, [canonical(op) for op in trace.ops]
    values = []
    for row in paced(first.tolist()):
        *inputs, equation, output, op = key[row].tolist()
        shapes = [dims[code] if code >= 0 else None for code in inputs]
        call = Call(shapes, dims[output] if output >= 0 else None, equations[equation] if equation >= 0 else None)
        values.append(flops_of(kinds[op], call))
    return np.array([np.nan if value is None else value for value in values])[call_of_row]


def _codes(outputs: Outputs, output: Int64) -> Int64:
    """Return the codes of the shapes of some outputs; ``_MISSING`` for output -1."""
    return np.where(output >= 0, outputs.shape[np.maximum(output, 0)], _MISSING) if len(outputs.node) else output


def _distinct_rows(key: Int64) -> tuple[Int32, Int64]:
    """Number the distinct rows. Equal rows get the same number.

    Return ([rows] the number of each row, [numbers] the index of the first row with each number).
    """
    raw = key.tobytes()
    size = np.full(len(key), key.itemsize * key.shape[1])
    return numbered(Hasher.random().spans(Window(raw, 0, len(raw)), np.arange(len(key)) * size, size))


def _traffic(trace: Trace, outputs: Outputs, graph: Graph, tensors: _Tensors) -> Float64:
    """Return [n] the bytes that each node has to read and write; NaN if not known."""
    n, sizes = trace.n, np.append(tensors.bytes, np.nan)
    data = np.flatnonzero(~graph.control)
    consumer = graph.consumer[data]
    read = sizes[tensors.find(outputs, graph.producer[data], graph.slot[data])]
    inputs = np.bincount(consumer, read, n).astype(np.float64)
    rules, largest = Rules(trace.ops), np.zeros(n)
    by_largest = np.flatnonzero(rules.largest[trace.op[consumer]] != 0)
    by_size = by_largest[np.argsort(read[by_largest], kind="stable")]
    largest[consumer[by_size]] = read[by_size]
    inputs[~graph.complete] = np.nan
    written = np.bincount(outputs.node, tensors.bytes, n).astype(np.float64)
    written[np.bincount(outputs.node, minlength=n) == 0] = np.nan
    received = np.flatnonzero(tensors.received >= 0)
    written[received] = tensors.bytes[tensors.received[received]]
    return rules.traffic(trace.op, inputs, written, largest)


def on_kernels(trace: Trace, result: Arithmetic, takes_share: Bool) -> Arithmetic:
    """Move the arithmetic of launches to the kernels that they launched. Impossible values become NaN.

    ``takes_share``: [n] True for kernels that get a share of their launch's arithmetic; False for kernels with known arithmetic.
    """
    for column in (result.flops, result.bytes):
        column[~(column <= MAX_VALUE)] = np.nan  # files may contain impossible shapes
    kernel = np.flatnonzero(physical_devices.kernels(trace))
    if not len(kernel):
        return result
    launch = launch_of(trace)[kernel]
    kernel, launch = kernel[launch >= 0], launch[launch >= 0]
    duration = (trace.end[kernel] - trace.start[kernel]).astype(np.float64) + 1  # + 1: a kernel of 0 ns gets a share, too
    share = duration / np.bincount(launch, duration, trace.n)[launch]
    target, source, part = kernel[takes_share[kernel]], launch[takes_share[kernel]], share[takes_share[kernel]]
    for column in (result.flops, result.bytes):
        column[target] = column[source] * part
        column[launch] = 0.0
    result.is_matrix[target], result.dtype[target] = result.is_matrix[source], result.dtype[source]
    result.is_matrix[launch] = False
    return result
