"""The rules of the verdict, with their texts: each looks for one cause and returns one sentence, or None.

A sentence says what the trace shows, with numbers and evidence, and what to try next; what the trace does not show it calls
possible. ``share`` is the part of the step that would go away, at best. docs/analyses.rst describes the thresholds, the
constants of each module.
"""

from __future__ import annotations

from collections.abc import Callable

from tftracer.contract.trace import Sentence
from tftracer.trace.verdict.rules import (
    communication,
    copies,
    functions,
    idle,
    input_pipeline,
    launches,
    ops,
    python_time,
    tiny_ops,
)
from tftracer.trace.verdict.step import Step

Rule = Callable[[Step], "Sentence | None"]

RULES: tuple[Rule, ...] = (
    python_time.between_steps,
    functions.retraced,
    functions.compiled,
    input_pipeline.input_pipeline,
    communication.communication_bound,
    communication.other_process,
    launches.launch_bound,
    launches.small_kernels,
    ops.one_op,
    tiny_ops.tiny_ops,
    copies.copies,
    python_time.python_function,
    ops.memory_saving,
    idle.scheduling_delay,
    idle.idle_device,
)
