"""Reads the tensors of a profile's ops: their inputs and outputs.

Sources: shapes of inputs that the profiler recorded (for kernels, and for a host's ops at level 3), allocated outputs, and the
shapes in XLA's modules.
"""

from __future__ import annotations

import re

import numpy as np

from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.decode.hlo import HLO_STATS, Modules, hlo_ops
from tftracer.trace.decode.hlo_work import computed
from tftracer.trace.decode.profile_nodes import innermost, of_kinds
from tftracer.trace.decode.tensor_shapes import RESOURCE, Shape
from tftracer.trace.decode.xplane_reader import HOST, Plane, Space
from tftracer.trace.decode.xplane_stats import Stat, stats_of, texts
from tftracer.trace.model import Calls, Tensor

_ALLOCATED, _OF_OUTPUT = "MemoryAllocation", "output"
_TENSOR = re.compile(r"(\w*)\[([\d,]*)\]")
_MAX_TENSORS, _MAX_DIMENSIONS = 1 << 12, 32
#: The profiler's names of types, as tensorflow.DataType.
_TYPES = {"float": 1, "double": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9}
_TYPES |= {"bool": 10, "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "uint16": 17, "complex128": 18, "half": 19}
_TYPES |= {"resource": 20, "variant": 21, "uint32": 22, "uint64": 23}
_HANDLE = Tensor(RESOURCE, ())  # the profiler gives no type and shape for resources


def calls_of(space: Space, modules: Modules, plane_of: Int32, row_of: Int64) -> Calls:
    """Read the calls. ``plane_of``, ``row_of``: [n] the plane and the row in it of each node's event."""
    calls = Calls.none(len(plane_of))
    for plane in space.planes:
        nodes = np.flatnonzero(plane_of == plane.index)
        nodes = nodes[np.argsort(row_of[nodes], kind="stable")]
        if not len(nodes):
            continue
        rows = row_of[nodes]
        stats = stats_of(plane, rows, ["shape", *HLO_STATS])
        which, distinct = texts(stats["shape"])
        input_index = [len(calls.inputs) + k if text.startswith("(") else -1 for k, text in enumerate(distinct)]
        calls.inputs += [parsed(text) for text in distinct]
        calls.input_of[nodes] = np.array(input_index or [-1], np.int64)[which]
        _add_hlo(calls, modules, nodes, stats)
        if plane.name == HOST:
            _add_outputs(calls, plane, nodes, rows)
    return calls


def _add_hlo(calls: Calls, modules: Modules, nodes: Int64, stats: dict[str, Stat]) -> None:
    with_hlo = np.flatnonzero(stats["hlo_op"].has)
    group, ops = hlo_ops(stats, with_hlo)
    calls.hlo_of[nodes[with_hlo]] = group + len(calls.hlo)
    calls.hlo += [computed(modules.module(program, module), op) for op, module, program in paced(ops, 200)]


def _add_outputs(calls: Calls, host: Plane, nodes: Int64, rows: Int64) -> None:
    """Add to each op the outputs that were allocated while it ran, in the order of their allocation."""
    allocated = of_kinds(host, _ALLOCATED)
    within = innermost(host, rows, allocated)
    stats = stats_of(host, allocated, ["region_type", "shape", "data_type"])
    region, regions = texts(stats["region_type"])
    is_output = np.array([text == _OF_OUTPUT for text in regions] or [False])[region] if len(allocated) else within > 0
    kept = np.flatnonzero(is_output & (within >= 0))
    group, shapes = texts(stats["shape"].only(kept))
    dims = [tensor.shape for text in shapes for tensor in (parsed(text) or [Tensor(0, None)])[:1]]
    types = stats["data_type"].number[kept]
    types = np.where(types == types.astype(np.int32), types, 0)  # 0 for invalid types
    for at, node, dtype in zip(group.tolist(), nodes[within[kept]].tolist(), types.tolist()):
        calls.outputs.setdefault(node, []).append(Tensor(dtype, dims[at]))


def parsed(text: str) -> list[Tensor]:
    """Parse the tensors of ``(float[32,10];;int32[2])``; an empty part is a resource."""
    if text in ("", "()"):
        return []
    return [_tensor(part) for part in text.strip("()").split(";")[:_MAX_TENSORS]]


def _tensor(text: str) -> Tensor:
    if not text:
        return _HANDLE
    match = _TENSOR.fullmatch(text)
    if match is None:
        return Tensor(0, None)
    sizes = [size for size in match[2].split(",") if size]
    fits = len(sizes) <= _MAX_DIMENSIONS and all(len(size) < 19 for size in sizes)
    shape: Shape = tuple(int(size) for size in sizes) if fits else None
    return Tensor(_TYPES.get(match[1], 0), shape)
