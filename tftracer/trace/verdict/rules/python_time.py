"""Time in which TensorFlow computes nothing: between two steps, and in Python functions of the graph."""

from __future__ import annotations

import re

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.rules.input_pipeline import seen_before
from tftracer.trace.verdict.rules.slow_step import slow_before
from tftracer.trace.verdict.step import ONLY_HERE, Step, evidence_of, sentence

BETWEEN_SHARE = 0.20  # of the time from step to step: the part outside of steps
BETWEEN_S = 0.001  # minimal time: less is Python's own cost of a call
LONGER = 3.0  # times the usual time, for a delay before this step alone
SAMPLED = "Sampled"  # first word of a text about sampled lines
INPUT_NAMED, INPUT_MAIN, INPUT_ALL = 0.10, 0.50, 0.90  # parts of that time in which the loop waits for tf.data
LOCK_SHARE = 0.30  # of the call: in Python while a Python function of another thread runs
LOCK_NS = 1_000_000  # minimal time
PYTHON_SHARE = 0.15  # of the step in which a Python function runs and nothing else does

LOOP = (
    "Time the parts of the training loop (time.perf_counter). If it prepares batches, make them with tf.data (parallel map, "
    "prefetch), or prepare the next ones in a thread while the step runs. Write checkpoints and logs less often."
)
INPUT = (
    "Let the input pipeline work ahead of the step: end it with prefetch(tf.data.AUTOTUNE), and use "
    "map(num_parallel_calls=tf.data.AUTOTUNE), cache, interleave over files. To see which stage of it takes the time, get the "
    'element within the step: with server.step("train"): batch = next(iterator); and what follows.'
)

_PYTHON_OP = re.compile(r".*:(PyFunc|PyFuncStateless|EagerPyFunc)$")


def between_steps(step: Step) -> Sentence | None:
    """Name the time between steps. The trace does not show what the script does then; sampled lines may."""
    context = step.context
    usual, before = context.between_steps_s, None if context.follows_traced or slow_before(step) else context.before_step_s
    # A slow call may have gone on after its last op.
    inside = max(step.whole_ns / 1e9, *(slow["duration_s"] for slow in context.slow_times if slow["inside"]), 0.0)
    is_usual = _share_between(usual, inside if context.median_s is None else context.median_s) > 0
    share = _share_between(usual if before is None else before, inside)
    is_slow = any(not slow["inside"] for slow in context.slow_times)  # a slow turn of the loop whose cause is unknown
    is_longer = before is not None and (usual is None or before >= LONGER * usual)
    if not share or not (is_usual or is_longer):
        return None
    measured = {"between_steps_ns": usual, "before_step_ns": before}
    numbers = {name: seconds * 1e9 for name, seconds in measured.items() if seconds is not None}
    passed = _before_every_step(step, numbers) if is_usual else _before_this_step(step, numbers, share)
    whole, waited = (usual, context.between_input_s) if is_usual else (before, context.before_input_s)
    of_input = (waited or 0.0) / whole if whole else 0.0
    if of_input >= INPUT_NAMED:
        passed += f" For {duration((waited or 0.0) * 1e9)} of that the loop waits for the next element of a tf.data dataset."
        passed += seen_before(context)
        numbers["input_ns"] = (waited or 0.0) * 1e9
    return sentence(
        "between_steps",
        passed if of_input >= INPUT_ALL else f"{passed} {_lines(step, is_usual)}",
        (context.input_advice or INPUT) if of_input >= INPUT_MAIN else LOOP,
        share,
        {**numbers, **({} if is_usual or is_slow else {ONLY_HERE: 1.0})},
        {"nodes": []},
    )


def _share_between(between: float | None, inside: float) -> float:
    """Return the share of the time from step to step; 0 below the thresholds."""
    if between is None or between < BETWEEN_S:
        return 0.0
    share = between / (between + inside)
    return share if share >= BETWEEN_SHARE else 0.0


def _before_every_step(step: Step, numbers: dict[str, float]) -> str:
    usual, median = numbers["between_steps_ns"], step.context.median_s
    share = usual / (usual + (step.whole_ns if median is None else median * 1e9))
    here = f"; before this step it was {duration(numbers['before_step_ns'])}" if "before_step_ns" in numbers else ""
    passed = f"Between two steps {duration(usual)} (median) pass{_outside(step)}"
    return f"{passed}, {percent(share)} of the time from step to step{here}."


def _before_this_step(step: Step, numbers: dict[str, float], share: float) -> str:
    usual = f" (the median is {duration(numbers['between_steps_ns'])})" if "between_steps_ns" in numbers else ""
    return (
        f"Before this step {duration(numbers['before_step_ns'])} passed{_outside(step)}{usual}, {percent(share)} of the time "
        "from the end of the previous step to the end of this one."
    )


def _outside(step: Step) -> str:
    return " outside session.run" if step.is_session else ""


def _lines(step: Step, usually: bool) -> str:
    """Name the lines that the watch over slow steps sampled in that time, or say that there are none."""
    before = next((slow["lines"] for slow in step.context.slow_times if not slow["inside"]), "")
    between = step.context.between_lines
    lines = between or before if usually else before
    if lines:
        when = "before this step" if lines == before else "between steps"
        return f"{SAMPLED} {when}: {lines}."
    tracer = "" if usually else " Beginning to trace this step may be a part of it."
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


def python_function(step: Step) -> Sentence | None:
    """Name py_function and numpy_function. The trace shows that they run, but not what they do."""
    if not step.python_functions.any():
        return None
    alone = step.cover(step.python_functions) - step.activity.compute - step.activity.communication
    share = alone.length / step.whole_ns
    if share < PYTHON_SHARE:
        return None
    nodes = step.longest(step.python_functions)
    calls = int(step.python_functions.sum())
    which = f"{calls:,} calls of Python functions run" if calls > 1 else "A Python function runs"
    longest = "the longest is " if calls > 1 else ""
    return sentence(
        "python_function",
        f"{which} in the graph for {duration(alone.length)} ({percent(share)}) in which no other op does: {longest}"
        f"{step.describe(nodes[0])}. The trace does not show what happens in it.",
        "Profile the function (cProfile, or time.perf_counter around its parts). If it computes, write it with TensorFlow ops: "
        "they need neither the copy out to Python and back nor the GIL. If it waits, make that wait shorter or move it out of "
        "the step.",
        share,
        {"exposed_ns": float(alone.length), "calls": float(calls)},
        {**evidence_of(step, nodes, "budget"), "op": step.op(nodes[0])},
    )


def python_lock(step: Step) -> Sentence | None:
    """Tell that the call stays in Python while another thread runs a Python function, mostly of tf.data."""
    if step.host is None or not step.calls:
        return None
    runs = Cover.of(
        np.array([call.runs_at for call in step.calls]), np.array([call.runs_at + call.ran_ns for call in step.calls])
    )
    elsewhere = step.host.cover(step.host.rows(_PYTHON_OP)) - step.cover(step.python_functions)
    overlap = (step.called - runs) & elsewhere
    share = overlap.length / step.whole_ns
    if share < LOCK_SHARE or overlap.length < LOCK_NS:
        return None
    return sentence(
        "python_lock",
        f"For {duration(overlap.length)} ({percent(share)}) of the step the call is still, or again, in Python while a Python "
        "function runs in another thread (of tf.data, mostly). If that computes, it holds Python's lock, which one thread at a "
        "time has.",
        "Do that work with TensorFlow ops (tf.data's map with ops, TFRecordDataset), or in another process, which has a lock of "
        "its own.",
        share,
        {"overlap_ns": float(overlap.length)},
        {"nodes": []},
    )
