"""Small traces for the tests of the analyses, written down node by node, without any bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.model import UNKNOWN_TIME, Content, Device, DeviceKind, NodeKind, Trace

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
PS = "/job:ps/replica:0/task:0/device:CPU:0"
WORKER = "/job:worker/replica:0/task:0/device:CPU:0"
STREAM = "/device:GPU:0/stream:12"
STREAM_ALL = "/device:GPU:0/stream:all"
TF_DATA = "/host:CPU/tf.data"
H2D = "/device:GPU:0/stream:14<MemcpyH2D>"


@dataclass
class N:
    """One execution. Times in nanoseconds since the step began."""

    name: str
    op: str
    start: int
    end: int
    device: str = CPU
    kind: NodeKind = NodeKind.COMPUTE
    scheduled: int = UNKNOWN_TIME
    inputs: Sequence[str] = field(default_factory=tuple)
    label: str = ""
    bytes_moved: int = 0

    def text(self) -> str:
        return self.label or f"{self.name} = {self.op}({', '.join(self.inputs)})"


def received(tensor: str, start: int, end: int, size: int, source: str = PS, to: str = WORKER) -> N:
    """A RecvTensor as TensorFlow writes it, on the device that receives."""
    label = f"[{size}B] [1.0Mb/s] {tensor} from {source} to {to}"
    return N("RecvTensor", "RecvTensor", start, end, to, NodeKind.COMMUNICATION, label=label, bytes_moved=size)


def device(name: str) -> Device:
    if name == TF_DATA:
        return Device(name, "tf.data", DeviceKind.CPU, parent=CPU)
    physical = "/device:GPU:0" if "GPU:0" in name else name
    if "stream:" in name:
        stream = name.split("stream:")[1]
        kind = DeviceKind.REPEAT if stream == "all" else DeviceKind.MEMCPY if "<" in stream else DeviceKind.STREAM
        return Device(name, f"GPU:0 stream {stream}", kind, index=0, stream=stream, parent=physical, repeats=stream == "all")
    job = name.split("/job:")[1].split("/")[0]
    kind = DeviceKind.GPU if "GPU" in name else DeviceKind.CPU
    short = "GPU:0" if kind is DeviceKind.GPU else "CPU:0"
    return Device(name, short if job == "localhost" else f"{job}/0 {short}", kind, job, 0, 0, "", physical)


def codes(values: Sequence[str]) -> tuple[StringTable, np.ndarray]:
    distinct = list(dict.fromkeys(values))
    index = {value: i for i, value in enumerate(distinct)}
    return StringTable.of(distinct), np.array([index[v] for v in values], np.int32)


def make_trace(nodes: Sequence[N]) -> Trace:
    """The nodes as a Trace; no raw bytes."""
    device_names = list(dict.fromkeys(n.device for n in nodes))
    names, name = codes([n.name for n in nodes])
    ops, op = codes([n.op for n in nodes])
    labels, label = codes([n.text() for n in nodes])
    start, end, scheduled, moved = (
        np.array([getattr(n, key) for n in nodes], np.int64) for key in ("start", "end", "scheduled", "bytes_moved")
    )
    nothing = np.zeros(len(nodes), np.int64)
    return Trace(
        content=Content(b""),
        origin_ns=1_700_000_000_000_000_000,
        devices=[device(d) for d in device_names],
        names=names,
        ops=ops,
        labels=labels,
        device=np.array([device_names.index(n.device) for n in nodes], np.int32),
        name=name,
        op=op,
        label=label,
        kind=np.array([n.kind for n in nodes], np.int8),
        start=start,
        end=end,
        op_start=start.copy(),
        op_end=end.copy(),
        scheduled=scheduled,
        thread=nothing,
        offset=nothing,
        size=nothing,
        bytes_moved=moved,
    )


@dataclass
class FakeGraph:
    """Edges between nodes by index, as analyses/dependencies.py gives them."""

    producer: np.ndarray
    consumer: np.ndarray
    control: np.ndarray
    transfer: np.ndarray
    slot: np.ndarray
    source: str = "partition_graph"


def make_graph(edges: Sequence[tuple[int, int]], transfers: Sequence[tuple[int, int]] = (), source: str = "") -> FakeGraph:
    both = [*edges, *transfers]
    producer, consumer = (np.array([e[i] for e in both], np.int32) for i in (0, 1))
    moved = np.array([False] * len(edges) + [True] * len(transfers), bool)
    slot = np.zeros(len(both), np.int32)
    return FakeGraph(producer, consumer, np.zeros(len(both), bool), moved, slot, source or "partition_graph")
