from __future__ import annotations

from pathlib import Path

import pytest
from traces import GPU, STREAM, STREAM_ALL, N, make_trace

from tftracer.contract.trace import NodeDetail
from tftracer.errors import UnknownError
from tftracer.trace.answers import Answers
from tftracer.trace.model import NodeKind, TraceContext

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def step() -> Answers:
    return Answers((DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes(), TraceContext())


def made(nodes: list[N]) -> Answers:
    return Answers(None, TraceContext(), trace=make_trace(nodes))


def detail_of(answers: Answers, name: str) -> NodeDetail:
    trace = answers.trace
    return answers.node(next(i for i in range(trace.n) if trace.names[trace.name[i]] == name))


def test_an_op(step: Answers) -> None:
    detail = detail_of(step, "MatMul_17")
    assert (detail["op"], detail["scope"], detail["kind"]) == ("MatMul", "", NodeKind.COMPUTE)
    assert detail["label"] == "MatMul_17 = MatMul(Relu_16, MatMul_17/ReadVariableOp_S283)"
    assert {ref["name"] for ref in detail["inputs"]} == {"Relu_16", "RecvTensor"}
    assert {ref["name"] for ref in detail["consumers"]} == {"Relu_17"}
    assert detail["outputs"] == [{"slot": 0, "dtype": "float32", "shape": "[8, 64]", "bytes": 2048.0, "allocator": "cpu"}]
    assert (detail["duration_ns"], detail["delay_ns"]) == (4919.0, 1162.0)
    assert (detail["critical"], detail["slack_ns"]) == (True, step.slack[detail["node"]])
    assert 0 < detail["share_of_step"] < detail["share_of_type"] < 1


def test_a_transfer(step: Answers) -> None:
    detail = detail_of(step, "RecvTensor")
    assert detail["source"].startswith("/job:ps/")
    assert detail["destination"].startswith("/job:worker/")
    assert detail["bytes_moved"] == 4096
    assert (detail["scheduled_ns"], detail["delay_ns"]) == (None, None)
    assert [ref["name"] for ref in detail["related"]] == ["MatMul/ReadVariableOp"]
    assert detail["related"] == detail["inputs"]


def test_without_edges_the_inputs_are_those_of_the_label() -> None:
    detail = made([N("c", "MatMul", 0, 1, inputs=("a", "b:1", "^d"))]).node(0)
    assert detail["inputs"] == [{"node": -1, "name": name, "op": "", "device": ""} for name in ("a", "b")]


def test_a_launch_and_its_kernels_know_each_other() -> None:
    nodes = [
        N("a", "MatMul", 0, 5, GPU, NodeKind.LAUNCH),
        N("a", "MatMul", 7, 9, STREAM),
        N("a", "MatMul", 5, 7, STREAM),
        N("a", "MatMul", 5, 7, STREAM_ALL, NodeKind.REPEAT),
    ]
    answers = made(nodes)
    assert [ref["node"] for ref in answers.node(0)["related"]] == [2, 1]
    assert [ref["node"] for ref in answers.node(1)["related"]] == [0]


def test_an_unknown_node(step: Answers) -> None:
    for index in (-1, 370):
        with pytest.raises(UnknownError, match="0 to 369"):
            step.node(index)
        with pytest.raises(UnknownError, match="0 to 369"):
            step.neighbourhood(index)


def test_the_graph_around_a_node() -> None:
    nodes = [N(f"n{i}", "Op", 2 * i, 2 * i + 1, inputs=(f"n{i - 1}",) if i else ()) for i in range(6)]
    answers = made(nodes)
    near = answers.neighbourhood(2, depth=1)
    assert [ref["name"] for ref in near["nodes"]] == ["n2", "n1", "n3"]
    assert sorted(near["edges"]) == [[0, 2], [1, 0]]
    assert near["left_out"] == 0
    assert {ref["name"] for ref in answers.neighbourhood(2, depth=2)["nodes"]} == {"n0", "n1", "n2", "n3", "n4"}


def test_the_graph_around_a_node_with_many_consumers() -> None:
    nodes = [N("c", "Const", 0, 1)] + [N(f"n{i}", "Op", 2 + i, 3 + i, inputs=("c",)) for i in range(50)]
    near = made(nodes).neighbourhood(0, depth=1, limit=10)
    assert (len(near["nodes"]), near["left_out"]) == (10, 41)
