"""Ops of two traces beside each other: the plain difference of two steps."""

from __future__ import annotations

from traces import N, make_trace

from tftracer.comparison.odd_ops import matters
from tftracer.comparison.two_traces import compared_ops
from tftracer.contract.trace import ComparedOp
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

MS = 1_000_000


def answers(*nodes: N) -> Answers:
    return Answers(None, TraceContext(), trace=make_trace(list(nodes)))


def rows(a: Answers, b: Answers) -> dict[str, ComparedOp]:
    return {row["key"]: row for row in compared_ops(a.ops("type"), b.ops("type"))}


def test_two_steps_alone_never_show_a_change() -> None:
    add = N("b/Add", "Add", 0, MS)
    found = rows(answers(N("a/MatMul", "MatMul", 0, 2 * MS), add), answers(N("a/MatMul", "MatMul", 0, 4 * MS), add))
    assert {key: row["status"] for key, row in found.items()} == {"MatMul": "unknown", "Add": "same"}
    assert (found["MatMul"]["total_a_ns"], found["MatMul"]["delta_ns"]) == (2 * MS, 2 * MS)


def test_an_op_that_only_one_of_the_steps_has() -> None:
    less, more = answers(N("a/MatMul", "MatMul", 0, MS)), answers(N("a/MatMul", "MatMul", 0, MS), N("c/Sum", "Sum", MS, 9 * MS))
    assert rows(less, more)["Sum"]["status"] == "appeared"
    vanished = rows(more, less)["Sum"]
    assert (vanished["status"], vanished["count_b"], vanished["node_b"]) == ("vanished", 0, -1)


def test_a_difference_matters_above_both_floors() -> None:
    assert matters(100_000, 121_000) and matters(121_000, 100_000)
    assert not matters(100_000, 119_000)  # less than 20 us
    assert not matters(1_000_000, 1_050_000)  # less than 5%
