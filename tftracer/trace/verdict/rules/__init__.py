"""The rules of the verdict, with their texts: each looks for one cause and returns one sentence, or None.

A sentence says what the trace shows, with numbers and evidence, and what to try next. A cause that the trace does not show
is called possible. ``share`` is the part of the step that would go away at best. docs/analyses.rst describes the thresholds.
"""

from __future__ import annotations

from collections.abc import Callable

from tftracer.contract.trace import Sentence
from tftracer.trace.verdict.rules import (
    beside_steps,
    between_steps,
    busy_machine,
    cause_from_watch,
    communication,
    device_copies,
    eager,
    elementwise,
    feeds_and_fetches,
    gpu_waits_for_launches,
    idle,
    input_pipeline,
    layout_ops,
    memory_saving_ops,
    number_types,
    one_long_op,
    other_threads,
    python_in_step,
    slow_kernels,
    sparse_tables,
    strings_and_prints,
    tiny_ops,
    tracing_and_compiling,
)
from tftracer.trace.verdict.step import Step

Rule = Callable[[Step], "Sentence | None"]

#: Of sentences with equal ranks, the one of the earlier rule comes first (verdict.py).
RULES: tuple[Rule, ...] = (
    cause_from_watch.slow_inside,
    cause_from_watch.slow_before,
    beside_steps.beside_steps,
    between_steps.between_steps,
    feeds_and_fetches.around_ops,
    tracing_and_compiling.retraced,
    tracing_and_compiling.compiled,
    input_pipeline.input_pipeline,
    communication.communication_bound,
    communication.other_process,
    gpu_waits_for_launches.launch_bound,
    gpu_waits_for_launches.small_kernels,
    strings_and_prints.printing,
    one_long_op.one_op,
    tiny_ops.tiny_ops,
    device_copies.copies,
    python_in_step.python_function,
    python_in_step.python_lock,
    other_threads.other_thread,
    eager.eager_ops,
    memory_saving_ops.memory_saving,
    number_types.float64,
    slow_kernels.slow_kernel,
    layout_ops.layout,
    sparse_tables.dense_update,
    strings_and_prints.string_ops,
    elementwise.elementwise,
    busy_machine.busy_machine,
    busy_machine.one_core,
    idle.scheduling_delay,
    idle.idle_device,
)

#: Sentences about the time in which ops run. They give no reason for a device to be idle.
COMPUTING_CODES = frozenset(("float64", "slow_kernel", "layout", "dense_update", "elementwise", "string_ops", "one_core"))
#: Sentences that say that nothing runs, but not why. They are left out where another rule gives the reason.
UNEXPLAINED = ("idle_device", "scheduling_delay")
