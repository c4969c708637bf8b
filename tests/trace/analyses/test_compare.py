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
    assert "longer" in summary and "MatMul changed most of all ops: by 2 ms. " in summary and summary.endswith(LIMIT)


def test_ops_that_run_at_the_same_time_have_no_share_of_the_steps_change() -> None:
    def two(length: int) -> Answers:
        nodes = [N("a/MatMul", "MatMul", 0, length), N("b/MatMul", "MatMul", 0, length)]
        return Answers(None, TraceContext(), trace=make_trace(nodes))

    summary = compare(two(2 * MS), two(4 * MS))["summary"]
    assert "by 4 ms over its 2 executions, which may run at the same time." in summary


def test_an_op_that_only_one_of_the_steps_has() -> None:
    more = Answers(
        None, TraceContext(), trace=make_trace([N("a/MatMul", "MatMul", 0, 2 * MS), N("c/Sum", "Sum", 2 * MS, 9 * MS)])
    )
    assert "Of the ops, Sum appeared: 7 ms." in compare(answers(2 * MS), more)["summary"]
    assert "Of the ops, Sum vanished: it took 7 ms." in compare(more, answers(2 * MS))["summary"]


def test_steps_that_are_as_long_are_said_to_be_so() -> None:
    comparison = compare(answers(2 * MS), answers(2 * MS + 1000))
    assert "about as long" in comparison["summary"] and LIMIT not in comparison["summary"]
    assert {row["status"] for row in comparison["rows"]} == {"same"}
