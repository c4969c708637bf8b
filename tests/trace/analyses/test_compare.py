"""Two traces beside each other: what is said of their difference."""

from __future__ import annotations

from traces import N, make_trace

from tftracer.trace.analyses.compare import LIMIT, compare
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

MS = 1_000_000


def answers(matmul_ns: int) -> Answers:
    nodes = [N("a/MatMul", "MatMul", 0, matmul_ns), N("b/Add", "Add", matmul_ns, matmul_ns + MS)]
    return Answers(None, TraceContext(), trace=make_trace(nodes))


def test_a_longer_step_is_said_with_its_op_and_with_what_two_steps_cannot_tell() -> None:
    summary = compare(answers(2 * MS), answers(4 * MS))["summary"]
    assert "longer" in summary and "MatMul changed" in summary and summary.endswith(LIMIT)


def test_steps_that_are_as_long_are_said_to_be_so() -> None:
    comparison = compare(answers(2 * MS), answers(2 * MS + 1000))
    assert "about as long" in comparison["summary"] and LIMIT not in comparison["summary"]
    assert {row["status"] for row in comparison["rows"]} == {"same"}
