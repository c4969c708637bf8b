"""Python within a step: Python functions of the graph, and Python's lock."""

from __future__ import annotations

import re

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.step import Step, evidence_of, sentence

LOCK_SHARE = 0.30  # minimal part of the step in which the call is in Python while another thread runs a Python function
LOCK_NS = 1_000_000  # minimal length of that time
PYTHON_SHARE = 0.15  # minimal part of the step in which a Python function runs and nothing else does

_PYTHON_OP = re.compile(r".*:(PyFunc|PyFuncStateless|EagerPyFunc)$")


def python_function(step: Step) -> Sentence | None:
    """Tell that Python functions in the graph (py_function, numpy_function) run alone. The trace does not show what they do."""
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
    """Tell that the step's call was in Python while another thread ran a Python function, mostly one of tf.data."""
    if step.host is None or not step.calls:
        return None
    function_runs = Cover.of(
        np.array([call.runs_at for call in step.calls]), np.array([call.runs_at + call.ran_ns for call in step.calls])
    )
    python_elsewhere = step.host.cover(step.host.rows(_PYTHON_OP)) - step.cover(step.python_functions)
    overlap = (step.called - function_runs) & python_elsewhere
    share = overlap.length / step.whole_ns
    if share < LOCK_SHARE or overlap.length < LOCK_NS:
        return None
    return sentence(
        "python_lock",
        f"For {duration(overlap.length)} ({percent(share)}) of the step the call was in Python (before or after its function "
        "ran) while a Python function ran in another thread, mostly one of tf.data. If that function computes, it holds Python's "
        "lock, which only one thread at a time can have.",
        "Do that work with TensorFlow ops (tf.data's map with ops, TFRecordDataset), or in another process, which has a lock of "
        "its own.",
        share,
        {"overlap_ns": float(overlap.length)},
        {"nodes": []},
    )
