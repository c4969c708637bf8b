"""Infers the shapes of all tensors of a step from the graph that ran, starting at its arguments, variables and constants.

This is for profiles, which record only some shapes. A shape is unknown if there is no rule for it (shape_rules.py), or if it
changes between the iterations of a loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tftracer.trace.analyses.op_kinds import canonical
from tftracer.trace.analyses.shape_rules import NodeInputs, Values, known_shape, masks_of, possible, rule_of, shapes_in
from tftracer.trace.analyses.strided_slice import sliced_values
from tftracer.trace.arrays.intervals import paced
from tftracer.trace.decode.executed_graph import RECEIVES, SENDS, channel
from tftracer.trace.decode.labels import parse_input
from tftracer.trace.decode.tensor_shapes import RESOURCE, Shape
from tftracer.trace.model import Tensor

#: Maximum number of passes over the nodes. A loop's variables need a second pass, nested loops a third.
PASSES = 4
MAX_NODES = 1 << 18
_MAX_VALUES = 64  # the values of larger tensors are not computed
_INTEGERS = {3: "<i4", 9: "<i8"}  # tensorflow.DataType of int32 and int64 -> NumPy's dtype
_BOOL, _BOOLEAN_OPS = 10, ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalNot")
_HANDLES, _SHAPES = "_handle_shapes", "_output_shapes"
_MERGES = ("Merge", "RefMerge")


@dataclass
class _Node:
    """A node of the graph, with the known shapes and values of its outputs."""

    definition: Any  # NodeDef
    kind: str  # the canonical op type (op_kinds.py)
    inputs: list[tuple[str, int]]  # (name of the node, slot) of each data input
    shapes: list[Shape] = field(default_factory=list)  # of its outputs
    values: Values = None  # the values of its only output, if known
    handle: Shape = None  # shape of the variable, if the output is a variable's handle
    conflicting: bool = False  # whether it is a Merge whose inputs had different shapes


class Inferred(NamedTuple):
    """A node's tensors, and the equation of an Einsum."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    equation: str | None


def inferred(graphs: list[Any]) -> dict[str, Inferred]:
    """Return name -> inferred tensors of each node of some GraphDefs; {} for more than MAX_NODES nodes."""
    definitions = [node for graph in graphs for node in graph.node]
    if len(definitions) > MAX_NODES:
        return {}
    send_input = {channel(node): node.input[0] for node in definitions if node.op.encode() in SENDS and node.input}
    nodes = {node.name: _Node(node, canonical(node.op), _inputs(node, send_input)) for node in definitions}
    known_before, order = -1, _inputs_first(nodes)
    for _ in range(PASSES):
        for name in paced(order, 200):
            _infer(nodes, nodes[name])
        known = sum(shape is not None for node in nodes.values() for shape in node.shapes)
        if known == known_before:
            break
        known_before = known
    return {name: Inferred(_tensors(nodes, node.inputs), _outputs(node), _equation(node)) for name, node in nodes.items()}


def _inputs_first(nodes: dict[str, _Node]) -> list[str]:
    """Return the nodes' names, each node after its inputs; a cycle (a loop) is cut at one of its nodes."""
    order: list[str] = []
    seen: set[str] = set()
    for first in nodes:
        stack = [(first, False)]
        while stack:
            name, is_ready = stack.pop()
            if is_ready:
                order.append(name)
            elif name in nodes and name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(source, False) for source, _ in nodes[name].inputs]
    return order


def _inputs(node: Any, send_input: dict[Any, str]) -> list[tuple[str, int]]:
    """Return (name of the node, slot) of each data input. The input of a _Recv is the input of its _Send."""
    given = [send_input[channel(node)]] if node.op.encode() in RECEIVES and channel(node) in send_input else list(node.input)
    parsed = [parse_input(text) for text in given]
    return [(source.name, source.slot) for source in parsed if not source.control]


def _tensors(nodes: dict[str, _Node], inputs: list[tuple[str, int]]) -> list[Tensor]:
    return [Tensor(_dtype(nodes[name], slot) if name in nodes else 0, _shape(nodes, name, slot)) for name, slot in inputs]


def _equation(node: _Node) -> str | None:
    attributes = node.definition.attr
    return str(attributes["equation"].s.decode("utf-8", "replace")) if "equation" in attributes else None


def _outputs(node: _Node) -> list[Tensor]:
    return [Tensor(_dtype(node, slot), shape) for slot, shape in enumerate(node.shapes)]


def _shape(nodes: dict[str, _Node], name: str, slot: int) -> Shape:
    node = nodes.get(name)
    return node.shapes[slot] if node is not None and slot < len(node.shapes) else None


def _dtype(node: _Node, slot: int) -> int:
    """Return the tensorflow.DataType of a node's output, 0 if not known."""
    attributes = node.definition.attr
    if node.kind in _BOOLEAN_OPS:
        return _BOOL
    if node.handle is not None and node.kind != "ReadVariableOp":
        return RESOURCE
    for name in ("DstT", "out_type", "output_type", "dtype", "Tparams", "T"):
        if name in attributes and attributes[name].type:
            return int(attributes[name].type)
    for name in ("output_types", "T"):  # one for each output
        if name in attributes and 0 <= slot < len(attributes[name].list.type):
            return int(attributes[name].list.type[slot])
    return 0


def _infer(nodes: dict[str, _Node], node: _Node) -> None:
    attributes, kind = node.definition.attr, node.kind
    sources = [nodes.get(name) for name, _ in node.inputs]
    handle = sources[0].handle if sources and sources[0] is not None else None
    if _HANDLES in attributes and kind in ("_Arg", "_DeviceArg"):
        node.handle = next(iter(shapes_in(attributes[_HANDLES])), None)
    elif kind == "VarHandleOp" and "shape" in attributes:
        node.handle = known_shape(attributes["shape"].shape)
    elif kind in ("Identity", "Enter", "Switch"):
        node.handle = handle
    node_inputs = NodeInputs(
        [_shape(nodes, name, slot) for name, slot in node.inputs],
        [source.values if source is not None else None for source in sources],
        attributes,
    )
    node.shapes = _shapes(node, node_inputs, handle)
    node.values = _values(node, node_inputs)


def _shapes(node: _Node, node_inputs: NodeInputs, handle: Shape) -> list[Shape]:
    kind, attributes = node.kind, node_inputs.attributes
    if kind == "Const":
        return [known_shape(attributes["value"].tensor.tensor_shape)]
    if node.handle is not None and kind in ("_Arg", "_DeviceArg", "VarHandleOp"):
        return [()]
    if kind == "ReadVariableOp":
        return [handle]
    if kind == "ResourceGather":
        indices = node_inputs.shape(1)
        return [None if handle is None or indices is None else possible((*indices, *handle[1:]))]
    if kind in _MERGES:
        known = {shape for shape in node_inputs.shapes if shape is not None}
        node.conflicting |= len(known) > 1
        return [known.pop() if len(known) == 1 and not node.conflicting else None]
    if node.definition.op.encode() in RECEIVES:
        return [node_inputs.shape(0)]
    if _SHAPES in attributes:
        return shapes_in(attributes[_SHAPES])
    rule = rule_of(kind)
    if rule is None:
        return [(len(node_inputs.shape(0) or ()),)] if kind == "Shape" and node_inputs.shape(0) is not None else []
    try:
        return [possible(shape) for shape in rule(node_inputs)]
    except (IndexError, KeyError, ValueError, ZeroDivisionError):  # an invalid op: files may contain anything
        return []


def _values(node: _Node, node_inputs: NodeInputs) -> Values:
    """Return the values of a small integer tensor, if known."""
    if node.kind == "Const":
        return _constant(node_inputs.attributes["value"].tensor)
    if node.kind == "Shape":
        return node_inputs.shape(0)
    if node.kind == "Pack" and len(node_inputs.values) <= _MAX_VALUES:
        parts = [value for value in node_inputs.values if value is not None and len(value) == 1]
        return tuple(part[0] for part in parts) if len(parts) == len(node_inputs.values) else None
    if node.kind == "StridedSlice":
        return _sliced(node_inputs)
    return node_inputs.value(0) if node.kind in ("Identity", "Cast", "Enter") else None


def _sliced(node_inputs: NodeInputs) -> Values:
    values, begin, end, strides = (node_inputs.value(position) for position in range(4))
    if values is None or begin is None or end is None or strides is None:
        return None
    try:
        return sliced_values(values, begin, end, strides, masks_of(node_inputs))
    except (IndexError, ValueError):  # an invalid op
        return None


def _constant(tensor: Any) -> Values:
    elements = float(np.prod([dim.size for dim in tensor.tensor_shape.dim], dtype=np.float64))
    if tensor.dtype not in _INTEGERS or not 0 <= elements <= _MAX_VALUES:
        return None
    size = int(elements)
    if tensor.tensor_content:
        dtype = np.dtype(_INTEGERS[tensor.dtype])
        count = min(len(tensor.tensor_content) // dtype.itemsize, 2 * _MAX_VALUES)
        values = np.frombuffer(tensor.tensor_content, dtype, count).tolist()
    else:
        values = list((tensor.int_val if tensor.dtype == 3 else tensor.int64_val)[: 2 * _MAX_VALUES])
        values += [values[-1] if values else 0] * (size - len(values))  # protobuf omits repeats of the last value
    return tuple(values) if len(values) == size else None
