"""Compulsory memory traffic of ops: the bytes that an op has to read and write at least once, with cold caches.

All inputs and outputs count once, except:

- zero bytes for ops that forward a buffer (`Identity`, `Reshape`, `ReadVariableOp`) or return a shape (`Shape`);
- twice the output for ops that read a part of their inputs (`GatherV2`, `Slice`, `Split`);
- only the outputs for ops that read a shape but no data (`ZerosLike`, `Fill`);
- for ops that update variables (optimizers, `AssignAdd`), a read and a write of each variable instead of the outputs. A variable
  counts with the size of the largest input, which is the gradient, or the gradient's rows.

The traffic is unknown for ops whose tensors are strings or variants, or are not in the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from tftracer.trace.analyses.op_kinds import canonical
from tftracer.trace.arrays.types import Float64

_NO_TRAFFIC = re.compile(
    r"Identity(?:N)?|Reshape|Squeeze|ExpandDims|Bitcast|StopGradient|PreventGradient|CheckNumerics|Snapshot|(?:Host)?Const"
    r"|VarHandleOp|ReadVariableOp|AssignVariableOp|VarIsInitializedOp|Variable(?:V2)?|AutoReloadVariable|DestroyResourceOp"
    r"|ShapeN?|Size|Rank|VariableShape|BroadcastGradientArgs|BroadcastArgs|ConcatOffset|NoOp|ControlTrigger|_?LoopCond"
    r"|(?:Ref)?(?:Switch|Merge|Enter|Exit|NextIteration|Identity)|_SwitchN|_(?:Device)?(?:Arg|Retval)|Placeholder(?:WithDefault)?"
    r"|Stack(?:Push|Pop|Close)?(?:V2)?|TensorList(?:PushBack|PopBack|Reserve|GetItem|SetItem|ElementShape|Length)|EmptyTensorList"
    r"|TensorArray(?:Read|Write|Size|Close|Grad)?V3"
)
_PART_READ = re.compile(
    r"Gather(?:V2|Nd)?|ResourceGather(?:Nd)?|BatchGather|Slice|StridedSlice|Split(?:V)?|Unpack|DynamicPartition"
)
_ONLY_WRITTEN = re.compile(
    r"ZerosLike|OnesLike|Fill|Range|BroadcastTo|RecvTensor|Random(?:Uniform|UniformInt|StandardNormal)|TruncatedNormal"
    r"|Stateless(?:Random|Truncated|Parameterized)\w+"
)
#: The number of variables that an optimizer's op updates.
_UPDATED = {
    "GradientDescent": 1, "ProximalGradientDescent": 1, "Momentum": 2, "KerasMomentum": 2, "Adagrad": 2, "AdagradV2": 2,
    "ProximalAdagrad": 2, "AddSign": 2, "PowerSign": 2, "AdagradDA": 3, "Adam": 3, "AdaMax": 3, "Adadelta": 3, "RMSProp": 3,
    "Ftrl": 3, "FtrlV2": 3, "AdamWithAmsgrad": 4, "CenteredRMSProp": 4,
}  # fmt: skip
_OPTIMIZER_OP = re.compile(r"(Resource)?(?:Sparse)?Apply(\w+)")
_VARIABLE_UPDATE = re.compile(r"(Resource)?Scatter(?:Nd)?(?:Add|Sub|Mul|Div|Min|Max)|Assign(?:Add|Sub)(VariableOp)?")


class Rules:
    """Factors per op type for the bytes of all ``inputs`` together, all ``outputs`` together, and the ``largest`` input."""

    def __init__(self, ops: Iterable[str]) -> None:
        rows = [_rule(canonical(op)) for op in ops] or [(1.0, 1.0, 0.0)]
        self.inputs, self.outputs, self.largest = np.array(rows, np.float64).T

    def traffic(self, op: np.ndarray, inputs: Float64, outputs: Float64, largest: Float64) -> Float64:
        """Return [n] bytes of each node, from the bytes of its inputs, its outputs, and its largest input; NaN: not known."""
        total: Float64 = inputs + outputs
        special = np.flatnonzero(((self.inputs != 1) | (self.outputs != 1) | (self.largest != 0))[op])
        total[special] = 0.0
        for factor, size in ((self.inputs, inputs), (self.outputs, outputs), (self.largest, largest)):
            counted = special[factor[op[special]] != 0]  # unknown bytes with factor 0 do not matter
            total[counted] += factor[op[counted]] * size[counted]
        return total


def _rule(op: str) -> tuple[float, float, float]:
    """Return the factors for the bytes of an op's inputs, of its outputs, and of its largest input; NaN: not known."""
    if _NO_TRAFFIC.fullmatch(op):
        return 0.0, 0.0, 0.0
    if _PART_READ.fullmatch(op):
        return 0.0, 2.0, 0.0
    if _ONLY_WRITTEN.fullmatch(op):
        return 0.0, 1.0, 0.0
    optimizer_op, update = _OPTIMIZER_OP.fullmatch(op), _VARIABLE_UPDATE.fullmatch(op)
    if optimizer_op:
        updated = _UPDATED.get(optimizer_op[2])
        if updated is None:
            return np.nan, np.nan, np.nan
        return 1.0, 0.0, updated * (2.0 if optimizer_op[1] else 1.0)
    if update:
        return 1.0, 0.0, 2.0 if update[1] or update[2] else 1.0
    return 1.0, 1.0, 0.0
