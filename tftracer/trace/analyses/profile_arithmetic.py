"""FLOPs, bytes moved, and dtype of each op of a profile (``Arithmetic``), from the tensors in the profile.

Shapes of inputs are recorded with kernels or with the host's ops, shapes of outputs with their allocations. For ops that XLA
compiled, XLA's modules have the shapes. If the profile has the graph that ran, more shapes are inferred from it. All other shapes
are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.arithmetic import Arithmetic, known_ops, on_kernels
from tftracer.trace.analyses.flop_formulas import Call, flops_of
from tftracer.trace.analyses.graph_shapes import Inferred, inferred
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.memory_traffic import Rules
from tftracer.trace.analyses.op_kinds import canonical, is_matrix_op
from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.types import Float64, Int32, Int64
from tftracer.trace.decode.tensor_shapes import RESOURCE, element_bytes, elements_of
from tftracer.trace.model import Calls, NodeKind, Tensor, Trace


def arithmetic_of_profile(trace: Trace, calls: Calls, graphs: Sequence[Any] = ()) -> Arithmetic:
    """Compute the FLOPs, bytes and dtype of each node of the trace. ``graphs``: the GraphDefs that ran."""
    input_of = _copied_to_launches(trace, calls.input_of)
    tensors = inferred(list(graphs))
    _add_inferred(trace, calls, input_of, tensors)
    is_matrix = np.append(trace.op_types_where(is_matrix_op), False)[trace.op]
    flops = np.where(known_ops(trace), 0.0, np.nan)
    flops[is_matrix] = np.nan
    has_tensors = input_of >= 0
    has_tensors[list(calls.outputs)] = True
    called = np.flatnonzero(is_matrix & ~physical_devices.on_stream(trace) & has_tensors)
    flops[called] = _flops(trace, calls, input_of, tensors, called)
    result = Arithmetic(flops, _traffic(trace, calls, input_of), is_matrix, _dtypes(calls, input_of))
    _add_hlo(calls, result)
    return on_kernels(trace, result, calls.hlo_of < 0)


def _copied_to_launches(trace: Trace, input_of: Int64) -> Int64:
    """Return [n] ``input_of``, in which launches without inputs of their own have those that were recorded for their kernels."""
    launch, result = launch_of(trace), input_of.copy()
    kernel = np.flatnonzero((launch >= 0) & (input_of >= 0))
    kernel = kernel[input_of[launch[kernel]] < 0]
    result[launch[kernel]] = input_of[kernel]
    return result


def _add_inferred(trace: Trace, calls: Calls, input_of: Int64, tensors: dict[str, Inferred]) -> None:
    """Add the inferred tensors of ops for which the profile records none, to ``calls`` and ``input_of``."""
    rows = np.flatnonzero(~physical_devices.on_stream(trace) & (calls.hlo_of < 0) & (trace.kind != NodeKind.REPEAT))
    position = np.full(max(len(trace.names), 1), -1, np.int64)
    for code in np.flatnonzero(np.bincount(trace.name[rows], minlength=1)).tolist():
        if trace.names[code] in tensors:
            position[code] = len(calls.inputs)
            calls.inputs.append(tensors[trace.names[code]].inputs)
    rows = rows[position[trace.name[rows]] >= 0]
    missing = rows[input_of[rows] < 0]
    input_of[missing] = position[trace.name[missing]]
    for node in rows.tolist():
        outputs = tensors[trace.names[trace.name[node]]].outputs
        if outputs:
            calls.outputs.setdefault(node, outputs)


def _flops(trace: Trace, calls: Calls, input_of: Int64, tensors: dict[str, Inferred], rows: Int64) -> Float64:
    """Return [rows] the FLOPs; each distinct call is computed once."""
    kinds, known = [canonical(op) for op in trace.ops], {}
    values = np.full(len(rows), np.nan)
    for position, node in enumerate(paced(rows.tolist())):
        outputs = calls.outputs.get(node, [])
        from_graph = tensors.get(trace.names[trace.name[node]]) if tensors else None
        equation = from_graph.equation if from_graph is not None else None
        key = (int(trace.op[node]), int(input_of[node]), outputs[0].shape if outputs else None, equation)
        if key not in known:
            inputs = calls.inputs[key[1]] if key[1] >= 0 else []
            flops = flops_of(kinds[key[0]], Call([tensor.shape for tensor in inputs], key[2], equation))
            known[key] = np.nan if flops is None else flops
        values[position] = known[key]
    return values


def _traffic(trace: Trace, calls: Calls, input_of: Int64) -> Float64:
    """Return [n] the bytes that each node has to read and write; NaN if not known."""
    sizes = [_sizes(tensors) for tensors in calls.inputs]
    unknown = [np.nan]  # for index -1
    total = np.array([float(size.sum()) for size in sizes] + unknown)[input_of]
    largest = np.array([float(size.max(initial=0)) for size in sizes] + unknown)[input_of]
    written = np.full(trace.n, np.nan)
    for node, outputs in calls.outputs.items():
        written[node] = _sizes(outputs).sum()
    return Rules(trace.ops).traffic(trace.op, total, written, largest)


def _sizes(tensors: list[Tensor]) -> Float64:
    """Return [tensors] bytes; 0 for a resource."""
    dtype = np.array([tensor.dtype for tensor in tensors], np.int32)
    size = elements_of([tensor.shape for tensor in tensors]) * element_bytes(dtype)
    size[dtype == RESOURCE] = 0.0
    return size


def _dtypes(calls: Calls, input_of: Int64) -> Int32:
    """Return [n] the dtype of the first output.

    If there is none, return the dtype of the first input that is no resource, because the two are usually equal.
    """
    first = [next((tensor.dtype for tensor in tensors if tensor.dtype != RESOURCE), 0) for tensors in calls.inputs]
    dtype = np.array([*first, 0], np.int32)[input_of]
    for node, outputs in calls.outputs.items():
        dtype[node] = outputs[0].dtype
    return dtype


def _add_hlo(calls: Calls, result: Arithmetic) -> None:
    """Set the FLOPs, bytes and dtype of ops that XLA compiled.

    ``is_matrix`` of such an op means that it has FLOPs, or that its FLOPs are not known: the compiled op may contain a matrix op.
    """
    compiled = np.flatnonzero(calls.hlo_of >= 0)
    flops, size, dtype = np.array(calls.hlo, np.float64).reshape(-1, 3)[calls.hlo_of[compiled]].T  # NaN for None
    result.flops[compiled], result.bytes[compiled], result.dtype[compiled] = flops, size, dtype
    result.is_matrix[compiled] = result.flops[compiled] != 0
