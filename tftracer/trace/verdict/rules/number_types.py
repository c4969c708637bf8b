"""Number types that are larger than training needs."""

from __future__ import annotations

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.op_kinds import canonical, is_elementwise, is_matrix_op
from tftracer.trace.arrays.types import Bool
from tftracer.trace.verdict.op_time import OpTime
from tftracer.trace.verdict.step import Step

FLOAT64_SHARE = 0.10  # minimal part of the op time
#: Assumed part of the time that float32 saves. Measured on CPUs: matrix products 0.45 to 0.6, convolutions 0.75, tanh 0.8 and
#: more.
GAIN = 0.75
MOSTLY = 0.5  # several ops are said to compute in float64 if at least this part of their time is in float64

_DOUBLE = 2  # tensorflow.DT_DOUBLE
TRY_FLOAT32 = (
    "See whether float32 will do, as it does for most training: NumPy creates float64 by default, so cast what is fed "
    "(x.astype(numpy.float32)), and look for tf.float64 and keras.backend.set_floatx."
)


def float64(step: Step) -> Sentence | None:
    """Name matrix ops, elementwise ops and reductions that compute in float64."""
    time = OpTime.of(step)
    selected = time.of_kinds(lambda kind: is_matrix_op(kind) or is_elementwise(kind))
    if time.share(selected) < FLOAT64_SHARE:
        return None
    selected &= _in_float64(step)[time.work.node]
    if time.least_share(selected) < FLOAT64_SHARE:
        return None
    return time.sentence(
        "float64",
        selected,
        "Ops in float64 take",
        TRY_FLOAT32,
        ("executions", float(selected.sum())),
        " float32 takes half of the time or less.",
        GAIN,
    )


def is_in_float64(step: Step, node: int) -> bool:
    """Tell whether the node is a matrix op that computes in float64."""
    return is_matrix_op(canonical(step.op(node))) and bool(_in_float64(step)[node])


def are_in_float64(step: Step, time: OpTime, selected: Bool) -> bool:
    """Tell whether most of the time of these executions goes into ops that compute in float64."""
    in_float64 = selected & _in_float64(step)[time.work.node]
    return float(time.work.self_ns[in_float64].sum()) >= MOSTLY * max(float(time.work.self_ns[selected].sum()), 1.0)


def _in_float64(step: Step) -> Bool:
    """Return [n] whether the first output of each node is known to be of float64."""
    if not step.trace.may_be_double or step.arithmetic is None:
        return np.zeros(step.trace.n, bool)
    result: Bool = step.arithmetic.dtype == _DOUBLE
    return result
