"""What the graph tells of ops whose names tell no layer: each rule by hand, and what it adds to real steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

from traces import CPU, N, make_trace

from tftracer.trace.analyses import layers_by_graph
from tftracer.trace.analyses.layer_of_each_op import PHASES
from tftracer.trace.answers import Answers
from tftracer.trace.model import NodeKind, TraceContext

DATA = Path(__file__).parents[2] / "data"

STEP: list[tuple[Any, ...]] = [
    ("w", "VarHandleOp", ()),
    ("a/kernel/Adam", "VarHandleOp", ()),
    ("shared", "VarHandleOp", ()),
    ("a/MatMul", "MatMul", ("w", "shared")),
    ("b/MatMul", "MatMul", ("a/MatMul", "shared")),
    ("gradients/b/MatMul_grad/MatMul", "MatMul", ("b/MatMul",)),
    ("gradients/a/MatMul_grad/MatMul", "MatMul", ("gradients/b/MatMul_grad/MatMul",)),
    ("AddN", "AddN", ("gradients/a/MatMul_grad/MatMul",)),
    ("AddN_1", "AddN", ("gradients/a/MatMul_grad/MatMul", "gradients/b/MatMul_grad/MatMul")),
    ("AddN_2", "AddN", ("b/MatMul",)),
    ("Adam/beta", "Mul", ()),  # of no layer, and read for both
    ("Adam/decay", "Mul", ("w",)),
    ("Adam/Mul", "Mul", ("AddN", "Adam/beta")),
    ("Adam/Assign", "AssignSubVariableOp", ("Adam/Mul", "Adam/decay", "^a/MatMul")),
    ("Adam/Read", "ReadVariableOp", ("^Adam/Assign",)),
    ("Adam/Mul_1", "Mul", ("gradients/b/MatMul_grad/MatMul", "Adam/beta")),
    ("Adam/norm", "Mul", ("Adam/Mul", "Adam/Mul_1")),
    ("Adam/scaled", "Mul", ("Adam/norm", "gradients/b/MatMul_grad/MatMul")),
    ("sgd/CollectiveReduceV2", "CollectiveReduceV2", ("gradients/b/MatMul_grad/MatMul",), NodeKind.COMMUNICATION),
    ("sgd/Mul", "Mul", ("sgd/CollectiveReduceV2",)),
    ("Tanh", "Tanh", ("a/MatMul",)),
]


def placed() -> dict[str, tuple[str, str]]:
    """name -> (its layer, its phase) of ``STEP``."""
    nodes = []
    for at, (name, op, inputs, *kind) in enumerate(STEP):
        nodes.append(N(name, op, 10 * at, 10 * at + 9, CPU, kind[0] if kind else NodeKind.COMPUTE, inputs=inputs))
    answers = Answers(None, TraceContext(), trace=make_trace(nodes))
    found = answers.layers_of_ops
    layers = [found.tree.names[layer] for layer in found.layer.tolist()]
    phases = [PHASES[phase] for phase in found.phase.tolist()]
    return dict(zip([name for name, *_ in STEP], zip(layers, phases)))


def test_ops_belong_to_the_layer_whose_gradient_they_read() -> None:
    of = placed()
    assert of["AddN"] == ("a", "backward") and of["Adam/Mul"] == of["Adam/Assign"] == of["Adam/Read"] == ("a", "optimizer")
    assert of["Adam/Mul_1"] == ("b", "optimizer")
    assert of["sgd/CollectiveReduceV2"] == ("b", "communication") and of["sgd/Mul"] == ("b", "optimizer")


def test_what_reads_gradients_of_several_layers_belongs_to_none() -> None:
    of = placed()
    assert of["AddN_1"] == ("", "backward")
    assert of["Adam/norm"] == of["Adam/scaled"] == ("", "optimizer")


def test_what_reads_no_gradient_belongs_to_the_layer_that_reads_it() -> None:
    of = placed()
    assert of["Adam/decay"] == ("a", "optimizer")
    assert of["Adam/beta"] == ("", "optimizer")


def test_variables_belong_to_the_one_layer_that_reads_them() -> None:
    of = placed()
    assert of["w"] == ("a", "forward")
    assert of["shared"] == ("", "forward")


def test_the_model_s_own_ops_stay_where_they_are() -> None:
    of = placed()
    assert of["AddN_2"] == of["Tanh"] == ("", "forward")
    assert of["a/MatMul"] == ("a", "forward")


def test_a_graph_with_too_many_edges_is_not_followed() -> None:
    with mock.patch.object(layers_by_graph, "MAX_EDGES", 1):
        assert placed()["Adam/Mul"] == ("", "optimizer")


def test_updates_of_variables_without_a_scope_are_in_the_layers_of_a_real_step() -> None:
    answer = Answers((DATA / "dense500_tf2.15_cpu.pb").read_bytes(), TraceContext()).layers()
    assert answer["in_no_layer"] / answer["total"] < 0.01
    first = next(layer for layer in answer["layers"] if layer["name"] == "MatMul_447")
    spent = dict(zip(answer["phases"], first["own"]))
    assert spent["forward"] > 0 and spent["backward"] > 0 and spent["optimizer"] > 0
