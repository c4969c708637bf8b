"""What a training does beside its steps is told with the trace of one of them."""

from __future__ import annotations

import pytest
from traces import N, make_trace

from tftracer.contract.ledger import LedgerKind
from tftracer.trace.model import SlowTime, TraceContext
from tftracer.trace.verdict.verdict import verdict

MS = 1_000_000


@pytest.mark.parametrize(("share", "first"), [(0.6, "beside_steps"), (0.2, "one_op")])
def test_it_comes_by_its_time_beside_what_the_trace_shows(share: float, first: str) -> None:
    """A product is 94% of the step, and checkpoints are 60% of the training's time."""
    nodes = [N("m", "MatMul", 0, 15 * MS), N("a", "AddV2", 15 * MS, 16 * MS)]
    context = TraceContext(step_s=0.016, median_s=0.016, beside_share=share, beside_text="Checkpoints and summaries (save)")
    found = verdict(make_trace(nodes), context, [])["sentences"]
    assert found[0]["code"] == first and {"beside_steps", "one_op"} <= {each["code"] for each in found}
    (told,) = (each["text"] for each in found if each["code"] == "beside_steps")
    assert told.startswith(f"Checkpoints and summaries (save) took {share:.0%} of the time since the training's first step")


def test_slow_steps_of_known_cause_are_told_with_a_trace_that_shows_none_of_them() -> None:
    """A judge: 95% of the training's time was in steps that waited for Python's lock; a trace of a short step said nothing."""
    nodes = [N("m", "MatMul", 0, 2 * MS)]
    context = TraceContext(
        step_s=0.002, median_s=0.002, beside_share=0.4, beside_kind="slow", beside_text="lock: thread publisher"
    )
    (told,) = (s["text"] for s in verdict(make_trace(nodes), context, [])["sentences"] if s["code"] == "beside_steps")
    assert told.startswith("Slow steps of known cause, mostly lock: thread publisher, took 40% of the time")
    slow: SlowTime = {
        "inside": True,
        "duration_s": 0.1,
        "usual_s": 0.002,
        "cause": "lock",
        "without_cpu": "",
        "text": "",
        "lines": "",
    }
    context.slow_times.append(slow)
    assert "beside_steps" not in {each["code"] for each in verdict(make_trace(nodes), context, [])["sentences"]}


def test_without_it_nothing_is_told() -> None:
    assert "beside_steps" not in {
        each["code"] for each in verdict(make_trace([N("m", "MatMul", 0, MS)]), TraceContext(), [])["sentences"]
    }


def test_the_trace_of_a_checkpoint_itself_is_not_said_to_lack_it() -> None:
    context = TraceContext(step_s=0.016, median_s=0.016, beside_share=0.9, beside_text="Checkpoints and summaries (save)")
    nodes = [N("s", "SaveV2", 0, 15 * MS), N("m", "MergeV2Checkpoints", 15 * MS, 16 * MS)]
    assert "beside_steps" not in {each["code"] for each in verdict(make_trace(nodes), context, [])["sentences"]}


@pytest.mark.parametrize(("kind", "alone"), [("evaluation", " without the evaluation"), ("checkpoints", "")])
def test_a_share_between_steps_says_that_it_leaves_out_an_evaluation(kind: LedgerKind, alone: str) -> None:
    """A judge read "31% of the time from step to step" where an evaluation took 74%."""
    context = TraceContext(median_s=0.01, between_steps_s=0.01, beside_share=0.7, beside_kind=kind)
    found = verdict(make_trace([N("m", "MatMul", 0, 10 * MS)]), context, [])["sentences"]
    (told,) = (each["text"] for each in found if each["code"] == "between_steps")
    assert told.startswith(
        f"Between two steps 10 ms (median) pass outside session.run, 50% of the time from step to step{alone}."
    )


def test_a_share_between_steps_is_of_the_whole_turn_with_steps_of_other_runs_in_it() -> None:
    """A judge: "64% of the time from step to step" where a checkpoint's session.run was in each turn: 31%. Checkpoints, with 59%,
    came after it."""
    context = TraceContext(step_s=0.035, median_s=0.035, between_steps_s=0.068, turn_s=0.220)
    context.before_step_s, context.this_turn_s = 0.362, 0.473
    context.beside_share, context.beside_text = 0.59, "Checkpoints and summaries (save)"
    found = verdict(make_trace([N("m", "MatMul", 0, 15 * MS)]), context, [])["sentences"]
    assert [each["code"] for each in found][:2] == ["beside_steps", "between_steps"]
    assert "68 ms (median) pass outside session.run, 31% of the time from step to step" in found[1]["text"]
    context.between_steps_s = 0.0001  # usually nothing passes between them; before this step other runs took 76 ms, too
    (told,) = (
        each
        for each in verdict(make_trace([N("m", "MatMul", 0, 15 * MS)]), context, [])["sentences"]
        if each["code"] == "between_steps"
    )
    assert "77% of the time from the end of the previous step to the end of this one" in told["text"]
