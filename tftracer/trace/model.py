"""``Trace``: the type that every trace format is decoded into, and that all analyses read.

A ``Trace`` is a struct of NumPy columns with one entry per node (one execution of one op or kernel), in the order of the source.
Times are int64 nanoseconds since ``origin_ns``. Strings are dictionary-coded: a column of int32 codes into a ``StringTable``, so
that no Python object is created per node.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, cast

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.machine import GpuDevice, MeasuredRoof
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int8, Int32, Int64
from tftracer.trace.device_peaks import Hardware

#: TensorFlow stops collecting at this many nodes per step (kMaxCollectedNodes): a trace with exactly as many is cut off.
MAX_COLLECTED_NODES = 1 << 20

#: The note of a profile without the ops that TensorFlow considers cheap; the number of recorded ops follows it.
OPS_LEFT_OUT = "cheap_ops_left_out"

#: Stands in a time column for a time that is missing in the source, or not valid.
UNKNOWN_TIME = -1


class DeviceKind(enum.Enum):
    """The kind of device that a name in step_stats stands for."""

    CPU = "cpu"
    GPU = "gpu"  # a GPU's op entries: launches on the host
    STREAM = "stream"  # one CUDA stream: kernels
    MEMCPY = "memcpy"  # one stream of copies, `/device:GPU:0/stream:14<MemcpyH2D>`
    SYNC = "sync"
    REPEAT = "repeat"  # `stream:all` and `memcpy`: repeats the nodes of the single streams
    TPU = "tpu"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Device:
    """A parsed device name (decode/device_names.py)."""

    name: str  # as in the source
    title: str  # short, for people: `CPU:0`, `ps/0 CPU:0`, `GPU:0 stream 14 (MemcpyH2D)`
    kind: DeviceKind
    job: str = ""  # "" if the name has none
    task: int = -1
    index: int = -1  # the number after CPU:, GPU:
    stream: str = ""  # "12", "14", "all"
    parent: str = ""  # the physical device, `/device:GPU:0`: the same for its launches and its streams
    repeats: bool = False  # its nodes repeat those of other devices: never add them up


class NodeKind(enum.IntEnum):
    """The kind of work that a node's time is spent on. The page gets these values in the timeline's ``kind`` column."""

    COMPUTE = 0  # an op that runs on its device, or a GPU kernel
    COMMUNICATION = 1  # between processes or devices: RecvTensor, Send/Recv, Horovod, NCCL, collectives, DDL
    COPY = 2  # a copy between host and device, or on a device (memcpy, memset)
    LAUNCH = 3  # the host launches work; the kernels are on streams of their own
    SYNC = 4
    INPUT = 5  # the input pipeline: IteratorGetNext, queue dequeues, PyFunc feeding
    CONTROL = 6  # NoOp, Switch, Merge, Enter, Exit, NextIteration, _Source: no work of their own
    REPEAT = 7  # on a repeating device: drawn, never added up
    OUTSIDE = 8  # not part of the step: work of other threads, or before or after the step; drawn, never added up


@dataclass
class Span:
    """A slice of the raw bytes."""

    offset: int
    size: int


@dataclass
class Allocations:
    """The events of allocators, one entry per allocation or deallocation, in the order of time."""

    time: Int64  # ns, on the profile's clock
    is_freed: Bool
    allocator: Int64  # codes into allocators
    in_use: Int64  # the allocator's bytes after the event, memory from before the profile included
    bytes: Int64
    address: Int64
    op: Int64  # codes into ops
    dtype: Int64  # tensorflow.DataType
    node: Int64  # the op that was running on the thread, -1: none
    allocators: list[str]
    ops: list[str]  # names, as the allocator has them


class Tensor(NamedTuple):
    """One input or output of an op."""

    dtype: int  # tensorflow.DataType, 0: not known
    shape: tuple[int, ...] | None  # None: not known


class Computed(NamedTuple):
    """The FLOPs and bytes of an op according to the source; None: not known."""

    flops: float | None
    bytes: float | None
    dtype: int  # of the result: tensorflow.DataType, 0: not known


@dataclass
class Calls:
    """The tensors that nodes were called with. Nodes refer by index to shared lists of inputs, and to XLA's ops."""

    inputs: list[list[Tensor]]
    input_of: Int64  # [n] index into ``inputs``; -1: not known
    outputs: dict[int, list[Tensor]]  # by node
    hlo: list[Computed]
    hlo_of: Int64  # [n] index into ``hlo``; -1: not compiled by XLA

    @classmethod
    def none(cls, n: int) -> Calls:
        return cls([], np.full(n, -1, np.int64), {}, [], np.full(n, -1, np.int64))


class NodeSource(Protocol):
    """Reads further details of nodes from the trace's source."""

    def facts(self, node: int) -> list[tuple[str, str]]:
        """Return (name, value) pairs that users read."""

    def hlo(self, node: int) -> str:
        """Return XLA's text of the op, "" if there is none."""

    origin: int  # the source's time at the trace's time 0

    def allocations(self) -> Allocations | None:
        """Return the events of allocators; None if the source has none."""

    def calls(self) -> Calls:
        """Return the tensors that ops were called with."""

    def graphs(self) -> list[Any]:
        """Return the complete GraphDefs that ran; [] if the source has none."""


class Content:
    """The bytes that a trace was decoded from. They may be released, and are loaded again when they are needed."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._load: Callable[[], bytes] = lambda: data
        self._data: bytes | None = data

    def release(self, load: Callable[[], bytes]) -> None:
        """Free the bytes; ``load`` returns them when they are needed again."""
        self._load, self._data = load, None

    @property
    def data(self) -> bytes:
        """The bytes. Raises what ``load`` raises."""
        if self._data is None:
            self._data = self._load()
        return self._data


@dataclass
class Trace:
    """One traced step as columns. Details of a node are read from ``raw`` at ``offset[i] : offset[i] + size[i]``."""

    content: Content
    origin_ns: int  # epoch nanoseconds of time 0 (the earliest start)
    devices: list[Device]  # merged by name
    names: StringTable  # node names
    ops: StringTable  # op types: `MatMul`; "" if the label has none
    labels: StringTable  # timeline labels; equal labels may appear several times if each node has a name of its own
    device: Int32  # [n] codes into devices
    name: Int32  # [n] codes into names
    op: Int32  # [n] codes into ops
    label: Int32  # [n] codes into labels
    kind: Int8  # [n] NodeKind
    start: Int64  # [n] ns since origin: all_start, or UNKNOWN_TIME; other values below 0 only before the step (OUTSIDE)
    end: Int64  # [n] ns since origin: all_start + all_end_rel; never < start
    op_start: Int64  # [n] ns since origin, or UNKNOWN_TIME
    op_end: Int64  # [n]
    scheduled: Int64  # [n] ns since origin, or UNKNOWN_TIME; 0 if before the origin
    thread: Int64  # [n] thread_id
    offset: Int64  # [n] position of the NodeExecStats in raw
    size: Int64  # [n] its length
    bytes_moved: Int64  # [n] payload of a RecvTensor or memcpy, else 0
    partition_graphs: list[Span] = field(default_factory=list)
    cost_graph: Span | None = None
    #: Parts that the decoder could not read: each a code of verdict/findings.py, or ``code: details``.
    notes: list[str] = field(default_factory=list)
    source: str = "run_metadata"  # or "xspace", or "job" for several processes' traces merged into one
    launch: Int64 | None = None  # [n] the node that launched each, -1: none; None: not known (physical_devices.py)
    launched_at: Int64 | None = None  # [n] ns since origin: launch of a kernel or copy, else UNKNOWN_TIME; 0 if before the origin
    known_edges: tuple[Int64, ...] = ()  # (nodes, nodes that waited for them) as the source has them
    details: NodeSource | None = None  # further details of nodes
    load_graph: Callable[[], bytes] | None = None  # builds a GraphDef, for sources whose raw bytes have none
    may_be_double: bool = True  # some op may compute in float64
    #: Whether ``load_graph`` builds the graph from the definitions of the step's functions, because the source lacks the graphs
    #: that ran. TensorFlow optimizes functions before they run, so the built graph lacks ops that TensorFlow added.
    has_definitions: bool = False
    hardware: dict[str, Hardware] = field(default_factory=dict)  # of physical devices, by ``parent``

    @property
    def raw(self) -> bytes:
        """The serialized RunMetadata or XSpace; b"" for other sources."""
        return self.content.data

    @property
    def n(self) -> int:
        return len(self.start)

    @property
    def duration_ns(self) -> int:
        """The duration of the step."""
        return max(int(self.end.max(where=self.kind != NodeKind.OUTSIDE, initial=0)), 0)

    @property
    def counted(self) -> Bool:
        """[n] whether a node counts as work: it has a time, belongs to the step, and is not on a repeating device."""
        return (self.kind < NodeKind.REPEAT) & (self.start >= 0)

    def op_types_where(self, accepts: Callable[[str], object]) -> Bool:
        """Return [op types] whether ``accepts`` returns a true value for each; one False for a trace without op types."""
        return np.array([bool(accepts(op)) for op in self.ops] or [False])

    def on_devices_where(self, accepts: Callable[[Device], object]) -> Bool:
        """Return [n] whether ``accepts`` returns a true value for the device of each node."""
        return np.array([bool(accepts(device)) for device in self.devices] or [False])[self.device]

    def node_columns(self, node: Int64) -> dict[str, list[Any]]:
        """Return the first columns of a table of nodes, with one row for each of the given nodes."""
        return {
            "node": node.tolist(),
            "name": self.names.texts(self.name[node]),
            "op": self.ops.texts(self.op[node]),
            "device": [self.devices[code].name for code in self.device[node].tolist()],
            "start_ns": self.start[node].astype(float).tolist(),
        }

    @property
    def drawn(self) -> Bool:
        """[n] whether the timeline shows the node: it has a time, which may be negative only for nodes outside the step."""
        drawn: Bool = (self.start >= 0) | (self.kind == NodeKind.OUTSIDE)
        return drawn


class GpuFacts(TypedDict, total=False):
    """GPU profiling in the traced process (session/process/gpu_profiling.py). A missing key: not known."""

    build: Literal["cuda", "rocm", "cpu"]  # what TensorFlow was built for
    cuda_version: str  # the version that TensorFlow was built with
    driver: bool  # an NVIDIA driver is installed
    visible_devices: str  # CUDA_VISIBLE_DEVICES, if set
    libcupti_loaded: str  # the file, "" if none is loaded
    libcupti_file: str  # a file of that CUDA version that is not loaded, "" if none was found
    restricted: bool  # only administrators may profile, and the process is not privileged


class CpuUse(TypedDict, total=False):
    """The traced process's use of the CPUs during the step (capture/traces/cpu_use.py). A missing key: not known."""

    wall_s: float  # length of the interval in which the other values were measured
    cpu_s: float  # CPU time of all threads except the tracer's own
    job_cpu_s: float  # CPU time of all threads, and of the processes that this one has started (not of the other ranks)
    busiest_thread_s: float  # the highest CPU time of one thread
    run_queue_s: float  # time in which threads were ready to run and had no CPU, summed over threads
    cpus: float  # number of CPUs that the process may use


#: Maximum number of fed values that are described: the largest. More may have been fed.
MAX_FED_VALUES = 200
#: Why a fed value is copied before TensorFlow reads it. "order": the array is not contiguous in C order. "list": arrays in a
#: Python list are joined. "": neither, or not known.
FedCopy = Literal["", "order", "list"]


class FedValue(TypedDict):
    """A value that the script passes to a step and that TensorFlow has to copy or convert: an array, or a Python list."""

    name: str  # name of the fed tensor, or of the function's argument
    dtype: str  # NumPy's name; "string"; "list" of Python values; "object": an array of Python values
    shape: list[int]
    bytes: int | None  # None: not known (strings, lists)
    tensor_dtype: str  # type of the tensor that the value is converted to; "": not known
    copied: FedCopy


class SlowTime(TypedDict):
    """A part of a step, or of the time before it, that took longer than usual, as the watch explains it (slow/watch)."""

    inside: bool  # whether the time is inside the step; else it is before the step
    duration_s: float
    usual_s: float | None  # None: not known
    cause: str  # a StallCause
    #: Which threads had no CPU, if that is the cause: "own": the step's thread; "any": threads of the process. "": another cause,
    #: or not known.
    without_cpu: str
    text: str  # the explanation in words
    lines: str  # the Python lines in it, with their shares; "": not known


class Watched(TypedDict):
    """Facts from the watch for slow steps (slow/watch); may arrive after the trace. Fields: see ``TraceContext``."""

    between_lines: str
    sampled_gc: float
    turn_lines: str
    lock_holder: str
    slow_times: list[SlowTime]
    steps_around_s: list[float]


@dataclass
class TraceContext:
    """Facts about a trace that are not in its bytes. None: not known."""

    step: int | None = None
    step_s: float | None = None  # wall time of the traced session.run
    median_s: float | None = None  # median duration of the run's untraced steps before this step
    run_median_s: float | None = None  # median duration of the run's untraced steps, later ones included
    between_steps_s: float | None = None  # median time between two steps of the run, outside session.run
    before_step_s: float | None = None  # time between the previous step and this step
    #: Median time from the end of a step to the end of the run's next one, and that time of this step. Other runs may be in it.
    turn_s: float | None = None
    this_turn_s: float | None = None
    between_input_s: float | None = None  # part of between_steps_s in which the loop waits for a tf.data dataset
    before_input_s: float | None = None  # the same part of before_step_s
    between_lines: str = ""  # the Python lines sampled between steps, with their shares; "": not known
    sampled_gc: float = 0.0  # share of garbage collections in the time of these lines, or of turn_lines; 0: none, or not known
    turn_lines: str = ""  # the lines of whole steps and the time between them, if steps run Python of the script
    #: The script's thread that had Python's lock in several slow steps of the run: "thread loader, in load() (a.py:3)".
    lock_holder: str = ""
    input_text: str = ""  # the limit of the input pipeline just before the trace, in words; "": none, or not known
    input_advice: str = ""  # advice on the input pipeline
    #: Time of the largest part of the training outside usual steps (such as checkpoints), as a share of the time since the first
    #: step. None: too small to name, or not known.
    beside_share: float | None = None
    beside_text: str = ""  # name of that part; for slow steps, their largest known cause
    beside_kind: str = ""  # the kind of that part (contract/ledger.py)
    slow_times: list[SlowTime] = field(default_factory=list)  # of this step, if it was slow
    steps_around_s: list[float] = field(default_factory=list)  # untraced steps just before and after this one; empty: not known
    feeds: int | None = None  # number of tensors that each step of the run is fed
    fed: list[FedValue] | None = None  # the values fed to this step, or a function's arguments that are no tensors; largest first
    began_at: float | None = None  # epoch seconds at which the session was called
    #: How the arguments of the run's function differ from those of the most similar earlier call for which TensorFlow built the
    #: function. "": TensorFlow had not built the function before, or not known.
    retraced: str = ""
    other_traced: int = 0  # number of other traced steps of the run, without those that were expected to be slow
    fastest_traced_s: float | None = None  # the shortest wall time of these other steps
    follows_traced: bool = False  # the previous step was traced, too
    gpus: int | None = None  # GPUs that TensorFlow sees
    trace_level: str = ""  # "FULL_TRACE", "SOFTWARE_TRACE", ...
    gpu_facts: GpuFacts = field(default_factory=lambda: GpuFacts())
    gpu_devices: list[GpuDevice] = field(default_factory=list)  # of the process, by their numbers; empty: not known
    measured_roof: MeasuredRoof | None = None  # of the machine that the step ran on
    cpu_use: CpuUse = field(default_factory=lambda: CpuUse())
    partition_graphs_asked: bool | None = None
    distributed: bool | None = None  # the session's target is a gRPC address
    communication_ops: str = ""  # the user's pattern of op types or names that communicate
    device_pattern: str = ""  # the user's pattern of devices to show
    rank: int | None = None
    title: str = ""  # the run's title, for headings
    findings: list[Finding] = field(default_factory=list)  # about parts that an imported file lacks; every answer includes them

    @property
    def watched(self) -> Watched:
        return cast(Watched, {name: getattr(self, name) for name in Watched.__annotations__})
