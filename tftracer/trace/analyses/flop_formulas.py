"""FLOPs of matrix ops, computed from their shapes: two (multiply, add) for each product in a sum.

They are *nominal*: a convolution with SAME padding counts the padding, a sequence counts its full length, a fused op counts only
the product, and zeros are not skipped. Faster algorithms (Winograd) are not taken into account.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Optional

from tftracer.trace.decode.tensor_shapes import Shape, elements_of

Known = tuple[int, ...]


class Call(NamedTuple):
    """The shapes that an op was called with."""

    inputs: Sequence[Shape]  # in order; None: not known
    output: Shape  # the first output
    equation: str | None = None  # only for an Einsum


#: Returns the FLOPs; None if a shape that it needs is missing or invalid.
Formula = Callable[[Call], Optional[float]]


def flops_of(kind: str, call: Call) -> float | None:
    """Return the FLOPs of a call; None if they are not known. ``kind``: the canonical name of a matrix op."""
    formula = FORMULAS.get(kind)
    return formula(call) if formula is not None else None


def _known(shape: Shape, *ranks: int) -> Known | None:
    """Return the shape if it is fully known and its number of dimensions is in ``ranks``; else None."""
    return shape if shape is not None and min(shape, default=0) >= 0 and len(shape) in ranks else None


def _input(call: Call, position: int, *ranks: int) -> Known | None:
    return _known(call.inputs[position], *ranks) if position < len(call.inputs) else None


def _size(shape: Known) -> float:
    return float(elements_of([shape])[0])


def _product(output: Known, operand: Known, kept: int) -> float | None:
    """Return the FLOPs of a matrix product.

    ``operand``: one of the two factors. ``kept``: the size of the dimension that both the operand and the output have.
    """
    if not kept:
        return 0.0
    summed, rest = divmod(operand[-1] * operand[-2], kept)
    return None if rest else 2 * _size(output) * summed


_MATRIX = range(2, 10)


def _matmul(call: Call) -> float | None:
    output = _known(call.output, *_MATRIX)
    left, right = _input(call, 0, *_MATRIX), _input(call, 1, *_MATRIX)
    if output is not None and left is not None:
        return _product(output, left, output[-2])
    if output is not None and right is not None:
        return _product(output, right, output[-1])
    return _without_output(left, right) if left is not None and right is not None else None


def _without_output(left: Known, right: Known) -> float | None:
    """Return the FLOPs if the factors share exactly one size: the sum runs over that dimension, transposed or not."""
    shared = set(left[-2:]) & set(right[-2:])
    if len(shared) != 1 or 0 in shared:
        return 0.0 if 0 in shared and len(shared) == 1 else None
    batch = max(_size(left[:-2]), _size(right[:-2])) if len(left) == len(right) or min(len(left), len(right)) == 2 else None
    summed = shared.pop()
    rows, columns = left[-1] * left[-2] / summed, right[-1] * right[-2] / summed
    return None if batch is None else 2 * batch * rows * columns * summed


def _convolution(dimensions: int, kernel: int | None = 1, output: int | None = None, depthwise: bool = False) -> Formula:
    """Return the formula: each element of the forward output is a sum over the kernel; if depthwise, only over its window.

    ``kernel``, ``output``: positions among the inputs of the kernel and of the forward output, or of its gradient; None: it is
    the op's output.
    """

    def formula(call: Call) -> float | None:
        kernel_shape, output_shape = (
            _known(call.output, dimensions + 2) if position is None else _input(call, position, dimensions + 2)
            for position in (kernel, output)
        )
        if kernel_shape is None or output_shape is None:
            return None
        return 2 * _size(output_shape) * _size(kernel_shape[:-2] if depthwise else kernel_shape[:-1])

    return formula


def _einsum(call: Call) -> float | None:
    """Return 2 FLOPs for each combination of indices (a multiplication and an addition); 0 if there is only one operand."""
    if call.equation is None or "->" not in call.equation:
        return None
    terms = [list(term.replace(" ", "").replace("...", ".")) for term in call.equation.split("->")[0].split(",")]
    if len(terms) != 2:
        return 0.0 if len(terms) == 1 else None
    sizes: dict[str, int] = {}
    for position, labels in enumerate(terms):
        shape = _input(call, position, *range(len(labels) - labels.count("."), 33))
        if shape is None or not _add_sizes(sizes, labels, shape):
            return None
    return 2 * _size(tuple(sizes.values()))


def _add_sizes(sizes: dict[str, int], labels: list[str], shape: Known) -> bool:
    """Add the size of each label; ``.`` stands for ``...``, whose dimensions are numbered from the last.

    Return False if the shape does not fit.
    """
    ellipsis_rank = len(shape) - len(labels) + labels.count(".")
    if "." in labels:
        at = labels.index(".")
        labels = labels[:at] + [str(k) for k in range(ellipsis_rank, 0, -1)] + labels[at + 1 :]
    elif ellipsis_rank:
        return False
    for label, size in zip(labels, shape):
        sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    return True


def _recurrent(data: int, *weights: int, times: int = 1) -> Formula:
    """Return the formula of a recurrent layer, which multiplies each row of its data by weights.

    The number of rows is the product of all dimensions but the last. ``data``, ``weights``: positions among the inputs.
    ``times``: how often the products are computed.
    """

    def formula(call: Call) -> float | None:
        rows, factors = _input(call, data, 2, 3), [_input(call, weight, 2) for weight in weights]
        known = [factor for factor in factors if factor is not None]
        if rows is None or len(known) < len(factors):
            return None
        return 2 * times * _size(rows[:-1]) * sum(map(_size, known))

    return formula


def _sparse_times_dense(call: Call) -> float | None:
    """Return the FLOPs. The op's inputs are the indices and values of the nonzero elements, the shape, and the dense matrix."""
    values, output = _input(call, 1, 1), _known(call.output, 2)
    return None if values is None or output is None else 2 * _size(values) * output[1]


FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "SparseMatMul"), _matmul),
    "Conv2D": _convolution(2),
    "Conv2DBackpropInput": _convolution(2, output=2),
    "Conv2DBackpropFilter": _convolution(2, kernel=None, output=2),
    "Conv3D": _convolution(3),
    "Conv3DBackpropInput": _convolution(3, output=2),
    "Conv3DBackpropFilter": _convolution(3, kernel=None, output=2),
    "DepthwiseConv2dNative": _convolution(2, depthwise=True),
    "DepthwiseConv2dNativeBackpropInput": _convolution(2, output=2, depthwise=True),
    "DepthwiseConv2dNativeBackpropFilter": _convolution(2, kernel=None, output=2, depthwise=True),
    "Einsum": _einsum,
    "SparseTensorDenseMatMul": _sparse_times_dense,
    "LSTMBlockCell": _recurrent(0, 3),
    "BlockLSTM": _recurrent(1, 4),
    "BlockLSTMGrad": _recurrent(1, 4, times=2),
    **dict.fromkeys(("GRUBlockCell", "GRUBlockCellGrad"), _recurrent(0, 2, 3)),
}
