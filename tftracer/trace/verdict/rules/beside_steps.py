"""What the training does beside its steps, such as writing checkpoints. No trace of a step shows it."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.units import percent
from tftracer.trace.verdict.rules.one_long_op import SAVE_OPS
from tftracer.trace.verdict.step import Step, sentence

ADVICE = "Do it more rarely, or beside the training (asynchronous checkpoints, evaluation in another process)."
SLOW_ADVICE = "See the run's slow steps: they are listed with their causes and lines."


def beside_steps(step: Step) -> Sentence | None:
    """Name checkpoints, evaluations or slow steps that take a large part of the training's time (the session's ledger)."""
    share, what = step.context.beside_share, step.context.beside_text
    is_slow = step.context.beside_kind == "slow"
    if is_slow and step.context.slow_times:
        return None  # this step is one of them
    if share is None or step.trace.op_types_where(SAVE_OPS.fullmatch).any():
        return None  # not known, or the step itself saves a checkpoint
    return sentence(
        "beside_steps",
        f"Slow steps of known cause, mostly {what}, took {percent(share)} of the time since the training's first step, beyond "
        "the usual. This trace does not show one of them."
        if is_slow
        else f"{what} took {percent(share)} of the time since the training's first step. This trace shows the step alone.",
        SLOW_ADVICE if is_slow else ADVICE,
        share,
        {"beside_share": share},
        {"nodes": []},
    )
