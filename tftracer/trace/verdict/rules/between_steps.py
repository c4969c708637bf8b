"""Time between two steps."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.model import TraceContext
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.rules.cause_from_watch import ADVICE, slow_before
from tftracer.trace.verdict.rules.input_pipeline import seen_before
from tftracer.trace.verdict.step import ONLY_HERE, Step, sentence
from tftracer.trace.verdict.time_around_ops import GC_NAMED

BETWEEN_SHARE = 0.20  # minimal part of the time from step to step that passes outside of steps
BETWEEN_S = 0.001  # minimal time outside of steps: less is Python's own cost of a call
LONGER = 3.0  # a time before the step that is this many times the usual one is a delay of this step alone
USUAL_SHARE = "usual_share"  # a key of the sentence's ``numbers``: this much of each turn of the loop passes between steps
SAMPLED = "Sampled"  # first word of a text about sampled lines
#: Minimal parts of the time between steps in which the loop waits for tf.data: for the wait to be named, to decide the advice,
#: and to explain all of the time.
INPUT_NAMED, INPUT_MAIN, INPUT_ALL = 0.10, 0.50, 0.90
#: Minimal part of the time between steps that Python's garbage collections take, to decide the advice.
GC_MAIN = 0.50

LOOP = (
    "Time the parts of the training loop (time.perf_counter). If it prepares batches, make them with tf.data (parallel map, "
    "prefetch), or prepare the next ones in a thread while the step runs. Write checkpoints and logs less often."
)
INPUT = (
    "Let the input pipeline work ahead of the step, which helps as far as the machine has idle cores: end it with "
    "prefetch(tf.data.AUTOTUNE), and use "
    "map(num_parallel_calls=tf.data.AUTOTUNE), cache, interleave over files. To see which stage of it takes the time, get the "
    'element within the step: with server.step("train"): batch = next(iterator); and what follows.'
)


def between_steps(step: Step) -> Sentence | None:
    """Name the time between steps. The trace does not show what the script does then; sampled lines may."""
    context = step.context
    usual_s, before_s = context.between_steps_s, context.before_step_s
    if context.follows_traced or slow_before(step) or _did_not_wait(context):
        before_s = None
    # A slow call may have gone on after its last op.
    inside_s = max(step.whole_ns / 1e9, *(slow["duration_s"] for slow in context.slow_times if slow["inside"]), 0.0)
    usual_share = _share_between(usual_s, _usual_turn_s(step, inside_s))
    is_usual = usual_share > 0
    share = _share_between(usual_s, max((usual_s or 0.0) + inside_s, context.turn_s or 0.0))
    if before_s is not None:
        share = _share_between(before_s, before_s + inside_s + _of_other_runs_s(context, before_s))
    is_slow = any(not slow["inside"] for slow in context.slow_times)  # a slow turn of the loop whose cause is unknown
    is_longer = before_s is not None and (usual_s is None or before_s >= LONGER * usual_s)
    if not share or not (is_usual or is_longer):
        return None
    measured = {"between_steps_ns": usual_s, "before_step_ns": before_s}
    numbers = {name: seconds * 1e9 for name, seconds in measured.items() if seconds is not None}
    text = _before_every_step(step, numbers, usual_share) if is_usual else _before_this_step(step, numbers, share)
    whole_s, input_s = (usual_s, context.between_input_s) if is_usual else (before_s, context.before_input_s)
    input_share = (input_s or 0.0) / whole_s if whole_s else 0.0
    if input_share >= INPUT_NAMED:
        text += f" For {duration((input_s or 0.0) * 1e9)} of that the loop waits for the next element of a tf.data dataset."
        text += seen_before(context)
        numbers["input_ns"] = (input_s or 0.0) * 1e9
    collects = context.sampled_gc if is_usual and not context.turn_lines else 0.0
    if collects >= GC_NAMED:
        text += f" While these times were sampled, Python's garbage collections took {percent(collects)} of them."
    advice = ADVICE["gc"] if collects >= GC_MAIN else LOOP
    return sentence(
        "between_steps",
        text if input_share >= INPUT_ALL else f"{text} {_lines(step, is_usual)}",
        (context.input_advice or INPUT) if input_share >= INPUT_MAIN else advice,
        usual_share or share,
        {**numbers, **({USUAL_SHARE: usual_share} if is_usual else {} if is_slow else {ONLY_HERE: 1.0})},
        {"nodes": []},
    )


def _did_not_wait(context: TraceContext) -> bool:
    """Return whether the loop usually waits for its dataset, and did not wait before this step: while TensorFlow starts a trace,
    the input pipeline works ahead."""
    usual_s, before_s = context.between_steps_s or 0.0, context.before_step_s
    return before_s is not None and before_s < usual_s and (context.between_input_s or 0.0) >= INPUT_MAIN * usual_s


def _usual_turn_s(step: Step, inside_s: float) -> float:
    """Return the median time from the end of a step to the end of the run's next one, with the steps of other runs in between."""
    context = step.context
    return max((context.between_steps_s or 0.0) + (context.median_s or inside_s), context.turn_s or 0.0)


def _of_other_runs_s(context: TraceContext, before_s: float) -> float:
    """Return the time before this step, since the run's previous one, in which the loop was in steps of other runs."""
    return max((context.this_turn_s or 0.0) - before_s - (context.step_s or 0.0), 0.0)


def _share_between(between_s: float | None, turn_s: float) -> float:
    """Return the share of ``between_s`` in ``turn_s``, the time from the end of a step to the end of the run's next one; 0 below
    the thresholds."""
    if between_s is None or between_s < BETWEEN_S:
        return 0.0
    share = between_s / turn_s
    return share if share >= BETWEEN_SHARE else 0.0


def _before_every_step(step: Step, numbers: dict[str, float], share: float) -> str:
    usual_ns = numbers["between_steps_ns"]
    here = f"; before this step it was {duration(numbers['before_step_ns'])}" if "before_step_ns" in numbers else ""
    passed = f"Between two steps {duration(usual_ns)} (median) pass{_outside(step)}"
    alone = " without the evaluation" if step.context.beside_kind == "evaluation" else ""
    return f"{passed}, {percent(share)} of the time from step to step{alone}{here}."


def _before_this_step(step: Step, numbers: dict[str, float], share: float) -> str:
    usual = f" (the median is {duration(numbers['between_steps_ns'])})" if "between_steps_ns" in numbers else ""
    return (
        f"Before this step {duration(numbers['before_step_ns'])} passed{_outside(step)}{usual}, {percent(share)} of the time "
        "from the end of the previous step to the end of this one."
    )


def _outside(step: Step) -> str:
    return " outside session.run" if step.is_session else ""


def _lines(step: Step, is_usual: bool) -> str:
    """Name the lines that the slow-step watch sampled between all steps (``is_usual``) or before this one; say if it has none."""
    before = next((slow["lines"] for slow in step.context.slow_times if not slow["inside"]), "")
    between = step.context.between_lines
    lines = between or before if is_usual else before
    if lines:
        when = "before this step" if lines == before else "between steps"
        return f"{SAMPLED} {when}: {lines}."
    tracer = "" if is_usual else " Beginning to trace this step may be a part of it."
    if between:
        return f"Which lines ran before this step was not sampled. {SAMPLED} between other steps: {between}.{tracer}"
    return (
        f"Which lines run then was not sampled. The trace does not show what the script does: maybe {_activities(step)}.{tracer}"
    )


def _activities(step: Step) -> str:
    """List possible activities between steps; a run that feeds nothing prepares no feed_dict."""
    always = "writing a checkpoint or logs, or waiting"
    if step.trace.source == "xspace":
        return f"preparing the next batch, {always}"
    if step.context.feeds == 0:
        return f"{always} (it feeds nothing to this run)"
    return f"preparing what it feeds, {always}"
