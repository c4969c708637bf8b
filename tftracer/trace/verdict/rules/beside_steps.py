"""Work of the training beside its steps, such as writing checkpoints. No trace of a step shows it."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.units import percent
from tftracer.trace.verdict.rules.one_long_op import SAVE_OPS
from tftracer.trace.verdict.step import Step, sentence

ADVICE = "Do it more rarely, or beside the training (asynchronous checkpoints, evaluation in another process)."
#: Kind of a part of the ledger -> the sentence with its largest item and its share, and the advice.
SENTENCES = {
    "slow": "Slow steps of known cause, mostly {0}, took {1} of the time since the training's first step, beyond the usual. This "
    "trace does not show one of them.",
    "steps": "Steps of other runs (the longest: {0}) took {1} of the time since the training's first step. This trace shows a "
    "step of its own run alone.",
}
ADVICE_OF = {
    "slow": "See the run's slow steps: they are listed with their causes and lines.",
    "steps": "Trace the other runs. If the loop adds ops to the graph, each session.run of new ops is a new run: build the graph "
    "before the loop.",
}


def beside_steps(step: Step) -> Sentence | None:
    """Name checkpoints, evaluations, slow steps or other runs that take much of the training's time (the session's ledger)."""
    share, part = step.context.beside_share, step.context.beside_text
    kind = step.context.beside_kind
    if kind == "slow" and step.context.slow_times:
        return None  # this step is one of them
    saves = bool(step.trace.op_types_where(SAVE_OPS.fullmatch).any())
    is_eager = step.host is not None and not step.calls
    if share is None or (saves and not (is_eager and kind == "checkpoints")):
        return None  # not known, or a step of a run that saves
    shown = "This step contains one." if saves else "This trace shows the step alone."
    return sentence(
        "beside_steps",
        SENTENCES.get(kind, f"{{0}} took {{1}} of the time since the training's first step. {shown}").format(
            part, percent(share)
        ),
        ADVICE_OF.get(kind, ADVICE),
        share,
        {"beside_share": share},
        {"nodes": []},
    )
