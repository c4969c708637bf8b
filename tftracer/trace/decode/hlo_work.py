"""FLOPs and bytes of one op of XLA, from the shapes in its module. Only the FLOPs of matrix products and convolutions count."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tftracer.trace.decode.hlo import TUPLE, Module
from tftracer.trace.decode.tensor_shapes import ELEMENT_BYTES
from tftracer.trace.decode.xplane_reader import decoded
from tftracer.trace.model import Computed

#: Limits: levels of nested tuples; computations that one fusion calls, directly or indirectly.
_MAX_DEPTH, _MAX_COMPUTATIONS = 8, 100
#: XLA's PrimitiveType -> tensorflow.DataType.
_DTYPES = {1: 10, 2: 6, 3: 5, 4: 3, 5: 9, 6: 4, 7: 17, 8: 22, 9: 23, 10: 19, 11: 1, 12: 2, 15: 8, 16: 14, 18: 18, 19: 24, 20: 25}
#: Ops that do no work themselves: they run other ops, which have events of their own, or only pass values on.
_NO_WORK = ("while", "conditional", "tuple", "get-tuple-element", "parameter", "constant", "bitcast")
#: Ops whose FLOPs are unknown.
_UNKNOWN = ("custom-call", "call", "fft", "cholesky", "triangular-solve")


def computed(module: Module | None, hlo_op: str) -> Computed:
    """Return the work of an op. The FLOPs of an op that calls a library, and of an op without an operand, are unknown."""
    instruction = module.instructions.get(hlo_op) if module is not None else None
    if module is None or instruction is None:
        return Computed(None, None, 0)
    dtype = _DTYPES.get(instruction.shape.element_type, 0)
    return Computed(_flops(module, instruction, {}), _bytes(module, instruction), dtype)


def _bytes(module: Module, instruction: Any) -> float | None:
    """Return the bytes of all distinct operands and of the result; 0 for an op without work, None if a size is unknown."""
    if decoded(instruction.opcode) in _NO_WORK:
        return 0.0
    operands = [module.by_id.get(number) for number in set(instruction.operands)]
    return _sum(None if one is None else _size(one.shape) for one in [*operands, instruction])


def _sum(parts: Iterable[float | None]) -> float | None:
    """Return the sum; None if a part is not known."""
    values = list(parts)
    return None if None in values else sum((part for part in values if part is not None), 0.0)


def _size(shape: Any, depth: int = 0) -> float | None:
    if shape.element_type == TUPLE and depth < _MAX_DEPTH:
        return _sum(_size(part, depth + 1) for part in shape.tuple)
    size = ELEMENT_BYTES.get(_DTYPES.get(shape.element_type, 0))
    return _elements(shape.dimensions) * size if size else None


def _elements(sizes: Iterable[int]) -> float:
    """Return the product of the sizes, as a float: the sizes come from a file, so their product may be huge."""
    return math.prod(map(float, sizes))


def _flops(module: Module, instruction: Any, flops_of_computation: dict[int, float | None]) -> float | None:
    opcode = decoded(instruction.opcode)
    if opcode in _UNKNOWN or len(flops_of_computation) > _MAX_COMPUTATIONS:
        return None
    if opcode in ("dot", "convolution"):
        return _product_flops(module, instruction, opcode)
    if opcode != "fusion":
        return 0.0
    for number in instruction.called:
        if number not in flops_of_computation:
            flops_of_computation[number] = None  # the FLOPs of a computation that calls itself are unknown
            computation = module.computations.get(number)
            inner = (
                [_flops(module, one, flops_of_computation) for one in computation.instructions] if computation is not None else []
            )
            flops_of_computation[number] = _sum(inner)
    return _sum(flops_of_computation[number] for number in instruction.called)


def _product_flops(module: Module, instruction: Any, opcode: str) -> float | None:
    """Return the FLOPs of a dot or a convolution. Each element of the result is a sum of products; each product counts as two."""
    position = 0 if opcode == "dot" else 1
    operand = module.by_id.get(instruction.operands[position]) if len(instruction.operands) > position else None
    if operand is None:
        return None
    sizes, outputs = list(operand.shape.dimensions), _elements(instruction.shape.dimensions)
    if opcode == "dot":
        summed = [sizes[k] for k in instruction.dot.contracting if 0 <= k < len(sizes)]
        return 2 * outputs * _elements(summed)
    output_dimension = instruction.convolution.kernel_output
    if not 0 <= output_dimension < len(sizes) or not sizes[output_dimension]:
        return None
    # XLA puts zeros between the input elements of a transposed convolution; products with these zeros do not count.
    dilated = _elements(max(one.base_dilation, 1) for one in instruction.window.dimensions)
    return 2 * outputs * _elements(sizes) / float(sizes[output_dimension]) / dilated
