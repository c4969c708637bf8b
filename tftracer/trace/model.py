"""The one type that every source of a trace is decoded into, and all analyses work on.

A ``Trace`` is a struct of NumPy columns, one entry a node (one execution of one op or kernel), in the order in which the
source gave them. Times are int64 nanoseconds since ``origin_ns``. Strings are dictionary-coded: a column of int32 codes
into a ``StringTable``, so that no Python object is made for a node.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypedDict

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.machine import GpuDevice, MeasuredRoof
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int8, Int32, Int64
from tftracer.trace.hardware import Hardware

#: TensorFlow stops collecting at this many nodes a step (kMaxCollectedNodes): a trace that has exactly as many is cut off.
MAX_COLLECTED_NODES = 1 << 20

#: The note of a profile that lacks the ops that TensorFlow had found to be cheap; how many of all were recorded follows it.
OPS_LEFT_OUT = "cheap_ops_left_out"

#: In a time column: not known (missing in the source, or no time at all).
UNKNOWN_TIME = -1


class DeviceKind(enum.Enum):
    """What a line of step_stats stands for."""

    CPU = "cpu"
    GPU = "gpu"  # a GPU's op entries: launches on the host
    STREAM = "stream"  # one CUDA stream: kernels
    MEMCPY = "memcpy"  # one stream of copies, `/device:GPU:0/stream:14<MemcpyH2D>`
    SYNC = "sync"
    REPEAT = "repeat"  # `stream:all` and `memcpy`: says again what single streams say
    TPU = "tpu"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Device:
    """One device name of a trace, taken apart (decode/device_names.py)."""

    name: str  # as in the source
    title: str  # short, for people: `CPU:0`, `ps/0 CPU:0`, `GPU:0 stream 14 (MemcpyH2D)`
    kind: DeviceKind
    job: str = ""  # "" where the name has none
    task: int = -1
    index: int = -1  # the number behind CPU:, GPU:
    stream: str = ""  # "12", "14", "all"
    parent: str = ""  # the physical device that this line belongs to, `/device:GPU:0`: the same for its launches and streams
    repeats: bool = False  # its slices are counted elsewhere: never add them up


class NodeKind(enum.IntEnum):
    """What a node's time is spent on; the values travel to the page in the timeline's ``kind`` column."""

    COMPUTE = 0  # an op that runs on its device, or a GPU kernel
    COMMUNICATION = 1  # between processes or devices: RecvTensor, Send/Recv, Horovod, NCCL, collectives, DDL
    COPY = 2  # a copy between host and device, or on a device (memcpy, memset)
    LAUNCH = 3  # host-side launch of work whose kernels are on streams of their own
    SYNC = 4
    INPUT = 5  # the input pipeline: IteratorGetNext, queue dequeues, PyFunc feeding
    CONTROL = 6  # NoOp, Switch, Merge, Enter, Exit, NextIteration, _Source: no work of their own
    REPEAT = 7  # on a repeating device: drawn, never added up
    OUTSIDE = 8  # no part of the step: other threads' work, or before or behind it; drawn, never added up


@dataclass
class Span:
    """A slice of the raw bytes."""

    offset: int
    size: int


@dataclass
class Messages:
    """Messages within nodes: which row each is of, and where it lies in the window."""

    row: Int64
    start: Int64
    end: Int64


@dataclass
class Allocations:
    """What allocators did, one entry an allocation or a freeing, in the order of time."""

    time: Int64  # ns, as the profile has it
    is_freed: Bool
    allocator: Int64  # codes into allocators
    in_use: Int64  # the allocator's bytes behind the event, with what it held before the profile
    bytes: Int64
    address: Int64
    op: Int64  # codes into ops
    dtype: Int64
    node: Int64  # the op that was running on the thread, -1: none
    allocators: list[str]
    ops: list[str]  # names, as the allocator was told


class Tensor(NamedTuple):
    """One input or output of an op."""

    dtype: int  # tensorflow.DataType, 0: not known
    shape: tuple[int, ...] | None  # None: not known


class Computed(NamedTuple):
    """What the source knows that an op computes; None: not known."""

    flops: float | None
    bytes: float | None
    dtype: int


@dataclass
class Calls:
    """What a source says of the tensors that nodes were called with; each distinct call once."""

    inputs: list[list[Tensor]]
    input_of: Int64  # [n] which of ``inputs``; -1: it does not say
    outputs: dict[int, list[Tensor]]  # by node
    hlo: list[Computed]
    hlo_of: Int64  # [n] which of ``hlo``; -1: not compiled by XLA

    @classmethod
    def none(cls, n: int) -> Calls:
        return cls([], np.full(n, -1, np.int64), {}, [], np.full(n, -1, np.int64))


class NodeSource(Protocol):
    """What a source says of one node beyond the columns."""

    def facts(self, node: int) -> list[tuple[str, str]]:
        """(name, value), for people."""

    def hlo(self, node: int) -> str:
        """XLA's text of the op, "" for none."""

    origin: int  # the source's time at the trace's time 0

    def allocations(self) -> Allocations | None:
        """What it says of memory; None for nothing."""

    def calls(self) -> Calls:
        """What it says of the ops' tensors."""

    def graphs(self) -> list[Any]:
        """The GraphDefs that ran, whole; none where it holds none."""


class Content:
    """The bytes that a trace was decoded from. Those that can be loaded again may be let go until somebody needs them."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._load: Callable[[], bytes] = lambda: data
        self._data: bytes | None = data

    def let_go(self, load: Callable[[], bytes]) -> None:
        """Free the bytes. ``load`` returns them."""
        self._load, self._data = load, None

    @property
    def data(self) -> bytes:
        """Raises what ``load`` raises."""
        if self._data is None:
            self._data = self._load()
        return self._data


@dataclass
class Trace:
    """One traced step as columns. ``raw`` stays the truth: details are read from it at ``offset[i] : offset[i] + size[i]``."""

    content: Content
    origin_ns: int  # epoch nanoseconds of time 0 (the earliest start)
    devices: list[Device]  # merged by name
    names: StringTable  # node names
    ops: StringTable  # op types: `MatMul`; "" where the label tells none
    labels: StringTable  # timeline labels; not compared where each node has a name of its own
    device: Int32  # [n] codes into devices
    name: Int32  # [n] codes into names
    op: Int32  # [n] codes into ops
    label: Int32  # [n] codes into labels
    kind: Int8  # [n] NodeKind
    start: Int64  # [n] ns since origin: all_start; below 0 only what ran before the step (OUTSIDE)
    end: Int64  # [n] ns since origin: all_start + all_end_rel; never < start
    op_start: Int64  # [n] ns since origin, UNKNOWN_TIME where not filled
    op_end: Int64  # [n]
    scheduled: Int64  # [n] ns since origin; UNKNOWN_TIME where missing or invalid; 0 where it precedes 0
    thread: Int64  # [n] thread_id
    offset: Int64  # [n] where the NodeExecStats lies in raw
    size: Int64  # [n] its length
    bytes_moved: Int64  # [n] payload of a RecvTensor or memcpy, 0 elsewhere
    partition_graphs: list[Span] = field(default_factory=list)
    cost_graph: Span | None = None
    notes: list[str] = field(default_factory=list)  # what the decoder could not read: codes of verdict/lacks.py
    source: str = "run_metadata"  # run_metadata, xspace
    launch: Int64 | None = None  # [n] the node that launched each, -1: none; None: the source does not tell (physical_devices.py)
    launched_at: Int64 | None = (
        None  # [n] ns since origin: when the host launched a kernel or copy; UNKNOWN_TIME elsewhere; 0 before 0
    )
    known_edges: tuple[Int64, ...] = ()  # (nodes, nodes that waited for them): what the source itself says of it
    details: NodeSource | None = None  # what else the source says of a node
    load_graph: Callable[[], bytes] | None = None  # makes a GraphDef, for sources whose raw bytes hold none
    may_be_double: bool = True  # some op may compute in float64
    has_definitions: bool = False  # and it makes it of what functions are defined as, not of the graphs that ran
    hardware: dict[str, Hardware] = field(default_factory=dict)  # of physical devices, by ``parent``: what the source tells
    messages: dict[int, list[Messages]] = field(default_factory=dict)  # within the nodes of ``raw``, if the decoder kept them

    @property
    def raw(self) -> bytes:
        """Serialized RunMetadata, as TensorFlow gave it; b"" for sources that have none."""
        return self.content.data

    @property
    def n(self) -> int:
        return len(self.start)

    @property
    def duration_ns(self) -> int:
        """Of the step."""
        return max(int(self.end.max(where=self.kind != NodeKind.OUTSIDE, initial=0)), 0)

    @property
    def counted(self) -> Bool:
        """[n] the nodes that stand for work of their own: nothing on repeating devices, nothing without a time."""
        counted: Bool = (self.kind < NodeKind.REPEAT) & (self.start >= 0)
        return counted

    def described(self, node: Int64) -> dict[str, list[Any]]:
        """What tables of nodes begin with, a list a column, each as long as ``node``; ``start_ns`` as in the page's messages."""
        return {
            "node": node.tolist(),
            "name": self.names.texts(self.name[node]),
            "op": self.ops.texts(self.op[node]),
            "device": [self.devices[code].name for code in self.device[node].tolist()],
            "start_ns": self.start[node].astype(float).tolist(),
        }

    @property
    def drawn(self) -> Bool:
        """[n] the nodes with a time."""
        drawn: Bool = (self.start >= 0) | (self.kind == NodeKind.OUTSIDE)
        return drawn


class GpuFacts(TypedDict, total=False):
    """What the traced process knows of its GPU profiling (session/process/gpu_profiling.py). A key that is missing: not known."""

    build: Literal["cuda", "rocm", "cpu"]  # what TensorFlow was built for
    cuda_version: str  # that TensorFlow was built with
    driver: bool  # an NVIDIA driver is there
    visible_devices: str  # CUDA_VISIBLE_DEVICES, where it is set
    libcupti_loaded: str  # the file, "" if none is loaded
    libcupti_file: str  # one of that CUDA version that is not loaded, "" if none was found
    restricted: bool  # the driver lets administrators alone profile, and the process is not privileged


class CpuUse(TypedDict, total=False):
    """How the traced process used the CPUs during the step (capture/traces/cpu_use.py). A key that is missing: not known."""

    wall_s: float  # the time that the others are of
    cpu_s: float  # CPU time of all threads but the tracer's own
    job_cpu_s: float  # CPU time of all threads, and of the processes that this one has started
    busiest_thread_s: float  # CPU time of the thread that used most
    run_queue_s: float  # in which threads were ready to run and had no CPU, added up
    cpus: float  # that the process may use


#: Why a fed value is copied before TensorFlow reads it: "order": an array whose elements are not in C order, without gaps.
#: "list": arrays in a list of Python's, which are put together. "": for no such reason, or not known.
FedCopy = Literal["", "order", "list"]


class FedValue(TypedDict):
    """A value that the script hands to a step and that TensorFlow has to copy or convert: an array, or a list of Python's."""

    name: str  # of the tensor that is fed, of the function's argument
    dtype: str  # NumPy's name; "string"; "list" of Python's values; "object": an array of them
    shape: list[int]
    bytes: int | None  # None: not known (strings, lists)
    tensor_dtype: str  # of the tensor that it is converted to; "": not known
    copied: FedCopy


class SlowTime(TypedDict):
    """A time by which a step was slow, as the watch over slow steps explains it."""

    inside: bool  # of the step; else it is the time before it
    duration_s: float
    usual_s: float | None  # None: not known
    cause: str  # a StallCause
    without_cpu: str  # as of a stall: "own", "any", or "" where it is not known
    text: str  # the same in words
    lines: str  # the lines of Python in it, with their shares; "": not known


class Watched(TypedDict):
    """What the watch over slow steps knows of a step. It may come after the trace."""

    between_lines: str
    slow_times: list[SlowTime]


@dataclass
class TraceContext:
    """What is known of a trace from outside its bytes; each None means 'not known', and no answer depends on a guess."""

    step: int | None = None
    step_s: float | None = None  # wall time of the traced session.run
    median_s: float | None = None  # the run's median untraced step
    between_steps_s: float | None = None  # median time that passes between two steps of the run, outside session.run
    before_step_s: float | None = None  # the same just before this step
    between_input_s: float | None = None  # of these times: the loop waits for the next element of a tf.data dataset
    before_input_s: float | None = None
    between_lines: str = ""  # the lines of Python in that time, with their shares, as they were sampled; "": not known
    input_text: str = ""  # what limited the input pipeline just before the trace, in words; "": nothing, or not known
    input_advice: str = ""  # what to change about that
    slow_times: list[SlowTime] = field(default_factory=list)  # of this step, where it was a slow one
    feeds: int | None = None  # tensors that each step of the run is fed
    fed: list[FedValue] | None = None  # what this step was fed, the largest first; of a function: arguments that are no tensors
    began_at: float | None = None  # epoch seconds at which the session was called
    retraced: str = ""  # how the signature of the step's function differs from the one that was traced before
    other_traced: int = 0  # how many other steps of the run are traced, but for those that were expected to be slow,
    fastest_traced_s: float | None = None  # and the shortest of their wall times
    follows_traced: bool = False  # the step before was traced, too
    gpus: int | None = None  # GPUs that TensorFlow sees
    trace_level: str = ""  # "FULL_TRACE", "SOFTWARE_TRACE", ...
    gpu_facts: GpuFacts = field(default_factory=lambda: GpuFacts())
    gpu_devices: list[GpuDevice] = field(default_factory=list)  # of the process, by their numbers; empty: not known
    measured_roof: MeasuredRoof | None = None  # of the machine that the step ran on
    cpu_use: CpuUse = field(default_factory=lambda: CpuUse())
    partition_graphs_asked: bool | None = None
    distributed: bool | None = None  # the session's target was a grpc one
    communication_ops: str = ""  # the user's own pattern of op types or names that communicate
    device_pattern: str = ""  # only devices matching were kept, by the user's wish
    rank: int | None = None
    title: str = ""  # the run's title, for headings
    findings: list[Finding] = field(default_factory=list)  # what an imported file lacks: part of every answer

    @property
    def watched(self) -> Watched:
        return {"between_lines": self.between_lines, "slow_times": self.slow_times}
