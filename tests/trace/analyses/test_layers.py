"""Layers: whose time and memory is whose, that all of it adds up, and how much of real steps lies in a layer."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import CPU, GPU, STREAM, TF_DATA, N, make_trace, received

from tftracer.contract.layers import Layers
from tftracer.errors import UnknownError
from tftracer.trace.analyses.layer_of_each_op import placed_ops
from tftracer.trace.analyses.layer_tree import LayerTree, layer_rows
from tftracer.trace.analyses.layers import IN_NO_LAYER, INPUT_PIPELINE, NO_KNOWN_OP, layers_of_time
from tftracer.trace.analyses.name_scopes import own_scopes
from tftracer.trace.analyses.ops import work_of
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.model import NodeKind, TraceContext

DATA = Path(__file__).parents[2] / "data"


def layers(*nodes: N, limit: int = 100, examined: int = 100) -> Layers:
    trace = make_trace(nodes)
    work = work_of(trace)
    return layers_of_time(trace, work, placed_ops(trace, work, examined), [], limit)


def own(answer: Layers) -> dict[str, dict[str, float]]:
    """path -> phase -> its own, without zeros."""
    paths: list[str] = []
    table: dict[str, dict[str, float]] = {}
    for layer in answer["layers"]:
        paths.append((paths[layer["parent"]] + "/" if layer["parent"] >= 0 else "") + layer["name"])
        spent: dict[str, float] = {phase: amount for phase, amount in zip(answer["phases"], layer["own"]) if amount}
        if spent:
            table[paths[-1]] = spent
    return table


def one_after_the_other(*ops: tuple[Any, ...]) -> list[N]:
    """Of (name, op, ns, ...)."""
    nodes, at = [], 0
    for name, op, ns, *rest in ops:
        nodes.append(N(name, op, at, at + ns, *rest))
        at += ns
    return nodes


def test_an_optimizer_that_the_script_has_named() -> None:
    answer = layers(
        *one_after_the_other(
            ("words/Gather", "ResourceGather", 10),
            ("train/steps/update_words/table/ResourceApplyAdam", "ResourceApplyAdam", 5),
            ("train/steps/update_words/table/ReadVariableOp", "ReadVariableOp", 4),
            ("train/steps/update_words/mul", "Mul", 3),
            ("train/steps/mul", "Mul", 2),
            ("train/gate/update_state/MatMul", "MatMul", 1),  # no optimizer: nothing in it updates a variable
            ("gradients/train/steps/loss_grad/Mul", "Mul", 7),
        )
    )
    table = own(answer)
    assert table["words"] == {"forward": 10, "optimizer": 12}
    assert table[f"{IN_NO_LAYER}/steps"] == {"optimizer": 2}
    assert table["train/gate/update_state"] == {"forward": 1}
    assert table["train"] == {"backward": 7}


def test_a_training_step_by_hand() -> None:
    answer = layers(
        *one_after_the_other(
            ("IteratorGetNext", "IteratorGetNext", 5, CPU, NodeKind.INPUT),
            ("net/dense/MatMul", "MatMul", 10),
            ("net/dense/BiasAdd", "BiasAdd", 2),
            ("loss/Mean", "Mean", 1),
            ("Cast", "Cast", 3),
            ("gradients/loss/Mean_grad/Tile", "Tile", 4),
            ("gradients/net/dense/MatMul_grad/MatMul_1", "MatMul", 20),
            ("Adam/update_net/dense/kernel/ResourceApplyAdam", "ResourceApplyAdam", 7),
            ("Adam/AssignSubVariableOp", "AssignSubVariableOp", 6),
            ("h/HorovodAllreduce_gradients_net_dense_MatMul_grad_0", "HorovodAllreduce", 9, CPU, NodeKind.COMMUNICATION),
        )
    )
    assert own(answer) == {
        "net/dense": {"forward": 12, "backward": 20, "optimizer": 7, "communication": 9},
        "loss": {"forward": 1, "backward": 4},
        INPUT_PIPELINE: {"input": 5},
        f"{IN_NO_LAYER}/Adam": {"optimizer": 6},
        f"{IN_NO_LAYER}/Cast": {"forward": 3},
    }
    assert answer["total"] == 67 and answer["in_no_layer"] == 9
    names = [(layer["name"], layer["kind"], layer["node"]) for layer in answer["layers"]]
    assert names[:3] == [("net", "layer", -1), ("dense", "layer", 6), ("loss", "layer", 5)]


def test_an_op_with_parts_is_a_layer_and_so_is_one_with_a_gradient() -> None:
    answer = layers(
        *one_after_the_other(
            ("MatMul_3", "MatMul", 10),
            ("MatMul_3/ReadVariableOp", "ReadVariableOp", 1),
            ("Relu_3", "Relu", 2),
            ("gradients/Relu_3_grad/ReluGrad", "ReluGrad", 4),
            ("Tanh", "Tanh", 3),
        )
    )
    assert own(answer) == {
        "MatMul_3": {"forward": 11},
        "Relu_3": {"forward": 2, "backward": 4},
        f"{IN_NO_LAYER}/Tanh": {"forward": 3},
    }


def test_loops_fold_onto_their_layer() -> None:
    loop = "net/lstm/while"
    gradient = f"gradient_tape/{loop}/{loop}_grad"
    answer = layers(
        *one_after_the_other(
            (f"{loop}/body/_1/{loop}/cell/MatMul", "MatMul", 10),
            (f"{gradient}/body/_9/gradient_tape/{loop}/gradients/{loop}/cell/MatMul_grad/MatMul", "MatMul", 20),
            (f"{loop}/next_iteration/_37", "NextIteration", 1, CPU, NodeKind.CONTROL),
            (f"{loop}/x_switch/_28", "Switch", 2, CPU, NodeKind.CONTROL),
        )
    )
    assert own(answer) == {loop: {"forward": 3}, f"{loop}/cell": {"forward": 10, "backward": 20}}


def test_transfers_are_those_of_the_tensor_that_they_carry() -> None:
    answer = layers(
        N("dense/MatMul", "MatMul", 0, 10),
        received("edge_7_gradients/dense/MatMul_grad/tuple/control_dependency_1", 10, 30, 64),
        received("edge_9_nobody", 30, 40, 64),
    )
    assert own(answer) == {
        "dense": {"forward": 10, "communication": 20},
        f"{IN_NO_LAYER}/RecvTensor": {"communication": 10},
    }


def test_kernels_are_those_of_the_op_that_launched_them() -> None:
    answer = layers(
        N("dense/MatMul", "MatMul", 0, 10, GPU, NodeKind.LAUNCH),
        N("dense/MatMul:MatMul", "MatMul", 20, 70, STREAM),
        N("Iterator::Root", "Root", 0, 5, TF_DATA, NodeKind.INPUT),
    )
    assert own(answer) == {"dense": {"forward": 60}, INPUT_PIPELINE: {"input": 5}}


def test_variables_belong_to_the_layers_that_use_them() -> None:
    answer = layers(
        *one_after_the_other(
            ("dense/MatMul", "MatMul", 10),
            ("dense/kernel", "VariableV2", 1),
            ("dense/kernel/Adam", "VariableV2", 2),
            ("embedding/table", "VariableV2", 4),
        )
    )
    assert own(answer) == {"dense": {"forward": 11, "optimizer": 2}, "embedding": {"forward": 4}}


def test_the_smallest_are_folded_and_said() -> None:
    nodes = one_after_the_other(*((f"net/layer_{i}/MatMul", "MatMul", 100 - i) for i in range(20)))
    answer = layers(*nodes, limit=5)
    shown = [layer for layer in answer["layers"] if layer["kind"] == "layer"]
    others = [layer for layer in answer["layers"] if layer["kind"] == "others"]
    assert [layer["name"] for layer in shown] == ["net", "layer_0", "layer_1", "layer_2", "layer_3"]
    assert [(layer["folded"], layer["parent"]) for layer in others] == [(16, 0)] and answer["folded"] == 16
    assert sum(sum(layer["own"]) for layer in answer["layers"]) == answer["total"] == sum(100 - i for i in range(20))


def test_hostile_names_cost_no_more_than_the_limits() -> None:
    deep = N("a/" * 100_000 + "x", "MatMul", 0, 10)
    many = [N(f"s{i}/x", "MatMul", 10 + i, 11 + i) for i in range(2000)]
    answer = layers(deep, *many, limit=50, examined=500)
    assert len(answer["layers"]) < 150
    assert answer["folded"] == 64 + 499 - 50 + 1501
    assert answer["in_no_layer"] == 0 and answer["total"] == 2010
    outermost = [layer for layer in answer["layers"] if layer["parent"] < 0 and layer["kind"] == "others"]
    assert [(sum(layer["own"]), layer["folded"]) for layer in outermost if layer["folded"] == 1501] == [(1501, 1501)]


def test_rows_of_a_tree_add_up_whatever_is_folded() -> None:
    random = np.random.default_rng(5)
    tree = LayerTree()
    for _ in range(300):
        tree.add(f"{n}" for n in random.integers(0, 4, random.integers(1, 6)))
    amounts = random.integers(0, 50, (len(tree), 2)).astype(np.float64)
    amounts[0] = 0
    for limit in (1, 10, 10_000):
        rows, folded = layer_rows(tree, amounts, np.arange(len(tree)), limit)
        assert np.array([row["own"] for row in rows]).sum(axis=0).tolist() == amounts.sum(axis=0).tolist()
        assert all(row["parent"] < at for at, row in enumerate(rows))
        assert folded + sum(row["kind"] == "layer" for row in rows) <= len(tree) - 1


def test_names_that_are_scopes_lie_in_them() -> None:
    names = StringTable.of(["a/b", "a/b/c", "d", "a/e"])
    code, scopes = own_scopes(names, np.array([0, 1, 2, 3, 1], np.int32))
    assert [scopes[c] for c in code.tolist()] == ["a/b", "a/b", "", "a", "a/b"]
    code, scopes = own_scopes(StringTable.of([]), np.zeros(0, np.int32))
    assert len(code) == 0


# ------------------------------------------------------------------------------------------------------ real steps


def raw(name: str) -> bytes:
    packed = (DATA / name).read_bytes()
    return lzma.decompress(packed) if name.endswith(".xz") else packed


#: The least share of the work, the input pipeline aside, that lies in a layer.
REAL = {
    "conv_costgraph_tf2.21_cpu.pb": 0.99,
    "estimator_tf2.15_cpu.pb": 0.97,
    "horovod_rank0_tf2.15_cpu.pb": 0.99,
    "while_loop_tf2.15_cpu.pb": 0.98,
    "xspace/convnet_tf2.15.xplane.pb": 0.97,
    "xspace/convnet_tf2.21.xplane.pb": 0.97,
    "xspace/transformer_tf2.21.xplane.pb.xz": 0.93,
}


@pytest.mark.parametrize("name", REAL)
def test_most_of_a_real_step_lies_in_a_layer(name: str) -> None:
    answer = Answers(raw(name), TraceContext()).layers()
    amounts = np.array([layer["own"] for layer in answer["layers"]])
    model = amounts.sum() - amounts[:, answer["phases"].index("input")].sum()
    assert amounts.sum() == pytest.approx(answer["total"])
    assert (model - answer["in_no_layer"]) / model >= REAL[name]


def test_a_real_convnet() -> None:
    table = own(Answers(raw("xspace/convnet_tf2.21.xplane.pb"), TraceContext()).layers())
    convolution = {phase for path, phases in table.items() if path.startswith("sequential_1/conv2d_1_2") for phase in phases}
    assert convolution == {"forward", "backward"}
    assert not [path for path in table if "gradient" in path or "Call" in path]


def test_what_horovod_reduces_is_communication_of_its_layer() -> None:
    answer = Answers(raw("horovod_rank0_tf2.15_cpu.pb"), TraceContext()).layers()
    reduced = {path for path, phases in own(answer).items() if "communication" in phases}
    assert {f"MatMul_{i}" for i in range(1, 30)} <= reduced


def test_memory_at_the_peak_by_layer() -> None:
    answers = Answers(raw("dense500_tf2.15_cpu.pb"), TraceContext())
    answer = answers.layers("memory")
    curve = answers.memory()["curves"][0]
    assert (answer["allocator"], answer["device"], answer["at_ns"]) == (curve["allocator"], curve["device"], curve["peak_ns"])
    assert answer["total"] == curve["peak_bytes"] == sum(sum(layer["own"]) for layer in answer["layers"])
    assert own(answer)["MatMul_499"]["variables"] > 0


def test_memory_that_a_profile_recorded() -> None:
    answers = Answers(raw("xspace/convnet_tf2.21.xplane.pb"), TraceContext())
    answer = answers.layers("memory")
    assert answer["total"] == answers.memory()["curves"][0]["peak_bytes"] == sum(sum(row["own"]) for row in answer["layers"])
    assert own(answer)["sequential_1/conv2d_1"]["forward"] > 0
    assert own(answer)[f"{IN_NO_LAYER}/{NO_KNOWN_OP}"]["variables"] > 0  # from before the profile


def test_a_trace_without_memory_has_none() -> None:
    answer = Answers(None, TraceContext(), trace=make_trace([N("a/b", "A", 0, 1)])).layers("memory")
    assert answer["layers"] == [] and answer["total"] == 0
    with pytest.raises(UnknownError, match="time or memory"):
        Answers(None, TraceContext(), trace=make_trace([N("a", "A", 0, 1)])).layers("depth")  # type: ignore[arg-type]
