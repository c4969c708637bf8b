from __future__ import annotations

import numpy as np
import pytest

from tftracer.errors import FormatError
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.decode.node_kinds import node_kinds
from tftracer.trace.model import NodeKind

K = NodeKind
CPU, GPU = "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"
STREAM, COPIES, ALL = "/device:GPU:0/stream:12", "/device:GPU:0/stream:14<MemcpyH2D>", "/device:GPU:0/stream:all"


def kind_of(op: str, device: str = CPU, others: tuple[str, ...] = (), name: str = "n", own: str = "") -> NodeKind:
    devices = [parse_device(text) for text in (device, *others)]
    zero = np.zeros(1, np.int32)
    kinds = node_kinds(devices, zero, StringTable.of([name]), zero, StringTable.of([op]), zero, own)
    return NodeKind(int(kinds[0]))


@pytest.mark.parametrize(
    ("kind", "ops"),
    [
        (K.COMPUTE, ["MatMul", "Conv2D", "", "Identity", "Const", "ReadVariableOp", "Sender", "AllTogether", "Allowed"]),
        (K.COMMUNICATION, ["RecvTensor", "_Send", "_Recv", "_HostSend", "_HostRecv", "_SendV2"]),
        (K.COMMUNICATION, ["HorovodAllreduce", "HorovodBroadcast", "NcclAllReduce", "_NcclReduceSend"]),
        (K.COMMUNICATION, ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"]),  # kernels
        (K.COMMUNICATION, ["CollectiveReduce", "CollectiveReduceV2", "CollectiveBcastRecv", "CollectiveGather"]),
        (K.COMMUNICATION, ["DDLAllReduce", "DdlAllReduceN", "AllReduceN", "Bcast", "MPIAllreduce", "BytepsPushPull"]),
        (K.CONTROL, ["NoOp", "Switch", "Merge", "Enter", "Exit", "NextIteration", "RefSwitch", "LoopCond", "_SOURCE"]),
        (K.INPUT, ["IteratorGetNext", "QueueDequeueManyV2", "QueueEnqueueV2", "PyFunc", "EagerPyFunc", "ReadFile"]),
        (K.INPUT, ["OneShotIterator", "FIFOQueueV2", "MapDataset", "PrefetchDataset", "ParseExampleV2", "DecodeJpeg"]),
        (K.SYNC, ["ReduceDataset"]),  # a training loop over a dataset, which waits for the functions that it calls
        (K.COPY, ["MEMCPYHtoD", "MEMCPYDtoH", "Memset"]),
    ],
)
def test_op_types(kind: NodeKind, ops: list[str]) -> None:
    assert {op: kind_of(op) for op in ops} == dict.fromkeys(ops, kind)


def test_what_the_device_says() -> None:
    assert kind_of("MatMul", GPU) is K.COMPUTE  # no streams were traced: all that is known of the GPU's work
    assert kind_of("MatMul", GPU, (STREAM,)) is K.LAUNCH
    assert kind_of("MatMul", GPU, ("/device:GPU:1/stream:12",)) is K.COMPUTE
    assert kind_of("HorovodAllreduce", GPU, (STREAM,)) is K.COMMUNICATION
    assert kind_of("NoOp", GPU, (STREAM,)) is K.CONTROL
    assert kind_of("MatMul", STREAM) is K.COMPUTE
    assert kind_of("MEMCPYHtoD", STREAM) is K.COPY
    assert kind_of("anything", COPIES) is K.COPY
    assert kind_of("RecvTensor", ALL) is K.REPEAT
    assert kind_of("", "/device:GPU:0/sync") is K.SYNC


def test_the_users_own_pattern_looks_at_types_and_names() -> None:
    assert kind_of("MyOp", own="^MyOp$") is K.COMMUNICATION
    assert kind_of("Identity", name="ring/step_1", own="^ring/") is K.COMMUNICATION
    assert kind_of("Identity", own="^ring/") is K.COMPUTE
    with pytest.raises(FormatError, match="nothing to repeat"):
        kind_of("MyOp", own="*")
