"""Determines each node's NodeKind from its op type and its device.

The patterns are matched against whole op types. Names are searched only for the user's own pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tftracer.trace.arrays.linear_regex import Pattern
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Int8, Int32, Int64
from tftracer.trace.model import Device, DeviceKind, NodeKind

COMMUNICATION = re.compile(
    r"RecvTensor"
    r"|_?(Host)?(Send|Recv)(V2)?|_Xla(Send|Recv)\w*|Xla(SendTo|RecvFrom)Host|(Send|Recv)TPUEmbedding\w*"  # TensorFlow
    r"|_?Nccl\w*|nccl\w*|_?Collective\w*|CrossReplicaSum|AllToAll"  # NCCL (ops; kernels) and TensorFlow's collectives
    r"|Horovod\w*|Byteps\w*|MPI\w*"  # Horovod and similar libraries
    r"|D[Dd][Ll]\w*|All[Rr]educe(N|Bucketed)?|Bcast|Broadcast_?DDL"  # IBM's Distributed Deep Learning
)
#: Communication ops that are not collectives: point to point, or answered locally. DuckDB gets this expression, too
#: (fleet/partial.py); it does not support look-around. The empty alternative at the end is for nodes without an op type.
NO_COLLECTIVE = re.compile(
    r"RecvTensor|_?(Host)?(Send|Recv)(V2)?|_?Xla\w*|_?Nccl(Manager\w*|\w*(Send|Recv))|nccl\w{0,99}SendRecv\w{0,99}"
    r"|Horovod(Local|Cross)?(Rank|Size)\w*|HorovodProcessSet\w*|HorovodJoin"
    r"|\w{0,99}(TPUEmbedding|Initialize|Resource)\w{0,99}|"
)
CONTROL = re.compile(
    r"NoOp|(Ref)?(Switch|Merge|Enter|Exit|NextIteration|Select_?Control)|_SwitchN|LoopCond|ControlTrigger|_?(Source|Sink|SOURCE|SINK)"
)
INPUT = re.compile(
    r"(OneShot|MultiDevice)?Iterator\w*|\w*DatasetV?\d*|DatasetTo\w*|(Make|Serialize|Deserialize)Iterator"
    r"|(FIFO|PaddingFIFO|RandomShuffle|Priority)?Queue\w*|(Eager)?PyFunc(Stateless)?"
    r"|ReadFile|Reader\w*|Unstage|Parse(Single)?(Sequence)?Example\w*|Decode(Jpeg|Png|Image|Bmp|Gif|Raw|CSV)\w*"
    r"|DecodeAndCropJpeg|Infeed\w*"
)
#: The queue through which ``SyncReplicasOptimizer`` lets the workers go on has this in its name.
SYNC_TOKENS = "sync_token_q"
#: Ops that call functions and wait for them: a function may be a whole training loop.
WAITS = re.compile(r"ReduceDataset")
COPY = re.compile(r"(MEMCPY|MEMSET)\w*|__amd_rocclr_(copy|fill)\w*(\.kd)?", re.IGNORECASE)


def node_kinds(
    devices: Sequence[Device],
    device: Int32,
    names: StringTable,
    name: Int32,
    ops: StringTable,
    op: Int32,
    communication_ops: str = "",
) -> Int8:
    """Return [n] NodeKind values. ``communication_ops``: the user's own regular expression, searched in op types and names.

    Raises PatternError for an invalid expression.
    """
    by_op = np.array([_kind_of_op(text) for text in ops], np.int8)
    kind = by_op[op] if len(by_op) else np.zeros(len(op), np.int8)
    kind[_waits_for_workers(names, name, ops, op)] = NodeKind.COMMUNICATION
    if communication_ops:
        pattern = Pattern(communication_ops)
        communicates = pattern.search_all(ops)[op] | pattern.search_all(names)[name]
        kind[communicates] = NodeKind.COMMUNICATION
    return _adjusted_by_device(kind, devices, device)


def _waits_for_workers(names: StringTable, name: Int32, ops: StringTable, op: Int32) -> Int64:
    """Return the nodes that wait for a token of ``SyncReplicasOptimizer``: for other workers' gradients, not for input."""
    is_queue = np.array(["Queue" in text for text in ops] or [False])
    nodes = np.flatnonzero(is_queue[op]) if len(op) else np.zeros(0, np.int64)
    is_token = [SYNC_TOKENS in text for text in names.texts(name[nodes])]
    return nodes[np.array(is_token, np.bool_)]


def _kind_of_op(op: str) -> NodeKind:
    if COMMUNICATION.fullmatch(op):
        return NodeKind.COMMUNICATION
    if CONTROL.fullmatch(op):
        return NodeKind.CONTROL
    if COPY.fullmatch(op):
        return NodeKind.COPY
    if WAITS.fullmatch(op):
        return NodeKind.SYNC
    return NodeKind.INPUT if INPUT.fullmatch(op) else NodeKind.COMPUTE


def _adjusted_by_device(kind: Int8, devices: Sequence[Device], device: Int32) -> Int8:
    """Set the kinds that the device decides: repeats, syncs, copies. Compute on a device with streams becomes a launch."""
    with_streams = {d.parent for d in devices if d.kind in (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT)}
    for code, each_device in enumerate(devices):
        if each_device.kind is DeviceKind.REPEAT or each_device.repeats:
            kind[device == code] = NodeKind.REPEAT
        elif each_device.kind is DeviceKind.SYNC:
            kind[device == code] = NodeKind.SYNC
        elif each_device.kind is DeviceKind.MEMCPY:
            kind[device == code] = NodeKind.COPY
        elif each_device.kind is DeviceKind.GPU and each_device.parent in with_streams:
            kind[(device == code) & (kind == NodeKind.COMPUTE)] = NodeKind.LAUNCH
    return kind
