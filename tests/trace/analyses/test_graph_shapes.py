"""Shapes inferred from graphs; tests/tf/test_flops.py compares them with those that ran."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tftracer.trace.analyses.graph_shapes import inferred
from tftracer.trace.decode.descriptors import message_class

FLOAT, INT32, INT64 = 1, 3, 9


class Graph:
    """A GraphDef, written node by node."""

    def __init__(self) -> None:
        self.definition = message_class("GraphDef")()

    def add(self, name: str, op: str, *inputs: str, **attributes: Any) -> str:
        node = self.definition.node.add(name=name, op=op, input=inputs)
        node.attr["T"].type = FLOAT
        for key, value in attributes.items():
            if isinstance(value, bool):
                node.attr[key].b = value
            elif isinstance(value, (str, bytes)):
                node.attr[key].s = value.encode() if isinstance(value, str) else value
            elif isinstance(value, int):
                node.attr[key].i = value
            else:
                node.attr[key].list.i.extend(value)
        return name

    def argument(self, name: str, *shape: int) -> str:
        self.add(name, "_Arg")
        made = self.definition.node[-1].attr["_output_shapes"].list.shape.add()
        for size in shape:
            made.dim.add(size=size)
        return name

    def constant(self, name: str, *values: int, dtype: int = INT32) -> str:
        self.add(name, "Const")
        tensor = self.definition.node[-1].attr["value"].tensor
        tensor.dtype = dtype
        tensor.tensor_shape.dim.add(size=len(values))
        (tensor.int_val if dtype == INT32 else tensor.int64_val).extend(values)
        return name

    def shapes(self, name: str = "y") -> list[Any]:
        return [tensor.shape for tensor in inferred([self.definition])[name].outputs]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "expected"),
    [
        ("Relu", [(2, 3)], {}, (2, 3)),
        ("AddV2", [(2, 1, 4), (3, 1)], {}, (2, 3, 4)),
        ("MatMul", [(2, 3), (4, 3)], {"transpose_b": True}, (2, 4)),
        ("_MklFusedBatchMatMulV2", [(5, 1, 2, 3), (7, 2, 4)], {"adj_x": True}, (5, 7, 3, 4)),
        ("_FusedConv2D", [(2, 9, 8, 3), (3, 3, 3, 4)], {"strides": [1, 2, 2, 1], "padding": "SAME"}, (2, 5, 4, 4)),
        ("Conv2D", [(2, 9, 8, 3), (3, 3, 3, 4)], {"strides": [1, 2, 2, 1], "padding": "VALID"}, (2, 4, 3, 4)),
        (
            "Conv2D",
            [(2, 3, 9, 8), (3, 3, 3, 4)],
            {"strides": [1, 1, 1, 1], "padding": "VALID", "data_format": "NCHW", "dilations": [1, 1, 2, 2]},
            (2, 4, 5, 4),
        ),
        (
            "Conv2D",
            [(2, 9, 8, 3), (3, 3, 3, 4)],
            {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
            (2, 10, 7, 4),
        ),
        ("DepthwiseConv2dNative", [(2, 9, 8, 3), (3, 3, 3, 2)], {"strides": [1, 1, 1, 1], "padding": "SAME"}, (2, 9, 8, 6)),
        ("MaxPool", [(2, 9, 8, 3)], {"strides": [1, 2, 2, 1], "ksize": [1, 3, 3, 1], "padding": "VALID"}, (2, 4, 3, 3)),
        ("Einsum", [(2, 3, 4), (4, 5, 6)], {"equation": "btd,dhe->bthe"}, (2, 3, 5, 6)),
        ("BiasAddGrad", [(2, 9, 8, 3)], {}, (3,)),
        ("Squeeze", [(2, 1, 8, 1)], {"squeeze_dims": [1]}, (2, 8, 1)),
        ("Pack", [(2, 3), (2, 3)], {"axis": 1}, (2, 2, 3)),
        ("Conv2D", [(2, 9, 8, 3), (3, 3, 3, 4)], {"strides": [1], "padding": "SAME"}, None),
        ("MatMul", [(3,), (4, 3)], {}, None),
    ],
)
def test_rules(op: str, inputs: list[tuple[int, ...]], attributes: dict[str, Any], expected: Any) -> None:
    graph = Graph()
    names = [graph.argument(f"x{place}", *shape) for place, shape in enumerate(inputs)]
    graph.add("y", op, *names, "^x0", **attributes)
    assert graph.shapes()[0] == expected


@pytest.mark.parametrize(
    ("op", "values", "attributes", "expected"),
    [
        ("Reshape", [6, -1], {}, (6, 4)),
        ("Reshape", [3, 8], {}, (3, 8)),
        ("Reshape", [-1, -1], {}, None),
        ("Transpose", [2, 0, 1], {}, (4, 2, 3)),
        ("Sum", [-1, 0], {}, (3,)),
        ("Mean", [1], {"keep_dims": True}, (2, 1, 4)),
        ("ExpandDims", [-1], {}, (2, 3, 4, 1)),
        ("Tile", [1, 2, 3], {}, (2, 6, 12)),
        ("Pad", [0, 0, 1, 2, 0, 3], {}, (2, 6, 7)),
        ("ConcatV2", [2], {}, (2, 3, 4)),
        ("Transpose", [9, 9, 9], {}, None),
    ],
)
@pytest.mark.parametrize("dtype", [INT32, INT64])
def test_rules_with_a_constant(op: str, values: list[int], attributes: dict[str, Any], expected: Any, dtype: int) -> None:
    graph = Graph()
    graph.add("y", op, graph.argument("x", 2, 3, 4), graph.constant("c", *values, dtype=dtype), **attributes)
    assert graph.shapes()[0] == expected


def test_variables_have_the_shape_of_their_handle() -> None:
    graph = Graph()
    graph.add("v", "_Arg")
    for size in (5, 6):
        handle = graph.definition.node[-1].attr["_handle_shapes"].list.shape
        (handle[0] if handle else handle.add()).dim.add(size=size)
    graph.add("w", "ReadVariableOp", graph.add("same", "Identity", "v"))
    graph.add("rows", "ResourceGather", "v", graph.argument("which", 3, 2))
    assert (graph.shapes("w"), graph.shapes("rows")) == ([(5, 6)], [(3, 2, 6)])


def test_a_loop_keeps_its_shape_or_is_unknown() -> None:
    """Nodes may come in any order; what changes from turn to turn has no one shape."""
    for body, expected in (("Tanh", (2, 3)), ("Pack", None)):
        graph = Graph()
        graph.add("y", "Identity", "merge")
        graph.add("next", "NextIteration", "body")
        graph.add("body", body, "switch:1")
        graph.add("merge", "Merge", "enter", "next")
        graph.add("switch", "Switch", "merge", "merge")
        graph.add("enter", "Enter", graph.argument("x", 2, 3))
        assert graph.shapes() == [expected]


def test_what_a_partition_receives_is_what_the_other_sent() -> None:
    graph = Graph()
    channel = {"tensor_name": "edge_1_x", "send_device": "/CPU:0", "recv_device": "/GPU:0"}
    graph.add("send", "_Send", graph.argument("x", 2, 3), **channel)
    graph.add("y", "Relu", graph.add("receive", "_Recv", **channel))
    assert graph.shapes() == [(2, 3)]


def test_what_no_rule_tells_is_unknown() -> None:
    graph = Graph()
    graph.add("y", "Relu", graph.add("new", "SomethingNew", graph.argument("x", 2, 3)))
    graph.add("lost", "Relu", "nowhere")
    assert (graph.shapes("new"), graph.shapes(), graph.shapes("lost")) == ([], [None], [None])
    assert inferred([]) == {}


def test_a_hostile_graph_is_unknown_and_takes_no_memory() -> None:
    graph = Graph()
    last = graph.argument("x", 1 << 62, 2)
    for k in range(50):
        last = graph.add(f"t{k}", "Pack", *([last] * 3))
    graph.add("y", "Split", graph.constant("zero", 0), "x", num_split=1 << 60)
    graph.add("huge", "Tile", "x", graph.constant("times", 1 << 30, 1 << 30))
    graph.argument("negative", -5, 3)
    graph.constant("c", 1)
    graph.definition.node[-1].attr["value"].tensor.tensor_shape.dim.add(size=1 << 62)
    graph.definition.node[-1].attr["value"].tensor.tensor_shape.dim.add(size=1 << 62)
    assert graph.shapes(last) == [None]
    assert (graph.shapes(), graph.shapes("huge"), graph.shapes("negative")) == ([None], [None], [None])


# (begin, end, strides, masks) and what Python writes for it
SLICES = [
    ([0, 0], [0, 1], [1, 1], {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}, np.s_[:, 0]),
    ([0, 0, 0], [0, 0, 3], [1, 1, 1], {"begin_mask": 5, "end_mask": 1, "new_axis_mask": 2}, np.s_[:, None, :3]),
    ([0, -2], [0, 0], [1, 1], {"ellipsis_mask": 1, "end_mask": 2}, np.s_[..., -2:]),
    ([1, 0, 5], [3, 0, 0], [1, 1, -2], {"ellipsis_mask": 2, "end_mask": 4}, np.s_[1:3, ..., 5::-2]),
    ([2], [9], [1], {}, np.s_[2:9]),
    ([-1], [0], [1], {"shrink_axis_mask": 1}, np.s_[-1]),
]


@pytest.mark.parametrize(("begin", "end", "strides", "masks", "written"), SLICES)
def test_slices(begin: list[int], end: list[int], strides: list[int], masks: dict[str, int], written: Any) -> None:
    graph = Graph()
    graph.argument("x", 4, 5, 6)
    given = [graph.constant(name, *values) for name, values in (("b", begin), ("e", end), ("s", strides))]
    graph.add("y", "StridedSlice", "x", *given, **masks)
    assert graph.shapes() == [np.zeros((4, 5, 6))[written].shape]


def test_slices_that_tensorflow_would_not_run() -> None:
    for begin, strides, masks in (
        ([0] * 4, [1] * 4, {}),
        ([0], [0], {}),
        ([0, 0], [1, 1], {"ellipsis_mask": 3, "shrink_axis_mask": 0}),
    ):
        graph = Graph()
        graph.argument("x", 4, 5, 6)
        given = [graph.constant("b", *begin), graph.constant("e", *begin), graph.constant("s", *strides)]
        graph.add("y", "StridedSlice", "x", *given, **masks)
        assert graph.shapes() in ([], [(4, 5, 6)])  # unknown; two ellipses leave all


def test_a_size_that_is_taken_of_a_shape() -> None:
    """``tf.reshape(x, [tf.shape(x)[0], -1])``"""
    graph = Graph()
    graph.argument("x", 4, 5, 6)
    graph.add("shape", "Shape", "x")
    given = [graph.constant("b", 0), graph.constant("e", 1), graph.constant("s", 1)]
    graph.add("size", "StridedSlice", "shape", *given, shrink_axis_mask=1)
    graph.add("sizes", "Pack", "size", graph.constant("rest", -1))
    graph.add("y", "Reshape", "x", "sizes")
    assert graph.shapes() == [(4, 30)]


def test_types_of_each_of_several_outputs() -> None:
    graph = Graph()
    graph.add("next", "IteratorGetNext", "iterator")
    attributes = graph.definition.node[-1].attr
    attributes["T"].Clear()
    attributes["output_types"].list.type.extend([FLOAT, INT64])
    for size in (16, 2):
        attributes["output_shapes"].list.shape.add().dim.add(size=size)
    graph.add("y", "Add", "next:1", "next:1")
    found = inferred([graph.definition])
    assert [tensor.dtype for tensor in found["next"].outputs] == [FLOAT, INT64]
    assert found["y"].inputs == [found["next"].outputs[1]] * 2
