"""Work of TensorFlow before a compiled function runs: tracing it (building its graph), and compiling it with XLA.

Only profiles show it.
"""

from __future__ import annotations

import re

from tftracer.contract.trace import Sentence
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.step import Step, evidence_of, sentence

RETRACED_SHARE = 0.20  # minimal part of the call that passes before its function runs
COMPILING_SHARE = 0.20  # minimal part of the step in which XLA compiles
RECOMPILED = 4  # minimal number of programs of a function that XLA compiles again and again
RECOMPILED_SHARE = 0.50  # minimal number of such a function's programs per step of the run

_COMPILING = re.compile(r"\w*Compiler::(Run|Compile)\w*$|Xla(Autotuner)?Compil\w*(:#|$)")
_FUNCTION = re.compile(r".*?_inference_(\w{1,200}?)_\d+__")

FEWER_TRACINGS = (
    "Pass tensors of one shape and type, and numbers as tensors (tf.constant), not as Python values; give the function an "
    "input_signature, or reduce_retracing=True; do not create the tf.function inside the loop. Pad the last batch, or drop it "
    "(drop_remainder=True)."
)
ONE_SHAPE = (
    "XLA compiles a program for each shape of the arguments. Keep the shapes the same: pad batches or drop the last one "
    "(drop_remainder=True), pad sequences to a few lengths."
)
LATER_STEP = "Trace a later step: this happens at the first call; later calls do not pay for it."


def retraced(step: Step) -> Sentence | None:
    """Tell that TensorFlow traced the function (built its graph) in this call, before it ran."""
    call = next((call for call in step.calls if call.was_traced), None)
    if call is None:
        return None
    before, whole = call.runs_at - call.start, max(call.end - call.start, 1)
    share = before / whole
    if share < RETRACED_SHARE:
        return None
    timing = f"{duration(before)} of its {duration(whole)} ({percent(share)}) passed before the function ran"
    is_first = call.times_traced == 1
    if is_first:
        text = f"{call.name} was traced in this call, its first: {timing}."
    else:
        so_far = f" It has been traced {call.times_traced:,} times so far." if call.times_traced else ""
        text = f"{call.name} was traced anew in this call: {timing}.{so_far}{_what_changed(step)}"
    numbers = {"before_ns": float(before), "call_ns": float(whole), "times_traced": float(call.times_traced)}
    return sentence("retraced", text, LATER_STEP if is_first else FEWER_TRACINGS, share, numbers, {"nodes": []})


def _what_changed(step: Step) -> str:
    changed = step.context.retraced
    return f" Compared with its most similar earlier tracing, {changed}." if changed else " Which argument changed is not known."


def compiled(step: Step) -> Sentence | None:
    """Tell that XLA compiled in this step, or compiles in most steps (some releases' profiles do not show when)."""
    if step.host is None:
        return None
    time = step.host.cover(step.host.rows(_COMPILING)) & step.called
    share = time.length / step.whole_ns
    module, programs = max(step.host.programs.items(), key=lambda item: item[1], default=("", 0))
    steps = step.context.step or 0
    # A profile of several steps lists the programs at its end.
    count = f"{programs:,} programs of {_title(module)} when this profile ended; this is step {steps:,}"
    if share >= COMPILING_SHARE:
        so_far = f" It had compiled {count}." if programs > 1 and steps else ""
        text = f"XLA compiles for {duration(time.length)} ({percent(share)}) of this step.{so_far}"
    elif programs >= RECOMPILED and steps and programs >= RECOMPILED_SHARE * steps and not step.shows_xla:
        share = step.cover(step.functions_without_ops).length / step.whole_ns
        text = f"XLA compiles again and again: {count}. This TensorFlow's profile does not show how long that takes."
    else:
        return None
    nodes = step.longest(step.functions_without_ops)
    return sentence(
        "compiling",
        text,
        ONE_SHAPE if programs > 1 or steps > 1 else LATER_STEP,
        share,
        {"programs": float(programs), "compile_ns": float(time.length)},
        evidence_of(step, nodes, "ops") if nodes else {"nodes": nodes},
    )


def _title(module: str) -> str:
    """Return the name of a module's function: ``a_inference_train_step_73__XlaMustCompile_true_...`` is train_step."""
    function = _FUNCTION.match(module)
    return function.group(1) if function else module[:60]
