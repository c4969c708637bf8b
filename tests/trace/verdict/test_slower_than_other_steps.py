"""A traced step beside the other steps of its run: what was slow, and whether tracing made it so."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from traces import N, make_trace

from tftracer.trace.model import CpuUse, NodeKind, TraceContext
from tftracer.trace.verdict.verdict import verdict

MS = 1_000_000


def compared(context: TraceContext, nodes: list[N] | None = None) -> Any:
    """What is said after the rules' sentences; None if nothing is."""
    trace = make_trace(nodes or [N(f"m{i}", "MatMul", i * MS, (i + 1) * MS) for i in range(10)])
    *_, last = verdict(trace, context, [])["sentences"]
    return last if last["code"] in ("tracing_cost", "slow_step") else None


def test_a_pause_while_the_trace_before_was_collected_is_no_pause_of_the_script() -> None:
    def codes(follows_traced: bool) -> list[str]:
        context = TraceContext(
            step_s=0.010, median_s=0.010, before_step_s=0.2, between_steps_s=0.0001, follows_traced=follows_traced
        )
        nodes = [N(f"m{i}", "MatMul", i * MS, (i + 1) * MS) for i in range(10)]
        return [sentence["code"] for sentence in verdict(make_trace(nodes), context, [])["sentences"]]

    assert codes(False) == ["between_steps"] and codes(True) == ["balanced"]


def test_a_step_as_long_as_usual_is_not_compared() -> None:
    assert compared(TraceContext(step_s=0.010, median_s=0.009)) is None
    assert compared(TraceContext(step_s=0.0226, median_s=0.0121, run_median_s=0.0198)) is None  # early steps were short
    assert compared(TraceContext(step_s=0.010)) is None and compared(TraceContext(median_s=0.010)) is None


@pytest.mark.parametrize(
    ("others", "words"),
    [(1, "Another traced step of the run took 9 ms"), (4, "The fastest of 4 other traced steps of the run took 9 ms")],
)
def test_tracing_is_the_reason_where_every_traced_step_is_slow(others: int, words: str) -> None:
    nodes = [N(f"m{i}", "MatMul", i * MS // 2, (i + 1) * MS // 2) for i in range(10)]  # 5 of the 10 ms
    sentence = compared(TraceContext(step_s=0.010, median_s=0.0055, other_traced=others, fastest_traced_s=0.009), nodes)
    assert (
        sentence["code"] == "tracing_cost"
        and words in sentence["text"]
        and "tracing probably costs the difference" in sentence["text"]
    )
    assert sentence["share"] == pytest.approx(0.45)


BUSY = CpuUse(wall_s=0.107, cpu_s=0.04, job_cpu_s=0.05, run_queue_s=0.15, busiest_thread_s=0.04, cpus=2.0)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (
            CpuUse(),
            "tracing may cost it in another way (its threads take CPU time), or all of them were slow for another reason.",
        ),
        (BUSY, "on the busy machine they probably waited longer, for a CPU"),
    ],
)
def test_recording_a_few_ops_does_not_double_a_long_step(use: CpuUse, words: str) -> None:
    """A sort of 54 ms took 107 ms in all traces, as other programs had the CPUs: recording two ops costs far less. Where nothing
    else had them, tracing is not ruled out: exactly the five traced steps of 500 took 13 ms instead of 2 ms."""
    nodes = [N("sort", "TopKV2", 0, 105 * MS), N("assign", "AssignVariableOp", 105 * MS, 107 * MS)]
    context = TraceContext(step_s=0.107, median_s=0.054, other_traced=3, fastest_traced_s=0.106, cpu_use=use)
    sentence = compared(context, nodes)
    assert sentence["code"] == "slow_step" and words in sentence["text"]


def test_a_product_that_takes_longer_itself_is_not_made_so_by_recording_it() -> None:
    """A product of 3.2 ms took 6 ms in all traces, while other programs had CPUs. Recording 8 ops costs some microseconds; what
    else tracing costs passes before the first op or after the last."""
    nodes = [
        N("product", "MatMul", 0, 6 * MS),
        *(N(f"r{i}", "Sum", 6 * MS + i * 10_000, 6 * MS + i * 10_000 + 9_000) for i in range(7)),
    ]
    sentence = compared(TraceContext(step_s=0.0064, median_s=0.0033, other_traced=2, fastest_traced_s=0.0064), nodes)
    assert sentence["code"] == "slow_step" and "recording 8 events takes less than the difference" in sentence["text"]


def test_tracing_may_cost_what_many_ops_take_longer() -> None:
    """58,000 ops of a loop: 14 ms untraced, 97 ms traced."""
    nodes = [N(f"o{i % 40}", "Identity", i * 1_600, i * 1_600 + 200) for i in range(58_000)]
    sentence = compared(TraceContext(step_s=0.097, median_s=0.014, other_traced=3, fastest_traced_s=0.097), nodes)
    assert sentence["code"] == "tracing_cost"


def test_what_follows_the_ops_of_a_session_may_be_collecting_the_trace() -> None:
    context = TraceContext(step_s=0.060, median_s=0.020, other_traced=3, fastest_traced_s=0.058)
    assert compared(context, [N("m", "MatMul", 0, 19 * MS)])["code"] == "tracing_cost"


def test_what_is_fed_to_a_session_before_its_first_op_is_not_the_collecting_of_its_trace() -> None:
    """10 ms of ops began 500 ms after the call."""
    trace = make_trace([N(f"m{i}", "MatMul", i * MS, (i + 1) * MS) for i in range(10)])
    trace.origin_ns = 10**18
    for began_at, code in ((1e9 - 0.5, "slow_step"), (1e9, "tracing_cost")):
        context = TraceContext(step_s=0.510, median_s=0.010, other_traced=2, fastest_traced_s=0.5, began_at=began_at)
        assert verdict(trace, context, [])["sentences"][-1]["code"] == code


def test_a_step_a_little_slower_than_a_fast_traced_one_is_not_blamed_on_tracing() -> None:
    sentence = compared(TraceContext(step_s=0.016, median_s=0.010, other_traced=2, fastest_traced_s=0.013))
    assert (
        sentence["code"] == "slow_step"
        and "Tracing may be the reason, or something else slowed the step. The fastest" in sentence["text"]
    )


def test_one_slower_traced_step_does_not_show_what_tracing_cannot_cost() -> None:
    """Recording 1,600 ops of a profile makes 0.28 ms 2.5; beginning the trace may cost this one 5 more, or the other one 40."""
    nodes = [N(f"a{i}", "AddV2", i * 1_300, i * 1_300 + 200) for i in range(1_600)]
    context = TraceContext(step_s=0.0074, median_s=0.00028, other_traced=1, fastest_traced_s=0.0025, trace_level="profile")
    of_this = compared(context, nodes)
    assert of_this["code"] == "tracing_cost" and "probably costs a part of the difference, or all of it" in of_this["text"]
    other = dataclasses.replace(context, step_s=0.0025, fastest_traced_s=0.045)
    assert "tracing probably costs the difference" in compared(other, nodes)["text"]


def test_where_tracing_may_cost_the_difference_a_step_was_only_probably_slow_by_itself() -> None:
    nodes = [N("m", "MatMul", 0, MS // 10)]
    context = TraceContext(step_s=0.0017, median_s=0.0005, other_traced=1, fastest_traced_s=0.00056)
    context.steps_around_s = [0.0005, 0.0004, 0.0006]
    sentence = compared(context, nodes)
    assert "tracing usually costs less than the difference: this step was probably slow by itself (" in sentence["text"]


@pytest.mark.parametrize("others", [1, 4])
def test_tracing_is_not_blamed_for_a_step_that_alone_is_slow(others: int) -> None:
    """51 times the median, where the other traced steps took as long as untraced ones."""
    sentence = compared(TraceContext(step_s=0.510, median_s=0.010, other_traced=others, fastest_traced_s=0.0102))
    assert (
        sentence["code"] == "slow_step" and "51 times" in sentence["text"] and "tracing does not explain it" in sentence["text"]
    )


def test_tracing_is_not_blamed_for_what_a_rule_explains() -> None:
    """The first traced step of its run: there are no others, and one op alone takes longer than whole steps do."""
    nodes = [N("read", "IteratorGetNext", 0, 500 * MS, kind=NodeKind.INPUT), N("m", "MatMul", 500 * MS, 510 * MS)]
    sentence = compared(TraceContext(step_s=0.510, median_s=0.010), nodes)
    assert sentence["code"] == "slow_step" and "not in being traced" in sentence["text"]


def test_without_an_explanation_both_are_possible() -> None:
    sentence = compared(TraceContext(step_s=0.510, median_s=0.010))
    assert sentence["code"] == "slow_step" and "Tracing may be the reason, or" in sentence["text"]
    assert "Trace more steps" in sentence["advice"] and "first step" not in sentence["text"]
    assert "first step of its run" in compared(TraceContext(step=1, step_s=0.510, median_s=0.010))["text"]


def test_time_outside_the_ops_is_said() -> None:
    """The ops took 10 ms of the 510: the rest is TensorFlow's own, tracing included."""
    sentence = compared(TraceContext(step_s=0.510, median_s=0.010))
    assert "500 ms passed before the first op or after the last" in sentence["text"]
    nodes = [N(f"m{i}", "MatMul", i * 50 * MS, (i + 1) * 50 * MS) for i in range(10)]
    assert "before the first op" not in compared(TraceContext(step_s=0.510, median_s=0.010), nodes)["text"]


def test_a_cause_that_every_step_has_explains_nothing() -> None:
    """Half of the usual step is input, too: the traced one is slow for another reason."""
    nodes = [N("read", "IteratorGetNext", 0, 10 * MS, kind=NodeKind.INPUT), N("m", "MatMul", 10 * MS, 12 * MS)]
    sentence = compared(TraceContext(step_s=0.040, median_s=0.012), nodes)
    assert "Tracing may be the reason" in sentence["text"]


def test_on_a_busy_machine_a_step_was_not_slow_by_itself() -> None:
    nodes = [N(f"m{i}", "MatMul", i * MS, (i + 1) * MS) for i in range(10)]
    for use, words in (
        (CpuUse(), "this step was slow by itself (the untraced steps around it took 9 ms, as their median)."),
        (BUSY, "this step had more work than they, or it waited longer for a CPU on the busy machine"),
    ):
        sentence = compared(
            TraceContext(
                step_s=0.100, median_s=0.009, other_traced=2, fastest_traced_s=0.010, cpu_use=use, steps_around_s=[0.009] * 4
            ),
            nodes,
        )
        assert sentence["code"] == "slow_step" and words in sentence["text"]


@pytest.mark.parametrize(("count", "is_known"), [(500, True), (12_000, False)])
def test_a_step_that_recorded_far_more_than_others_is_not_said_to_be_slow_by_itself(count: int, is_known: bool) -> None:
    """Of an input pipeline with small elements one trace has ten times the events of the next: recording them takes the time."""
    nodes = [N(f"m{i}", "MatMul", i * 1_000, (i + 1) * 1_000) for i in range(count)]
    context = TraceContext(step_s=0.067, median_s=0.010, other_traced=2, fastest_traced_s=0.012, trace_level="profile")
    trace = make_trace(nodes)
    trace.source = "xspace"
    sentence = verdict(trace, context, [])["sentences"][-1]
    assert ("so tracing does not explain it." in sentence["text"]) == is_known


@pytest.mark.parametrize(
    ("around_s", "words"),
    [
        (
            [0.119, 0.149, 0.286, 0.525, 0.293, 0.210, 0.062, 0.080],
            "8 untraced steps around it took longer than usual, too (180 ms",
        ),
        ([0.043, 0.036, 0.030, 0.044, 0.302, 0.072], "the machine or the loop was slower then. This step was slower still."),
        (
            [0.019, 0.020, 0.021, 0.300],
            "slow by itself (the untraced steps around it took 20.5 ms, as their median).",
        ),
        ([], "so tracing does not explain it."),
    ],
)
def test_a_step_between_slow_untraced_ones_was_not_slow_by_itself(around_s: list[float], words: str) -> None:
    """A judge: "this step was slow by itself" of a step whose untraced neighbours took 286, 525, 293 and 210 ms."""
    context = TraceContext(
        step_s=0.228, median_s=0.020, other_traced=2, fastest_traced_s=0.0209, steps_around_s=around_s, run_median_s=0.020
    )
    sentence = compared(context)
    assert sentence["code"] == "slow_step" and words in sentence["text"]
    assert ("by itself" in sentence["text"]) == (around_s[:1] == [0.019])
