"""Compare the traced step with the other steps of its run: was it slower or far shorter than usual? Did tracing make it slower?

The step is compared with the median untraced step before it, and with the run's other traced steps. Tracing is named as the
reason only if every traced step took longer than untraced ones. If only this one did, it was slow by itself, unless the untraced
steps just before and after it were slow, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tftracer.contract.trace import Sentence
from tftracer.trace.model import DeviceKind
from tftracer.trace.units import counted, duration
from tftracer.trace.verdict.step import Step, sentence
from tftracer.trace.verdict.time_around_ops import (
    HOST_OP_NS,
    SLOW_FACTOR,
    START_NS,
    lock_holder_text,
    longest_median_s,
    sampled_lines,
    slow_around_s,
)

SHORT_FACTOR, SHORT_S = 3.0, 0.005  # a step is called short if usual ones take so many times as long, and so much longer
EXPLAINED_SHARE = 0.5  # minimal part of the excess over the usual step, for a cause to explain it
OP_NS = 20_000  # maximal cost of recording an op, in RunMetadata and on a GPU
MANY_OPS = 10_000  # with this many ops, their number may vary by step: an input pipeline works ahead in some steps only

#: Codes of sentences that name something that ran for long; without tiny_ops, because tracing makes tiny ops longer.
EXPLAINING = frozenset(("input_bound", "python_function", "one_op", "communication_bound", "copies", "memory"))

OTHER_TIME = "Trace a step at another time: what it shows may not hold for usual steps."
COMPARE = "Compare it with another traced step of the run to see which ops took longer."


def short_step(step: Step) -> Sentence | None:
    """Tell that the step was far shorter than usual ones, so that the trace does not show what these spend their time in."""
    took_s, usual_s = step.context.step_s, longest_median_s(step.context)
    if not took_s or usual_s < SHORT_FACTOR * took_s or usual_s - took_s < SHORT_S:
        return None
    holder = lock_holder_text(step.context)
    lock = f" {holder}." if holder else ""
    return sentence(
        "short_step",
        f"This step took {_seconds(took_s)}, a usual step of the run {_seconds(usual_s)}: most of what usual steps spend their "
        f"time in is not in this trace.{lock}{sampled_lines(step.context)}",
        "Trace another step, or several in a row.",
        1 - took_s / usual_s,
        {"traced_ns": took_s * 1e9, "usual_step_ns": usual_s * 1e9},
        {"nodes": []},
    )


def other_steps(step: Step, sentences: Sequence[Sentence]) -> Sentence | None:
    """Compare a step that took longer than untraced ones; None for other steps. ``sentences``: those of the rules, ranked."""
    took_s, usual_s, fastest = step.context.step_s, step.context.median_s, step.context.fastest_traced_s
    if not took_s or not usual_s or took_s < SLOW_FACTOR * longest_median_s(step.context):
        return None
    lengths = f"{_seconds(took_s)} instead of {_seconds(usual_s)}"
    slower = f"This step took {_factor(took_s / usual_s)} times as long as the run's median untraced step until then ({lengths})."
    all_slow = fastest is not None and fastest >= SLOW_FACTOR * usual_s
    if slow_around_s(step.context):
        code, advice, text = "slow_step", OTHER_TIME, f"{slower} {_slow_around(step, took_s)}"
    elif fastest is not None and all_slow and not _tracing_may_explain(step, min(fastest, took_s), usual_s):
        code, advice = "slow_step", OTHER_TIME
        text = f"{slower} {_other_traced(step, fastest)}, but recording {counted(step.trace.n, 'event')} takes less than the "
        text += f"difference: {_why_all_are_slow(sentences)}."
    elif fastest is not None and all_slow and _tracing_may_explain(step, took_s, usual_s):
        code, advice = "tracing_cost", "Compare shares, not times."
        costs = "and the busy machine probably cost" if _is_busy(sentences) else "probably costs"
        how_much = "a part of the difference, or all of it" if took_s >= SLOW_FACTOR * fastest else "the difference"
        text = (
            f"{slower} {_other_traced(step, fastest)}: tracing {costs} {how_much}. It makes short ops look longer than they are."
        )
    elif fastest is not None and took_s >= SLOW_FACTOR * fastest and not _recording_may_explain(step, took_s, usual_s):
        code, advice = "slow_step", COMPARE
        may_vary = (took_s - fastest) * 1e9 <= START_NS + _recording_ns(step)
        reason = "and tracing usually costs less than the difference" if may_vary else "so tracing does not explain it"
        text = (
            f"{slower} {_other_traced(step, fastest)}, {reason}{_why_only_this_is_slow(step, sentences, 'probably ' * may_vary)}."
        )
    elif _is_explained(step, sentences, took_s, usual_s) and not _recording_may_explain(step, took_s, usual_s):
        code, advice = "slow_step", COMPARE
        text = f"{slower} Most of the difference is in what the first sentence names, not in being traced."
    else:
        code, text = "slow_step", f"{slower} {_tracing_or_slow(step, took_s, usual_s)}"
        advice = "Trace more steps of the run. If all take as long, tracing costs that much: then compare shares, not times."
    measured = {"traced_ns": took_s, "median_ns": usual_s, "other_traced_ns": fastest}
    numbers = {name: seconds * 1e9 for name, seconds in measured.items() if seconds is not None}
    return sentence(code, text, advice, 1 - usual_s / took_s, numbers, {"nodes": []})


def _tracing_may_explain(step: Step, took_s: float, usual_s: float) -> bool:
    """Tell whether recording the ops, starting the trace and collecting it may explain all of the slowness. TensorFlow collects a
    session's trace after the step's last op, a function's after its call. Only recording affects the time from the first op to
    the last."""
    began_at = step.context.began_at
    before = max(step.trace.origin_ns - began_at * 1e9, 0.0) if began_at and step.trace.origin_ns > 0 else 0.0
    collecting = took_s * 1e9 - before - step.trace.duration_ns if step.is_session else 0.0
    outside = max((step.context.step_s or took_s) * 1e9 - step.trace.duration_ns, 0.0)
    return took_s * 1e9 - _recording_ns(step) - min(START_NS + max(collecting, 0.0), outside) < SLOW_FACTOR * usual_s * 1e9


def _recording_ns(step: Step) -> int:
    """Return the maximal cost of recording the trace's ops."""
    on_host = not step.is_session and not any(group.kind is DeviceKind.GPU for group in step.activities.groups)
    return (HOST_OP_NS if on_host else OP_NS) * step.trace.n


def _recording_may_explain(step: Step, took_s: float, usual_s: float) -> bool:
    """Tell whether recording many ops may explain the difference: other traced steps may have fewer ops, mostly of tf.data."""
    return step.trace.n >= MANY_OPS and (took_s - usual_s) * 1e9 <= _recording_ns(step)


def _why_all_are_slow(sentences: Sequence[Sentence]) -> str:
    """Say why all traced steps may be slow although few ops are recorded. A thread that has just begun a trace has used up its
    turn on the CPU, so on a busy machine the step waits for the next turn. The profiler's threads and cold caches slow ops, too.
    """
    if _is_busy(sentences):
        return "on the busy machine they probably waited longer, for a CPU or for what they call, than steps that are not traced"
    return "tracing may cost it in another way (its threads take CPU time), or all of them were slow for another reason"


def _why_only_this_is_slow(step: Step, sentences: Sequence[Sentence], probably: str) -> str:
    if _is_busy(sentences):
        return ": this step had more work than they, or it waited longer for a CPU on the busy machine"
    if not step.context.steps_around_s:
        return ""  # the steps around it may have been slow, too
    around = _seconds(median(step.context.steps_around_s))
    return f": this step was {probably}slow by itself (the untraced steps around it took {around}, as their median)"


def _slow_around(step: Step, took_s: float) -> str:
    """Say that the untraced steps just before and after this one were slow, too."""
    around_s = slow_around_s(step.context)
    count = len(step.context.steps_around_s)
    slower_still = " This step was slower still." if took_s >= SLOW_FACTOR * around_s else ""
    return (
        f"The {count} untraced steps around it took longer than usual, too ({_seconds(around_s)}, as their median): the machine "
        f"or the loop was slower then.{slower_still}"
    )


def _is_busy(sentences: Sequence[Sentence]) -> bool:
    return any(s["code"] == "busy_machine" for s in sentences)


def _seconds(seconds: float) -> str:
    return duration(seconds * 1e9)


def _factor(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"


def _other_traced(step: Step, fastest: float) -> str:
    count = step.context.other_traced
    other = f"The fastest of {count:,} other traced steps of the run" if count > 1 else "Another traced step of the run"
    return f"{other} took {_seconds(fastest)}"


def _is_explained(step: Step, sentences: Sequence[Sentence], took_s: float, usual_s: float) -> bool:
    """Tell whether the time that the first sentence names is longer than a usual step by at least half of this step's excess."""
    first = sentences[0]
    seconds = first["share"] * step.trace.duration_ns / 1e9 if first["code"] in EXPLAINING else 0.0
    return seconds - usual_s >= EXPLAINED_SHARE * (took_s - usual_s)


def _tracing_or_slow(step: Step, took_s: float, usual_s: float) -> str:
    """Say that both reasons are possible, and what supports one of them."""
    fastest = step.context.fastest_traced_s
    text = "Tracing may be the reason, or something else slowed the step"
    text += (
        f". {_other_traced(step, fastest)}." if fastest is not None else ": the run has no usual traced step to compare it with."
    )
    outside = took_s - step.trace.duration_ns / 1e9
    if outside - usual_s >= EXPLAINED_SHARE * (took_s - usual_s):
        text += f" {_seconds(outside)} passed before the first op or after the last, where TensorFlow also collects "
        text += "the trace."
    if step.context.step == 1:
        text += " It was the first step of its run, for which TensorFlow also prepares the graph."
    return text
