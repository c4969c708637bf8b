"""Each formula against a count of the multiplications, one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest

from tftracer.trace.analyses.flop_formulas import FORMULAS, Call, flops_of
from tftracer.trace.analyses.op_kinds import UNCOUNTED, canonical, is_matrix_op

Dims = tuple[int, ...]


def indices(shape: Sequence[int]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(range(size) for size in shape))


def counted_matmul(left: Dims, right: Dims, adjoint_left: bool, adjoint_right: bool) -> tuple[Dims, int]:
    """(output, additions and multiplications) of a batch of products, one by one."""
    rows, summed = left[-2:][::-1] if adjoint_left else left[-2:]
    again, columns = right[-2:][::-1] if adjoint_right else right[-2:]
    assert summed == again
    depth = max(len(left), len(right)) - 2
    padded = [(1,) * (depth - len(shape) + 2) + shape[:-2] for shape in (left, right)]
    batch = tuple(max(pair) for pair in zip(*padded))
    output = (*batch, rows, columns)
    return output, sum(2 for _ in indices(output) for _ in range(summed))


@pytest.mark.parametrize(
    ("kind", "left", "right", "transposed"),
    [
        ("MatMul", (3, 5), (5, 7), (False, False)),
        ("MatMul", (5, 3), (5, 7), (True, False)),
        ("MatMul", (3, 5), (7, 5), (False, True)),
        ("MatMul", (5, 3), (7, 5), (True, True)),
        ("MatMul", (3, 3), (3, 3), (True, False)),
        ("SparseMatMul", (4, 6), (6, 2), (False, False)),
        ("BatchMatMul", (2, 4, 3, 5), (2, 4, 5, 2), (False, False)),
        ("BatchMatMul", (2, 4, 5, 3), (2, 4, 2, 5), (True, True)),
        ("BatchMatMul", (2, 1, 3, 5), (4, 5, 2), (False, False)),
        ("BatchMatMul", (3, 5), (6, 5, 2), (False, False)),
        ("MatMul", (3, 0), (0, 7), (False, False)),
        ("MatMul", (0, 5), (5, 7), (False, False)),
    ],
)
def test_products_of_matrices(kind: str, left: Dims, right: Dims, transposed: tuple[bool, bool]) -> None:
    output, count = counted_matmul(left, right, *transposed)
    assert flops_of(kind, Call([left, right], output)) == count
    assert flops_of(kind, Call([left, None], output)) == count or not output[-2]
    assert flops_of(kind, Call([None, right], output)) == count
    without_output = flops_of(kind, Call([left, right], None))
    assert without_output in (count, None)
    assert without_output is not None or len(left) != len(right) or set(left[-2:]) == set(right[-2:]) or 0 in left


def test_a_product_whose_shapes_are_not_known_is_not_known() -> None:
    assert flops_of("MatMul", Call([(3, 5), (3, 5)], None)) is None  # one of them is transposed: which?
    assert flops_of("MatMul", Call([None, None], (3, 5))) is None
    assert flops_of("MatMul", Call([(-1, 5), (5, 7)], None)) is None
    assert flops_of("MatMul", Call([], (3, 5))) is None
    assert flops_of("MatMul", Call([(7, 5)], (3, 5))) is None  # no such product
    assert flops_of("MatMul", Call([(35,)], (35,))) is None  # a layout of oneDNN's own


def counted_convolution(image: Dims, kernel: Dims, output: Dims, depthwise: bool) -> int:
    """Pairs of a weight and what it is multiplied with, padding included; each is a multiplication and an addition."""
    *window, channels, filters = kernel
    of_one_output = math.prod(window) * (1 if depthwise else channels)
    assert output[-1] == (channels * filters if depthwise else filters)
    return sum(2 for _ in indices(output) for _ in range(of_one_output))


@pytest.mark.parametrize(
    ("name", "image", "kernel", "output"),
    [
        ("Conv2D", (2, 6, 6, 3), (3, 3, 3, 4), (2, 6, 6, 4)),  # SAME
        ("Conv2D", (2, 7, 6, 3), (3, 2, 3, 4), (2, 3, 5, 4)),  # VALID, strides
        ("Conv2D", (2, 5, 5, 6), (3, 3, 2, 4), (2, 3, 3, 4)),  # three groups
        ("Conv3D", (1, 4, 4, 4, 2), (2, 2, 2, 2, 3), (1, 3, 3, 3, 3)),
        ("DepthwiseConv2dNative", (2, 5, 5, 3), (3, 3, 3, 2), (2, 5, 5, 6)),
    ],
)
def test_convolutions_and_their_gradients(name: str, image: Dims, kernel: Dims, output: Dims) -> None:
    """Each multiplication of the forward pass has one in the gradient of the image and one in that of the kernel."""
    count = counted_convolution(image, kernel, output, name.startswith("Depthwise"))
    sizes = (len(image),)
    assert flops_of(name, Call([image, kernel], output)) == count
    assert flops_of(f"{name}BackpropInput", Call([sizes, kernel, output], image)) == count
    assert flops_of(f"{name}BackpropFilter", Call([image, sizes, output], kernel)) == count
    assert flops_of(f"{name}BackpropInput", Call([sizes, None, output], image)) is None
    assert flops_of(f"{name}BackpropFilter", Call([image, sizes, output], None)) is None
    assert flops_of(name, Call([image, kernel], None)) is None


def test_channels_first_count_the_same() -> None:
    assert flops_of("Conv2D", Call([(2, 3, 6, 6), (3, 3, 3, 4)], (2, 4, 6, 6))) == 2 * 2 * 6 * 6 * 4 * 3 * 3 * 3


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("btd,dhe->bthe", [(2, 3, 4), (4, 2, 5)]),
        ("bqhe,bkhe->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ii,i->i", [(3, 3), (3,)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(6, 2, 3, 4), (2, 4, 5)]),
        ("bi,bj->ij", [(1, 3), (4, 5)]),
    ],
)
def test_einsum(equation: str, shapes: list[Dims]) -> None:
    sizes: dict[str, int] = {}
    for term, shape in zip(equation.split("->")[0].split(","), shapes):
        labels = term.replace("...", "?" * (len(shape) - len(term.replace("...", ""))))
        unnamed = len(labels) - len(labels.lstrip("?"))
        for place, (label, size) in enumerate(zip(labels, shape)):
            key = f"-{unnamed - place}" if label == "?" else label
            sizes[key] = max(size, sizes.get(key, 1))
    count = sum(2 for _ in indices(list(sizes.values())))
    assert flops_of("Einsum", Call(shapes, None, equation)) == count


def test_einsums_that_are_no_product_or_not_known() -> None:
    assert flops_of("Einsum", Call([(3, 4)], (4, 3), "ij->ji")) == 0
    assert flops_of("Einsum", Call([(3, 4), (4, 5)], (3, 5))) is None
    assert flops_of("Einsum", Call([(3, 4), None], (3, 5), "ij,jk->ik")) is None
    assert flops_of("Einsum", Call([(3, 4, 1), (4, 5)], (3, 5), "ij,jk->ik")) is None
    assert flops_of("Einsum", Call([(3, 4), (4, 5), (5, 2)], (3, 2), "ij,jk,kl->il")) is None


def test_recurrent_layers() -> None:
    """Each turn multiplies the input and the state, side by side, with the weights of four gates; a GRU with those of three."""
    steps, batch, inputs, units = 3, 2, 4, 5
    one_step = sum(2 for _ in indices((batch, inputs + units, 4 * units)))
    state, weights = (batch, units), (inputs + units, 4 * units)
    assert flops_of("LSTMBlockCell", Call([(batch, inputs), state, state, weights], state)) == one_step
    sequence = [(), (steps, batch, inputs), state, state, weights]
    assert flops_of("BlockLSTM", Call(sequence, None)) == steps * one_step
    assert flops_of("BlockLSTMGrad", Call(sequence, None)) == 2 * steps * one_step  # of the input, and of the weights
    assert flops_of("BlockLSTM", Call([*sequence[:4], None], None)) is None
    gru = sum(2 for _ in indices((batch, inputs + units, 3 * units)))
    gates = [(inputs + units, 2 * units), (inputs + units, units)]
    assert flops_of("GRUBlockCell", Call([(batch, inputs), state, *gates], None)) == gru
    assert flops_of("GRUBlockCellGrad", Call([(batch, inputs), state, *gates], None)) == gru


def test_a_sparse_matrix_counts_what_is_not_zero() -> None:
    count = sum(2 for _ in range(11) for _ in range(6))
    assert flops_of("SparseTensorDenseMatMul", Call([(11, 2), (11,), (2,), (9, 6)], (4, 6))) == count
    assert flops_of("SparseTensorDenseMatMul", Call([(11, 2), None, (2,), (9, 6)], (4, 6))) is None


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("MatMul", "MatMul"),
        ("_FusedMatMul", "MatMul"),
        ("_MklMatMul", "MatMul"),
        ("_MklNativeFusedMatMul", "MatMul"),
        ("BatchMatMulV2", "BatchMatMul"),
        ("BatchMatMulV3", "BatchMatMul"),
        ("_MklFusedBatchMatMulV2", "BatchMatMul"),
        ("_FusedConv2D", "Conv2D"),
        ("_MklNativePadWithFusedConv2D", "Conv2D"),
        ("FusedConv2DBiasActivation", "Conv2D"),
        ("_MklConv2DBackpropFilterWithBias", "Conv2DBackpropFilter"),
        ("Conv3DBackpropInputV2", "Conv3DBackpropInput"),
        ("_FusedDepthwiseConv2dNative", "DepthwiseConv2dNative"),
        ("_MklEinsum", "Einsum"),
        ("XlaEinsum", "Einsum"),
        ("BlockLSTMV2", "BlockLSTM"),
        ("BlockLSTMGradV2", "BlockLSTMGrad"),
        ("LSTMBlockCellGrad", "LSTMBlockCellGrad"),  # it multiplies no matrices: the ops behind it do
        ("_MklFusedBatchNormV3", "FusedBatchNormV3"),
        ("FusedBatchNormGradV3", "FusedBatchNormGradV3"),
        ("_Send", "_Send"),
        ("Mul", "Mul"),
        ("", ""),
    ],
)
def test_kinds_of_ops(op: str, kind: str) -> None:
    assert canonical(op) == kind
    assert is_matrix_op(op) == (kind in FORMULAS)


def test_kinds_without_a_formula_are_matrix_ops_too() -> None:
    assert all(is_matrix_op(op) and flops_of(canonical(op), Call([(2, 2)] * 5, (2, 2))) is None for op in UNCOUNTED)
