"""Ops that only copy tensors, or change their layout, type or size."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.rules.tiny_ops import TINY_NS
from tftracer.trace.verdict.step import Step

LAYOUT_SHARE = 0.18  # minimal part of the op time (``OpTime.cautious_share``)
LAYOUT_OPS = frozenset(
    ("Transpose", "ConjugateTranspose", "Cast", "Pad", "PadV2", "MirrorPad", "MirrorPadGrad", "ToTf", "InputConversion")
)
#: Ops that copy elements to another place, or to several places.
COPY_OPS = frozenset(
    [
        *("Concat", "ConcatV2", "Pack", "Unpack", "Split", "SplitV", "Slice", "StridedSlice", "StridedSliceGrad"),
        *("Tile", "BroadcastTo", "Reverse", "ReverseV2", "Roll", "Snapshot", "DeepCopy"),
        *("SpaceToBatchND", "BatchToSpaceND", "SpaceToDepth", "DepthToSpace"),
        *("TensorListStack", "TensorListConcatV2", "TensorListFromTensor"),
    ]
)


def layout(step: Step) -> Sentence | None:
    """Name transposes, casts, pads, conversions between oneDNN's layouts and TensorFlow's, and copies that are not tiny."""
    time = OpTime.of(step)
    selected = time.of_kinds(LAYOUT_OPS.__contains__)
    selected |= time.of_kinds(COPY_OPS.__contains__) & (time.work.duration >= TINY_NS)
    if time.cautious_share(selected) < LAYOUT_SHARE:
        return None
    return time.sentence(
        "layout",
        selected,
        "Ops that only copy tensors, or change their layout, type or size, take",
        "Keep one layout (data_format) and one type through the model. Transpose, cast, pad and stack its input once, "
        "before the first layer, or in tf.data. In a loop, do not lengthen a tensor in each turn (tf.concat): collect its parts "
        "in a tf.TensorArray.",
        ("executions", float(selected.sum())),
    )
