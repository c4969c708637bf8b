"""Number types that are larger than training needs."""

from __future__ import annotations

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.op_kinds import canonical, is_matrix_op
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step

FLOAT64_SHARE = 0.10  # minimal part of the op time
GAIN = 0.5  # part of their time that float32 saves: it has half of the bytes, and a register holds twice as many numbers

_DOUBLE = 2  # tensorflow.DT_DOUBLE
TRY_FLOAT32 = (
    "See whether float32 will do, as it does for most training: NumPy creates float64 by default, so cast what is fed "
    "(x.astype(numpy.float32)), and look for tf.float64 and keras.backend.set_floatx."
)


def float64(step: Step) -> Sentence | None:
    """Name matrix ops that compute in float64."""
    time = OpTime.of(step)
    selected = time.of_kinds(is_matrix_op)
    if time.share(selected) < FLOAT64_SHARE or not step.trace.may_be_double or step.arithmetic is None:
        return None
    selected &= step.arithmetic.dtype[time.work.node] == _DOUBLE
    if time.least_share(selected) < FLOAT64_SHARE:
        return None
    return time.sentence(
        "float64",
        selected,
        "Matrix ops in float64 take",
        TRY_FLOAT32,
        ("executions", float(selected.sum())),
        " float32 takes half of the time or less.",
        GAIN,
    )


def is_in_float64(step: Step, node: int) -> bool:
    """Tell whether the node is a matrix op that computes in float64."""
    if not step.trace.may_be_double or step.arithmetic is None or not is_matrix_op(canonical(step.op(node))):
        return False
    return bool(step.arithmetic.dtype[node] == _DOUBLE)
