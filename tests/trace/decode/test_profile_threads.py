"""What other threads did beside a profiled step is drawn, and counted nowhere."""

from __future__ import annotations

from collections import Counter

import plain_protobuf
import pytest

from tftracer.trace.answers import Answers
from tftracer.trace.model import NodeKind, TraceContext

TWO_THREADS = ["two_threads_tf2.15.xplane.pb.xz", "two_threads_tf2.21.xplane.pb.xz"]
#: What the other thread runs, and the step does not (record.py).
ELSEWHERE = {"Relu", "Cumsum"}


@pytest.mark.parametrize("name", TWO_THREADS)
def test_ops_of_another_threads_calls_are_no_part_of_the_step(name: str) -> None:
    """Four products and four Relus a call there, and an eager op; three products in the step."""
    answers = Answers(plain_protobuf.content(name), TraceContext())
    trace = answers.trace
    kinds = Counter((trace.ops[trace.op[i]], int(trace.kind[i]) == NodeKind.OUTSIDE) for i in range(trace.n))
    assert all(kinds[op, True] > 0 and kinds[op, False] == 0 for op in ELSEWHERE)
    assert (kinds["_MklMatMul", False], kinds["Tanh", False], kinds["Tanh", True]) == (3, 3, 0)
    assert kinds["_MklMatMul", True] == kinds["Relu", True]
    assert not {row["key"] for row in answers.ops("type")["rows"]} & ELSEWHERE
    assert {step["op"] for step in answers.critical_path()["steps"]}.isdisjoint(ELSEWHERE)
    assert answers.verdict()["step_ns"] == answers.budget()["step_ns"] == trace.duration_ns
    (lane,) = [lane for lane in answers.timeline()["lanes"] if lane["kind"] == "outside"]
    assert lane["slices"] == sum(count for (_, outside), count in kinds.items() if outside)
    assert sum(lane["slices"] for lane in answers.timeline()["lanes"]) == trace.n


def test_what_ran_behind_the_call_is_drawn_and_counted_nowhere() -> None:
    """Keras looks at the next batch when the step is over: two eager ops."""
    answers = Answers(plain_protobuf.content("convnet_tf2.21.xplane.pb"), TraceContext())
    trace = answers.trace
    behind = [i for i in range(trace.n) if trace.kind[i] == NodeKind.OUTSIDE]
    assert {trace.ops[trace.op[i]] for i in behind} == {"OptionalHasValue", "OptionalGetValue"}
    assert trace.duration_ns == max(int(trace.end[i]) for i in range(trace.n) if i not in behind)
    assert all(int(trace.start[i]) > trace.duration_ns for i in behind)
    assert not {row["key"] for row in answers.ops("type")["rows"]} & {"OptionalHasValue", "OptionalGetValue"}
    assert answers.budget()["whole"]["busy_ns"] <= trace.duration_ns
    (lane,) = [lane for lane in answers.timeline()["lanes"] if lane["kind"] == "outside"]
    assert (lane["title"], lane["slices"], lane["collapsed"]) == ("CPU outside the step", 2, True)
    assert answers.node(behind[0])["slack_ns"] is None


@pytest.mark.parametrize("name", ["other_function_tf2.21.xplane.pb.gz", "other_function_without_turns_tf2.21.xplane.pb.gz"])
def test_ops_of_a_call_of_another_thread_whose_turn_had_not_ended_are_not_the_steps(name: str) -> None:
    """A judge read "One op, ranking0/TopKV2 on the CPU, runs for 6.28 ms: 68% of the step": it ran on another thread."""
    trace = Answers(plain_protobuf.content(name), TraceContext()).trace
    ranks = [name.startswith("ranking") for name in trace.names.texts(trace.name)]
    assert sum(ranks) >= 6 and not trace.counted[ranks].any()
    assert trace.counted.sum() == 22


@pytest.mark.parametrize(("name", "of_others"), [("known_by_names", 2), ("began_within", 13)])
def test_ops_that_the_steps_functions_do_not_have_are_of_another_call(name: str, of_others: int) -> None:
    """The executor's turn of a call of ``evaluate`` on another thread had not ended when the profile was stopped. A judge read
    "The longest op, matmul_10 (_MklMatMul), runs for 62% of the step": ``train_step`` has no such op."""
    trace = Answers(plain_protobuf.content(f"other_function_{name}_tf2.15.xplane.pb.gz"), TraceContext()).trace
    kinds = {trace.names[trace.name[i]] for i in range(trace.n) if trace.counted[i]}
    assert "Tanh" not in kinds and "matmul_10" not in kinds
    assert int((trace.kind == NodeKind.OUTSIDE).sum()) == of_others


def test_an_op_of_the_step_whose_turn_ended_too_late_for_the_profile_is_the_steps() -> None:
    trace = Answers(plain_protobuf.content("last_turn_missing_tf2.21.xplane.pb.gz"), TraceContext()).trace
    (node,) = [i for i in range(trace.n) if trace.ops[trace.op[i]] == "DecodeCompressed"]
    assert trace.counted[node] and trace.end[node] - trace.start[node] > 6_000_000
