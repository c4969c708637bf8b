"""Causes from the slow-step watch, which sees more than a trace shows: Python, the machine and other steps."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.model import SlowTime
from tftracer.trace.units import duration
from tftracer.trace.verdict.step import Step, sentence

#: Key of the sentence's number for the excess over the usual step.
MORE_NS = "more_than_usual_ns"
#: Causes about which the watch knows no more than the trace does.
LEFT_TO_THE_TRACE = ("unknown", "tensorflow")
AROUND_SHARE = 0.5  # if this part of the excess or more is before the first op or after the last, the watch is not believed
RARELY = "Do it more rarely, in less time, or in a thread or process beside the training."
ADVICE = {
    "gc": "Make fewer objects that refer to each other, or collect at times of your choice: gc.freeze() after the start, "
    "gc.disable(), and gc.collect() every so many steps.",
    "machine": "See what else runs on the machine (top), or give the training fewer threads.",
    "lock": "Move what that thread computes into a process of its own: one thread at a time has Python's lock.",
    "retrace": "Call the function with the same shapes and types (input_signature, reduce_retracing=True), and pass numbers of "
    "Python's as tensors.",
    "stopped": "See who stopped it: a debugger, a scheduler, Ctrl-Z.",
    "input": "Let the dataset work ahead (prefetch, num_parallel_calls), and see what limits it: Input pipelines.",
    "other_run": "Run it more rarely, or on less data.",
}


def slow_inside(step: Step) -> Sentence | None:
    return _slow(step, True)


def slow_before(step: Step) -> Sentence | None:
    return _slow(step, False)


def is_explained(step: Step) -> bool:
    """Tell whether the watch knows why the step itself was slow."""
    return _slow_time(step, True) is not None


def _slow_time(step: Step, inside: bool) -> SlowTime | None:
    for slow in step.context.slow_times:
        if slow["inside"] == inside and slow["cause"] not in LEFT_TO_THE_TRACE and not _contradicts_trace(step, slow):
            return slow
    return None


def _contradicts_trace(step: Step, slow: SlowTime) -> bool:
    """Tell whether the watch blames missing CPUs for TensorFlow's or unknown threads, but the trace shows that the step was slow
    before its first op or after its last, when TensorFlow's threads have nothing to do."""
    more_ns = (slow["duration_s"] - (slow["usual_s"] or 0.0)) * 1e9
    around_ns = step.around.before_ns + step.around.after_ns
    may_be_others = slow["cause"] == "machine" and slow["without_cpu"] != "own"
    return slow["inside"] and may_be_others and around_ns >= AROUND_SHARE * more_ns


def _slow(step: Step, inside: bool) -> Sentence | None:
    slow = _slow_time(step, inside)
    if slow is None:
        return None
    took, usual = slow["duration_s"] * 1e9, (slow["usual_s"] or 0.0) * 1e9
    passed = f"This step took {duration(took)}" if inside else f"Before this step {duration(took)} passed"
    usually = f", usually {duration(usual)}" if usual else ""
    more = max(took - usual, 0.0)
    return sentence(
        "slow_step" if inside else "slow_before",
        f"{passed}{usually}. {slow['text']}.",
        ADVICE.get(slow["cause"], RARELY),
        more / (took if inside else took + step.whole_ns),
        {MORE_NS: more},
        {"nodes": []},
    )
