"""Ops that only bring tensors into another layout, type or size."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step, evidence_of, sentence

LAYOUT_SHARE = 0.18  # of the op time, without the longest execution
LAYOUT_OPS = frozenset(
    ("Transpose", "ConjugateTranspose", "Cast", "Pad", "PadV2", "MirrorPad", "MirrorPadGrad", "ToTf", "InputConversion")
)


def layout(step: Step) -> Sentence | None:
    """Transposes, casts and pads; oneDNN's conversions between its layouts and TensorFlow's."""
    time = OpTime.of(step)
    selected = time.of_kinds(LAYOUT_OPS.__contains__)
    if time.typical_share(selected) < LAYOUT_SHARE:
        return None
    nodes, spent, share = time.longest(selected), float(time.work.self_ns[selected].sum()), time.share(selected)
    return sentence(
        "layout",
        f"Ops that only change the layout, type or size of tensors take {percent(share)} of the op time ({time.types(selected)}; "
        f"{duration(spent)}); the longest is {step.describe(nodes[0])}.",
        "Keep one layout (data_format) and one type through the model, and transpose, cast or pad its input once, before the "
        "first layer or in tf.data.",
        time.share_of_step(selected),
        {"layout_ns": spent, "executions": float(selected.sum())},
        {**evidence_of(step, nodes, "ops"), "op": time.op(selected)},
    )
