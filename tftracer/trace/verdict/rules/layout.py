"""Ops that only change the layout, type or size of tensors."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step

LAYOUT_SHARE = 0.18  # minimal part of the op time, both without the longest execution
LAYOUT_OPS = frozenset(
    ("Transpose", "ConjugateTranspose", "Cast", "Pad", "PadV2", "MirrorPad", "MirrorPadGrad", "ToTf", "InputConversion")
)


def layout(step: Step) -> Sentence | None:
    """Name transposes, casts, pads, and oneDNN's conversions between its layouts and TensorFlow's."""
    time = OpTime.of(step)
    selected = time.of_kinds(LAYOUT_OPS.__contains__)
    if time.typical_share(selected) < LAYOUT_SHARE:
        return None
    return time.sentence(
        "layout",
        selected,
        "Ops that only change the layout, type or size of tensors take",
        "Keep one layout (data_format) and one type through the model, and transpose, cast or pad its input once, before the "
        "first layer or in tf.data.",
        ("executions", float(selected.sum())),
    )
