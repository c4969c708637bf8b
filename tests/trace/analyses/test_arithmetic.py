"""FLOPs and bytes of whole steps, from serialized RunMetadata written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.model import TraceContext

DATA = Path(__file__).parents[2] / "data"
CPU, GPU = "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"
FLOAT, DOUBLE, INT32, STRING, HALF, RESOURCE = 1, 2, 3, 7, 19, 20


@dataclass
class Op:
    name: str
    type: str
    inputs: Sequence[str] = ()
    outputs: Sequence[tuple[int, Sequence[int] | None]] = ()  # (type, shape)
    equation: str = ""
    device: str = CPU
    slots: Sequence[int] | None = None  # of the outputs
    label: str | None = None
    attributes: dict[str, object] = field(default_factory=dict)


def run_metadata(ops: Sequence[Op], with_graph: bool = True) -> bytes:
    """The ops, executed one after the other, each for 8 µs."""
    metadata = message_class("RunMetadata")()
    devices: dict[str, object] = {}
    graph = metadata.partition_graphs.add() if with_graph else None
    written: set[str] = set()
    for place, op in enumerate(ops):
        if op.device not in devices:
            devices[op.device] = metadata.step_stats.dev_stats.add(device=op.device)
        label = f"{op.name} = {op.type}({', '.join(op.inputs)})" if op.label is None else op.label
        node = devices[op.device].node_stats.add(node_name=op.name, timeline_label=label)  # type: ignore[attr-defined]
        node.all_start_nanos, node.all_end_rel_nanos, node.op_end_rel_nanos = 10**9 + place * 10_000, 8_000, 7_000
        node.all_start_micros, node.all_end_rel_micros = node.all_start_nanos // 1000, 8
        for slot, (dtype, shape) in zip(op.slots or range(len(op.outputs)), op.outputs):
            description = node.output.add(slot=slot).tensor_description
            description.dtype = dtype
            if shape is not None:
                description.shape.SetInParent()
                for size in shape:
                    description.shape.dim.add(size=size)
        if graph is not None and op.name not in written and "/stream:" not in op.device:
            written.add(op.name)
            defined = graph.node.add(name=op.name, op=op.type, device=op.device, input=op.inputs)
            if op.equation:
                defined.attr["equation"].s = op.equation.encode()
    return bytes(metadata.SerializeToString())


def of(ops: Sequence[Op], with_graph: bool = True) -> Arithmetic:
    return Answers(run_metadata(ops, with_graph), TraceContext()).arithmetic


def source(name: str, *shape: int, dtype: int = FLOAT) -> Op:
    return Op(name, "Const", outputs=[(dtype, shape)])


BOTH = pytest.mark.parametrize("with_graph", [True, False], ids=["graph", "labels"])


@BOTH
def test_inputs_are_taken_in_their_order_with_their_slots(with_graph: bool) -> None:
    """[3, 5] times [5, 7], the second of Split's outputs; by the order of names or of nodes it would be another product."""
    ops = [
        Op("z", "Split", outputs=[(FLOAT, [9, 9]), (FLOAT, [3, 5])]),
        source("a", 5, 7),
        Op("y", "MatMul", ["z:1", "a", "^z"], [(FLOAT, [3, 7])]),
    ]
    found = of(ops, with_graph)
    assert found.flops.tolist() == [0, 0, 2 * 3 * 5 * 7]
    assert found.bytes[2] == 4 * (3 * 5 + 5 * 7 + 3 * 7)
    assert (found.is_matrix.tolist(), found.dtype.tolist()) == ([False, False, True], [FLOAT] * 3)


@BOTH
def test_one_tensor_may_be_both_factors_and_is_read_once(with_graph: bool) -> None:
    found = of([source("x", 4, 4, dtype=DOUBLE), Op("y", "MatMul", ["x", "x"], [(DOUBLE, [4, 4])])], with_graph)
    assert (found.flops[1], found.bytes[1]) == (2 * 4**3, 8 * 2 * 16)


@BOTH
def test_convolutions_and_fused_ops(with_graph: bool) -> None:
    ops = [
        source("x", 2, 8, 8, 3),
        source("w", 3, 3, 3, 4),
        source("b", 4),
        source("sizes", 4, dtype=INT32),
        Op("y", "_FusedConv2D", ["x", "w", "b"], [(FLOAT, [2, 8, 8, 4])]),
        Op("dw", "Conv2DBackpropFilter", ["x", "sizes", "y"], [(FLOAT, [3, 3, 3, 4])]),
        Op("dx", "_MklNativeConv2DBackpropInput", ["sizes", "w", "y"], [(FLOAT, [2, 8, 8, 3])]),
    ]
    found, count = of(ops, with_graph), 2 * (2 * 8 * 8 * 4) * (3 * 3 * 3)
    assert found.flops[4:].tolist() == [count] * 3


def test_each_einsum_has_the_equation_of_its_node() -> None:
    ops = [
        source("a", 2, 3),
        source("b", 3, 4),
        Op("one", "Einsum", ["a", "b"], [(FLOAT, [2, 4])], "ij,jk->ik"),
        Op("two", "Einsum", ["a", "b"], [(FLOAT, [2, 3, 3, 4])], "ij,kl->ijkl"),
    ]
    assert of(ops).flops.tolist() == [0, 0, 2 * 2 * 3 * 4, 2 * 2 * 3 * 3 * 4]
    assert np.isnan(of(ops, with_graph=False).flops[2:]).all()


@BOTH
def test_each_turn_of_a_loop_has_its_own_shapes(with_graph: bool) -> None:
    ops = [source("w", 6, 4)]
    for rows in (1, 2, 3):
        ops += [Op("x", "Slice", ["w"], [(FLOAT, [rows, 6])]), Op("y", "MatMul", ["x", "w"], [(FLOAT, [rows, 4])])]
    assert of(ops, with_graph).flops.tolist() == [0] + [n for rows in (1, 2, 3) for n in (0, 2 * rows * 6 * 4)]


@BOTH
def test_what_is_not_known_is_never_0(with_graph: bool) -> None:
    ops = [
        Op("x", "Mystery", outputs=[(FLOAT, None)]),
        Op("y", "MatMul", ["x", "x"], [(FLOAT, [2, 2])]),
        Op("text", "AsString", ["y"], [(STRING, [2, 2])]),
        Op("more", "Mul", ["text", "not_recorded"], [(FLOAT, [2, 2])]),
        Op("rnn", "CudnnRNNV3", ["y"], [(FLOAT, [2, 2])]),
        Op("none", "", [], [], label="no label of an op"),
    ]
    found = of(ops, with_graph)
    assert np.isnan(found.flops).tolist() == [False, True, False, False, True, True]
    assert np.isnan(found.bytes).tolist() == [True, True, True, True, False, True]
    assert found.dtype.tolist() == [FLOAT, FLOAT, STRING, FLOAT, FLOAT, 0]


def test_without_inputs_in_the_trace_traffic_is_not_known() -> None:
    raw = run_metadata([Op("x", "Add", ["y"], [(FLOAT, [2])], label="x")], with_graph=False)
    assert np.isnan(Answers(raw, TraceContext()).arithmetic.bytes).all()


def test_a_branch_that_was_not_taken_has_no_output() -> None:
    ops = [
        source("x", 5, 2),
        Op("switch", "Switch", ["x"], [(FLOAT, [5, 2])], slots=[1]),
        Op("y", "MatMul", ["switch:1", "x"], [(FLOAT, [5, 5])]),
    ]
    assert of(ops).flops[2] == 2 * 5 * 5 * 2


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "expected"),
    [
        ("Identity", ["x"], [(FLOAT, [8, 4])], 0),
        ("Reshape", ["x"], [(FLOAT, [32])], 0),
        ("AddV2", ["x", "half"], [(FLOAT, [8, 4])], 128 + 64 + 128),
        ("GatherV2", ["x", "half"], [(FLOAT, [2, 4])], 2 * 32),
        ("Split", ["x"], [(FLOAT, [4, 4]), (FLOAT, [4, 4])], 2 * 128),
        ("ZerosLike", ["x"], [(FLOAT, [8, 4])], 128),
        ("ResourceApplyGradientDescent", ["variable", "x"], [], 3 * 128),
        ("ResourceApplyAdam", ["variable", "variable", "variable", "x"], [], 7 * 128),
        ("ApplyMomentum", ["x", "again", "gradient"], [(FLOAT, [8, 4])], 5 * 128),
        ("ResourceScatterAdd", ["variable", "gradient"], [], 3 * 128),
        ("AssignAddVariableOp", ["variable", "x"], [], 3 * 128),
        ("ResourceApplySomethingNew", ["variable", "x"], [], math.nan),
    ],
)
def test_traffic(op: str, inputs: list[str], outputs: list[tuple[int, list[int]]], expected: float) -> None:
    """x, again and gradient are 128 bytes, half is 64."""
    ops = [
        source("x", 8, 4),
        source("again", 8, 4),
        source("gradient", 8, 4),
        source("half", 8, 4, dtype=HALF),
        Op("variable", "VarHandleOp", outputs=[(RESOURCE, [])]),
    ]
    found = of([*ops, Op("it", op, inputs, outputs)])
    assert found.bytes[-1] == expected or (math.isnan(expected) and math.isnan(found.bytes[-1]))
    assert found.flops[-1] == 0


def test_the_work_of_a_gpus_op_is_that_of_its_kernels() -> None:
    stream = "/device:GPU:0/stream:7"
    ops = [
        Op("x", "Const", outputs=[(FLOAT, [4, 4])], device=GPU),
        Op("y", "MatMul", ["x", "x"], [(FLOAT, [4, 4])], device=GPU),
        Op("y:MatMul", "MatMul", device=stream, label="sgemm"),
        Op("y:MatMul", "MatMul", device=stream, label="reduce"),
    ]
    found = of(ops)
    assert found.flops.tolist() == [0, 0, 64, 64]
    assert found.bytes[1:].tolist() == [0, 64, 64]
    assert (found.is_matrix.tolist(), found.dtype[2:].tolist()) == ([False, False, True, True], [FLOAT] * 2)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.name)
def test_recorded_steps_tell_all_of_it(path: Path) -> None:
    """Every matrix op of every recorded step, through functions, loops and parameter servers; no file lacks a shape."""
    answers = Answers(path.read_bytes(), TraceContext())
    found = answers.arithmetic
    assert found.is_matrix.any()
    assert not np.isnan(found.flops).any()
    assert (found.flops[~found.is_matrix] == 0).all()
    assert found.flops[found.is_matrix].min() > 0
    assert np.isnan(found.bytes).mean() < 0.01


def test_tables_of_ops_add_up_what_is_known() -> None:
    ops = [
        source("a", 2, 3),
        source("b", 3, 4),
        Op("layer/one/y", "MatMul", ["a", "b"], [(FLOAT, [2, 4])]),
        Op("layer/two/y", "MatMul", ["a", "b"], [(FLOAT, [2, 4])]),
        Op("layer/two/z", "MatMul", ["lost", "lost"], [(FLOAT, [2, 4])]),
        Op("lost/y", "MatMul", ["lost", "lost"], [(FLOAT, [2, 4])]),
    ]
    answers = Answers(run_metadata(ops), TraceContext())
    one, size = 2 * 2 * 3 * 4, 4 * (2 * 3 + 3 * 4 + 2 * 4)
    found = {
        by: {
            row["key"]: (row["flops"], row["flops_unknown"], row["bytes"], row["bytes_unknown"])
            for row in answers.ops(by)["rows"]
        }
        for by in ("type", "name", "scope")
    }
    assert found["type"] == {"Const": (0, 0, 0, 0), "MatMul": (2 * one, 2, 2 * size, 2)}
    assert found["name"]["layer/one/y"] == (one, 0, size, 0)
    assert found["name"]["lost/y"] == (None, 1, None, 1)
    assert found["scope"] == {
        "layer": (2 * one, 1, 2 * size, 1),
        "layer/one": (one, 0, size, 0),
        "layer/two": (one, 1, size, 1),
        "lost": (None, 1, None, 1),
    }
    assert (answers.node(2)["flops"], answers.node(2)["traffic_bytes"]) == (one, size)
    assert (answers.node(5)["flops"], answers.node(5)["traffic_bytes"]) == (None, None)
    assert set(answers.op_totals()["keys"]) == {"Const", "MatMul"}


def test_shapes_that_no_tensor_has_are_unknown() -> None:
    huge = [1 << 62] * 30
    found = of([Op("x", "Const", outputs=[(FLOAT, huge)]), Op("y", "BatchMatMulV2", ["x", "x"], [(FLOAT, huge)])])
    assert np.isnan([found.flops[1], found.bytes[1]]).all()


def test_launches_do_not_make_unknown_kernels_known() -> None:
    stream = "/device:GPU:0/stream:7"
    ops = [Op("y", "MatMul", device=GPU), Op("y:MatMul", "MatMul", device=stream, label="sgemm")]
    (row,) = Answers(run_metadata(ops), TraceContext()).ops("type")["rows"]
    assert (row["flops"], row["flops_unknown"], row["bytes"], row["bytes_unknown"]) == (None, 1, None, 1)
