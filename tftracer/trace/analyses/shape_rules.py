"""Infers the shapes of an op's outputs from those of its inputs, as TensorFlow does, for common ops of models.

A rule returns the shape of each output; None for an unknown shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from tftracer.trace.analyses.strided_slice import Masks, sliced_shape
from tftracer.trace.decode.tensor_shapes import Shape, dims_of

#: Limits of valid shapes; TensorFlow's own limits are lower.
MAX_DIMENSIONS, MAX_SIZE = 32, 1 << 62
_MAX_PARTS = 1 << 12  # outputs of a Split

Values = Optional[tuple[int, ...]]


@dataclass
class NodeInputs:
    """The inputs and attributes of a node."""

    shapes: Sequence[Shape]
    values: Sequence[Values]  # of small integer tensors, if known
    attributes: Any  # NodeDef.attr

    def shape(self, position: int) -> Shape:
        return self.shapes[position] if position < len(self.shapes) else None

    def value(self, position: int) -> Values:
        return self.values[position] if position < len(self.values) else None

    def numbers(self, name: str) -> list[int]:
        return list(self.attributes[name].list.i) if name in self.attributes else []

    def flag(self, name: str) -> bool:
        return bool(name in self.attributes and self.attributes[name].b)

    def number(self, name: str, otherwise: int = 0) -> int:
        return int(self.attributes[name].i) if name in self.attributes else otherwise

    def text(self, name: str) -> str:
        return str(self.attributes[name].s.decode("utf-8", "replace")) if name in self.attributes else ""


Rule = Callable[[NodeInputs], list[Shape]]

#: Ops whose output has the shape of their first input.
_AS_FIRST = re.compile(
    r"Relu|Relu6|LeakyRelu|Elu|Selu|Gelu|Tanh|Sigmoid|Softplus|Softsign|Softmax|LogSoftmax|Exp|Expm1|Log|Log1p|Sqrt|Rsqrt|Square|Neg"
    r"|Abs|Sign|Sin|Cos|Erf|Floor|Ceil|Round|Reciprocal|Inv|Cast|Identity|StopGradient|PreventGradient|Snapshot|CheckNumerics"
    r"|BiasAdd|\w+Grad|ZerosLike|OnesLike|Enter|Exit|NextIteration|LogicalNot|IsFinite|IsNan|LayerNorm|Cumsum|ReverseV2|AddN"
    r"|Mish|Swish|ClipByValue|RefIdentity|RefEnter"
)
_NOT_AS_FIRST = re.compile(
    r"BiasAddGrad|AvgPoolGrad|AvgPool3DGrad|StridedSliceGrad|ResizeBilinearGrad|MatMulGrad|BlockLSTMGrad|\w+CellGrad"
)
_BROADCAST = re.compile(
    r"Add|AddV2|Sub|Mul|Div|RealDiv|DivNoNan|MulNoNan|FloorDiv|FloorMod|Mod|Maximum|Minimum|Pow|SquaredDifference|Equal|NotEqual"
    r"|Greater|GreaterEqual|Less|LessEqual|LogicalAnd|LogicalOr|Xdivy|Xlogy|SelectV2"
)
_REDUCED = re.compile(r"Sum|Mean|Max|Min|Prod|All|Any|EuclideanNorm")


def rule_of(kind: str) -> Rule | None:
    """Return the rule of an op type, if there is one. ``kind``: as returned by op_kinds.canonical."""
    if kind in _RULES:
        return _RULES[kind]
    if _BROADCAST.fullmatch(kind):
        return _broadcast
    if _REDUCED.fullmatch(kind):
        return _reduced
    return _as_first if _AS_FIRST.fullmatch(kind) and not _NOT_AS_FIRST.fullmatch(kind) else None


def _as_first(node: NodeInputs) -> list[Shape]:
    return [node.shape(0)]


def broadcast(left: Shape, right: Shape) -> Shape:
    if left is None or right is None:
        return None
    longest = max(len(left), len(right))
    pairs = zip((1,) * (longest - len(left)) + left, (1,) * (longest - len(right)) + right)
    return tuple(b if a == 1 else a for a, b in pairs)


def _broadcast(node: NodeInputs) -> list[Shape]:
    result: Shape = ()
    for shape in node.shapes:
        result = broadcast(result, shape)
    return [result]


def _reduced(node: NodeInputs) -> list[Shape]:
    shape, axes = node.shape(0), node.value(1)
    if shape is None or axes is None:
        return [None]
    reduced_axes = {axis % len(shape) for axis in axes if shape}
    if node.flag("keep_dims"):
        return [tuple(1 if k in reduced_axes else size for k, size in enumerate(shape))]
    return [tuple(size for k, size in enumerate(shape) if k not in reduced_axes)]


def _matmul(transpose_left: str, transpose_right: str) -> Rule:
    def rule(node: NodeInputs) -> list[Shape]:
        left, right = node.shape(0), node.shape(1)
        if left is None or right is None or min(len(left), len(right)) < 2:
            return [None]
        rows = left[-1] if node.flag(transpose_left) else left[-2]
        columns = right[-2] if node.flag(transpose_right) else right[-1]
        batch = broadcast(left[:-2], right[:-2])
        return [None if batch is None else (*batch, rows, columns)]

    return rule


def _window(node: NodeInputs, shape: Shape, window: Sequence[int], channels: int | None) -> Shape:
    """Return the shape after a window moved over an image. ``channels``: number of channels of the output; None: the image's."""
    strides, explicit = node.numbers("strides"), node.numbers("explicit_paddings")
    layout, padding = node.text("data_format") or "N...C", node.text("padding")
    if shape is None or len(strides) != len(shape) or padding not in ("SAME", "VALID", "EXPLICIT"):
        return None
    first = 2 if layout.startswith("NC") else 1  # the first axis of the image
    feature, dilations = (1 if first == 2 else len(shape) - 1), node.numbers("dilations") or [1] * len(shape)
    result = list(shape)
    for k, size in enumerate(window):
        axis = first + k
        reach = (size - 1) * dilations[axis] + 1
        padded = shape[axis] + (sum(explicit[2 * axis : 2 * axis + 2]) if padding == "EXPLICIT" else 0)
        steps = shape[axis] if padding == "SAME" else max(padded - reach + 1, 0)
        result[axis] = -(-steps // max(strides[axis], 1))
    if channels is not None:
        result[feature] = channels
    return tuple(result)


def _convolution(depthwise: bool = False) -> Rule:
    def rule(node: NodeInputs) -> list[Shape]:
        kernel = node.shape(1)
        if kernel is None or len(kernel) < 4 or ("num_args" in node.attributes and "Tpaddings" in node.attributes):
            return [None]
        channels = kernel[-1] * kernel[-2] if depthwise else kernel[-1]
        return [_window(node, node.shape(0), kernel[:-2], channels)]

    return rule


def _pool(node: NodeInputs) -> list[Shape]:
    size = node.numbers("ksize")
    first = 2 if node.text("data_format").startswith("NC") else 1  # the first axis of the image
    spatial = size[first : first + len(size) - 2]
    return [_window(node, node.shape(0), spatial, None)]


def _shape_from_input(position: int) -> Rule:
    """Return the rule for ops whose output has the shape that is the value of an input."""
    return lambda node: [node.value(position)]


def _reshape(node: NodeInputs) -> list[Shape]:
    shape, wanted = node.shape(0), node.value(1)
    if wanted is None or -1 not in wanted:
        return [wanted]
    known = math.prod(size for size in wanted if size != -1)
    if shape is None or not known or wanted.count(-1) > 1:
        return [None]
    return [tuple(math.prod(shape) // known if size == -1 else size for size in wanted)]


def _transpose(node: NodeInputs) -> list[Shape]:
    shape, order = node.shape(0), node.value(1)
    return [
        None if shape is None or order is None or sorted(order) != list(range(len(shape))) else tuple(shape[k] for k in order)
    ]


def _squeeze(node: NodeInputs) -> list[Shape]:
    shape, axes = node.shape(0), node.numbers("squeeze_dims")
    if shape is None or not shape:
        return [shape]
    gone = {axis % len(shape) for axis in axes} or {k for k, size in enumerate(shape) if size == 1}
    return [tuple(size for k, size in enumerate(shape) if k not in gone)]


def _expand(node: NodeInputs) -> list[Shape]:
    shape, axis = node.shape(0), node.value(1)
    if shape is None or not axis:
        return [None]
    at = axis[0] % (len(shape) + 1)
    return [(*shape[:at], 1, *shape[at:])]


def _bias_gradient(node: NodeInputs) -> list[Shape]:
    shape = node.shape(0)
    return [None if not shape else (shape[1 if node.text("data_format").startswith("NC") else -1],)]


def _gather(node: NodeInputs) -> list[Shape]:
    rows, indices, axis = node.shape(0), node.shape(1), node.value(2) or (0,)
    if rows is None or indices is None or axis[0] != 0 or node.number("batch_dims"):
        return [None]
    return [(*indices, *rows[1:])]


def _concat(node: NodeInputs) -> list[Shape]:
    parts, axis = node.shapes[:-1], node.value(len(node.shapes) - 1)
    known = [part for part in parts if part]
    if not axis or len(known) < len(parts) or not known:
        return [None]
    at = axis[0] % len(known[0])
    return [(*known[0][:at], sum(part[at] for part in known), *known[0][at + 1 :])]


def _split(node: NodeInputs) -> list[Shape]:
    axis, shape, parts = node.value(0), node.shape(1), node.number("num_split")
    if not axis or not shape or not 0 < parts <= _MAX_PARTS:
        return [None]
    at = axis[0] % len(shape)
    return [(*shape[:at], shape[at] // parts, *shape[at + 1 :])] * parts


def _pack(node: NodeInputs) -> list[Shape]:
    shape, axis = node.shape(0), node.number("axis")
    if shape is None:
        return [None]
    at = axis % (len(shape) + 1)
    return [(*shape[:at], len(node.shapes), *shape[at:])]


def _tile(node: NodeInputs) -> list[Shape]:
    shape, times = node.shape(0), node.value(1)
    return [None if shape is None or times is None else tuple(a * b for a, b in zip(shape, times))]


def _pad(node: NodeInputs) -> list[Shape]:
    shape, paddings = node.shape(0), node.value(1)
    if shape is None or paddings is None or len(paddings) != 2 * len(shape):
        return [None]
    return [tuple(size + paddings[2 * k] + paddings[2 * k + 1] for k, size in enumerate(shape))]


def _einsum(node: NodeInputs) -> list[Shape]:
    given, arrow, result = node.text("equation").replace(" ", "").partition("->")
    terms = given.split(",")
    if not arrow or "." in given or len(terms) != len(node.shapes):
        return [None]
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, node.shapes):
        if shape is None or len(shape) != len(term):
            return [None]
        sizes.update({label: size for label, size in zip(term, shape) if sizes.get(label, 1) == 1})
    return [tuple(sizes[label] for label in result)]


def _normalized(node: NodeInputs) -> list[Shape]:
    return [node.shape(0), *[node.shape(1)] * 4]


def _cross_entropy(node: NodeInputs) -> list[Shape]:
    shape = node.shape(0)
    return [None if shape is None else shape[:1], shape]


def _strided_slice(node: NodeInputs) -> list[Shape]:
    shape, begin, end, strides = node.shape(0), node.value(1), node.value(2), node.value(3)
    if shape is None or begin is None or end is None or strides is None:
        return [None]
    return [sliced_shape(shape, begin, end, strides, masks_of(node))]


def masks_of(node: NodeInputs) -> Masks:
    return Masks(*(node.number(f"{name}_mask") for name in Masks._fields))


def _attribute_shapes(node: NodeInputs) -> list[Shape]:
    return shapes_in(node.attributes["output_shapes"]) if "output_shapes" in node.attributes else []


def shapes_in(attribute: Any) -> list[Shape]:
    """Return the shapes in an attribute (``known_shape``)."""
    return [known_shape(shape) for shape in attribute.list.shape]


def known_shape(shape: Any) -> Shape:
    """Return the sizes in a TensorShapeProto; None if one is unknown or impossible."""
    return possible(dims_of(shape))


def possible(shape: Shape) -> Shape:
    """Return the shape, or None if no tensor can have it: files may contain invalid graphs."""
    if shape is None or len(shape) > MAX_DIMENSIONS or min(shape, default=0) < 0 or max(shape, default=0) > MAX_SIZE:
        return None
    return shape


#: Ops whose output has the shape that is the value of their input 0 or 1.
_SHAPE_IS_INPUT_0 = (
    *("Conv2DBackpropInput", "Conv3DBackpropInput", "DepthwiseConv2dNativeBackpropInput", "AvgPoolGrad", "StridedSliceGrad"),
    *("Fill", "RandomUniform", "RandomStandardNormal", "StatelessRandomUniform", "StatelessRandomUniformV2"),
)
_SHAPE_IS_INPUT_1 = ("Conv2DBackpropFilter", "Conv3DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter", "BroadcastTo")

_RULES: dict[str, Rule] = {
    "MatMul": _matmul("transpose_a", "transpose_b"),
    "BatchMatMul": _matmul("adj_x", "adj_y"),
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolution()),
    "DepthwiseConv2dNative": _convolution(depthwise=True),
    **dict.fromkeys(_SHAPE_IS_INPUT_0, _shape_from_input(0)),
    **dict.fromkeys(_SHAPE_IS_INPUT_1, _shape_from_input(1)),
    "StridedSlice": _strided_slice,
    **dict.fromkeys(("MaxPool", "AvgPool"), _pool),
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "ExpandDims": _expand,
    "BiasAddGrad": _bias_gradient,
    "GatherV2": _gather,
    "ConcatV2": _concat,
    "Split": _split,
    "Pack": _pack,
    "Tile": _tile,
    **dict.fromkeys(("Pad", "PadV2"), _pad),
    "Einsum": _einsum,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV3", "FusedBatchNormGradV3"), _normalized),
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), _cross_entropy),
    "IteratorGetNext": _attribute_shapes,
    **dict.fromkeys(("Switch", "RefSwitch"), lambda node: [node.shape(0)] * 2),
    "IdentityN": lambda node: list(node.shapes),
}
