"""The tables and their columns: names, types and units. Scripts and files depend on them, so released names do not change.

``_ns`` are nanoseconds, ``_at`` is a moment in UTC (``datetime64[ns]``, without a time zone), ``_bytes`` are bytes. Unknown
values are masked in NumPy and NULL in Parquet, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tftracer.contract.ledger import LedgerKind
from tftracer.contract.memory_growth import MemoryKind
from tftracer.contract.stalls import StallCause
from tftracer.contract.trace import BudgetPart

#: Changes when a column changes its meaning, its type or its name; new columns do not change it.
SCHEMA_VERSION = 1

Type = Literal["int", "float", "bool", "text", "time"]


@dataclass(frozen=True)
class Field:
    """A column. ``unknown``: whether values may be unknown.

    ``counts``: what the column counts ("step") if it says how many things a row stands for; else "".
    """

    name: str
    type: Type
    about: str
    unknown: bool = False
    counts: str = ""


def _maybe(name: str, type_: Type, about: str) -> Field:
    return Field(name, type_, about, unknown=True)


_TRACE = (
    Field("trace_id", "int", "the trace's number in its session"),
    Field("run_id", "int", "the number of its run"),
    _maybe("step", "int", "the number of the traced step in its run, from 1"),
)

SESSION = (
    Field("session_id", "text", "the same for all files of one session"),
    Field("title", "text", "the process's name in its job, such as rank 0 or ps/0"),
    Field("host", "text", "the machine's name"),
    _maybe("pid", "int", "number of the process"),
    Field("role", "text", "worker, ps or chief, if the launcher sets it"),
    _maybe("size", "int", "processes in the job"),
    Field("launcher", "text", "horovod, openmpi, slurm, ..."),
    Field("tensorflow", "text", "version"),
    Field("tftracer", "text", "version"),
    Field("python", "text", "version"),
    Field("command", "text", "the script's command line"),
    _maybe("gpus", "int", "GPUs that TensorFlow saw"),
    _maybe("started_at", "time", "when recording began"),
    _maybe("ended_at", "time", "when recording ended"),
    Field("steps_lost", "int", "steps that were not counted because the queue was full"),
    Field("cut", "text", "how the file ends early, in words"),
    Field("damage", "text", "which parts of the file are damaged, in words"),
    _maybe(
        "clock_offset_ns",
        "int",
        "how far this clock was ahead of the clock of the job's first process; it is subtracted from all times",
    ),
    _maybe("clock_error_ns", "int", "twice the standard error of clock_offset_ns"),
)
RUNS = (
    Field("run_id", "int", "the run's number in its session"),
    Field("title", "text", "the run's name on the page"),
    Field("origin", "text", "the file that it was loaded from, empty for the session's own"),
    Field("fetches", "text", "names of what it fetches, separated by commas"),
    Field("feeds", "text", "names of what it is fed, separated by commas"),
    _maybe("steps", "int", "number of its steps"),
    Field("traces", "int", "how many of its steps have a trace"),
    *(
        _maybe(f"{name}_ns", "int", f"{about} step time, without traced steps{', accurate to 1%' if name[0] == 'p' else ''}")
        for name, about in (
            ("mean", "mean"),
            ("p50", "median"),
            ("p95", "95th percentile of the"),
            ("p99", "99th percentile of the"),
            ("min", "shortest"),
            ("max", "longest"),
        )
    ),
    _maybe("between_steps_ns", "int", "median time between two steps, outside session.run"),
    _maybe("first_run_at", "time", "start of its first step"),
    _maybe("last_run_at", "time", "start of its last step"),
)
STEPS = (
    Field("run_id", "int", "the number of its run"),
    Field("step", "int", "number of the first step of the row, from 1"),
    Field("count", "int", "number of steps that the row stands for: 1, or more for older steps", counts="step"),
    Field("start_at", "time", "start of the first step"),
    Field("mean_ns", "int", "mean time of these steps"),
    Field("min_ns", "int", "the shortest of these steps"),
    Field("max_ns", "int", "the longest of these steps"),
    Field("traced", "bool", "whether one of the steps was traced, which makes it longer"),
)
TRACES = (
    *_TRACE,
    _maybe("start_at", "time", "start of the step"),
    _maybe("origin_at", "time", "time 0 of the trace's slices, tensors and transfers"),
    _maybe("duration_ns", "int", "wall time of the traced session.run or call"),
    _maybe("median_ns", "int", "median of the run's untraced steps when this step was traced"),
    _maybe("nodes", "int", "executions of ops and kernels"),
    Field("bytes", "int", "size of the trace as TensorFlow returned it"),
    Field("devices", "text", "names, separated by commas"),
    Field("asked_by", "text", "user, global, script or slow"),
    Field("state", "text", "ready, or broken for a trace that cannot be read"),
    Field("source", "text", "run_metadata or xspace"),
    Field("headline", "text", "the first sentence of the verdict"),
    Field("note", "text", "the user's note"),
    _maybe("length_ns", "int", "from the first op's start to the last op's end"),
    *(_maybe(f"{part}_ns", "int", f"part of the budget: {part.replace('_', ' ')}") for part in get_args(BudgetPart)),
    _maybe("memory_peak_bytes", "int", "the highest peak of all allocators"),
)
SLICES = (
    *_TRACE,
    Field("node", "int", "number of the execution in its trace"),
    Field("device", "text", "as TensorFlow names it"),
    Field("name", "text", "the node's name"),
    Field("op", "text", "op type; empty where the trace does not record it"),
    Field(
        "kind",
        "text",
        "compute, communication, copy, launch, sync, input, control, repeat (counted elsewhere) or outside (no part of the step)",
    ),
    _maybe("start_ns", "int", "start, since the trace's origin"),
    _maybe("dur_ns", "int", "length"),
    Field("self_ns", "float", "length; moments in which several ops ran on the device are shared among them"),
    _maybe("delay_ns", "int", "from scheduled to start"),
    _maybe("thread", "int", "thread number, where TensorFlow records one"),
    Field("bytes_moved", "int", "bytes of a transfer or copy, 0 for others"),
    _maybe("flops", "float", "floating-point operations of a matrix op, nominal; 0 for others"),
    _maybe("traffic_bytes", "float", "bytes that it has to read and write at least"),
    Field(
        "counted",
        "bool",
        "whether it counts in the statistics: not if it has no time, is outside the step, or repeats another slice's work",
    ),
    Field("critical", "bool", "whether it is on the critical path"),
)
OPS = (
    *_TRACE,
    Field("key", "text", "what the row is of: an op type, a node's name, or a name scope"),
    Field("op", "text", "op type; empty for a scope"),
    Field("device", "text", "empty if it ran on several"),
    Field("count", "int", "executions"),
    Field("total_ns", "int", "sum of their lengths"),
    Field("self_ns", "float", "the same, each moment shared among the ops that ran on the device"),
    Field("max_ns", "int", "the longest"),
    Field("host_ns", "int", "part of the total on the host"),
    Field("device_ns", "int", "part of the total on a GPU's streams"),
    _maybe("delay_ns", "int", "sum of the scheduling delays"),
    Field("longest_node", "int", "number of the longest execution"),
    _maybe("flops", "float", "floating-point operations of its matrix ops, nominal, as far as they are known"),
    Field("flops_unknown", "int", "executions whose operations are not known"),
    _maybe("traffic_bytes", "float", "bytes that its ops have to read and write at least, as far as they are known"),
    Field("traffic_unknown", "int", "executions whose bytes are not known"),
)
_IN_ITS_TRACES = "in the traces that it ran in"
OPS_OVER_TRACES = (
    Field("run_id", "int", "the number of the run"),
    Field("key", "text", "what the row is of: an op type, a node's name, or a name scope"),
    Field("op", "text", "op type; empty for a scope"),
    Field("traces", "int", "traces of the run that it ran in"),
    Field("of_traces", "int", "traces of the run that were read"),
    Field("count", "float", f"mean executions {_IN_ITS_TRACES}"),
    Field("mean_ns", "float", f"mean of its total time in a trace, {_IN_ITS_TRACES}"),
    Field("median_ns", "float", "the median of these times"),
    _maybe("spread_ns", "float", "their sample standard deviation; not known with one trace"),
    Field("shortest_ns", "float", "the shortest"),
    Field("longest_ns", "float", "the longest"),
    Field("share", "float", "of the total op time of all the traces, 0 to 1"),
    _maybe("flops", "float", "mean floating-point operations of its matrix ops, nominal"),
    _maybe(
        "best_flops_per_s", "float", "its highest rate in a trace: FLOPs per second of its time, on a GPU of its kernels' time"
    ),
    _maybe("median_flops_per_s", "float", "the median of these rates"),
)
TENSORS = (
    *_TRACE,
    _maybe("node", "int", "number of the execution that made it"),
    Field("name", "text", "the node's name"),
    _maybe("output", "int", "output slot; not known for allocations in a profile"),
    Field("op", "text", "op type"),
    Field("device", "text", "as TensorFlow names it"),
    Field("allocator", "text", "the allocator's name"),
    Field("bytes", "int", "size in memory"),
    Field("shape", "text", "such as [32, 128]; empty where it is not known"),
    Field("dtype", "text", "such as float32"),
    Field("alloc_ns", "int", "when it was allocated, since the trace's origin"),
    Field("free_ns", "int", "when it was freed"),
    _maybe("last_consumer", "int", "number of the execution that used it last"),
)
TRANSFERS = (
    *_TRACE,
    Field("node", "int", "number of the execution that received it"),
    Field("tensor", "text", "the tensor's name"),
    Field("op", "text", "op type"),
    Field("source", "text", "device that sent it"),
    Field("destination", "text", "device that received it"),
    Field("bytes", "int", "size on the wire"),
    Field("start_ns", "int", "when it was sent, since the trace's origin"),
    Field("dur_ns", "int", "until it had arrived"),
)
FINDINGS = (
    *_TRACE,
    Field("code", "text", "what the trace lacks"),
    Field("severity", "text", "info, warning or error"),
    Field("message", "text", "the code as a sentence"),
    Field("remedy", "text", "what to do"),
)
SENTENCES = (
    *_TRACE,
    Field("place", "int", "position in the verdict, from 1"),
    Field("code", "text", "code of the sentence"),
    Field("text", "text", "the sentence"),
    Field("advice", "text", "what to try"),
    Field("share", "float", "share of the step, 0 to 1"),
)
STALLS = (
    Field("stall_id", "int", "the slow step's number in its session"),
    Field("run_id", "int", "the number of its run"),
    _maybe("step", "int", "the slow step, or the step after the slow time"),
    Field("inside", "bool", "whether the time passed inside the step; else between the previous step and this one"),
    Field("start_at", "time", "when it began"),
    Field("duration_ns", "int", "how long it took"),
    _maybe("expected_ns", "int", "the run's median at that time"),
    Field("cause", "text", ", ".join(get_args(StallCause))),
    Field("code", "text", "the code that took the time; empty if not known"),
    Field("text", "text", "the cause in words"),
    Field("uncertainty", "text", "why the cause is uncertain"),
    Field("samples", "int", "samples of the stack"),
    _maybe("trace_id", "int", "the trace of this step"),
    _maybe("every", "int", "steps between slow steps that come regularly"),
)
LEDGER = (
    Field("kind", "text", ", ".join(get_args(LedgerKind))),
    Field("name", "text", "the kind in words"),
    Field("duration_ns", "int", "part of the process's wall time; the rows of a session add up to all of it"),
    Field("permille", "int", "thousandths of the wall time; the rows of a session add up to 1000"),
    Field("items", "text", "its items, the longest first, each with its time"),
)
INPUT_STAGES = (
    Field("pipeline", "text", "a tf.data pipeline, from its source to its last stage"),
    Field("unit", "text", "what the training takes from the pipeline: batches, or elements"),
    _maybe("pipeline_rate", "float", "elements a second that the training takes from it"),
    _maybe("wait", "float", "share of the time in which the training waits for it, 0 to 1"),
    _maybe("predicted_rate", "float", "maximum elements a second if the advice about the limiting stage is followed"),
    Field("depth", "int", "depth of the stage in the tree, whose root is the last stage"),
    Field("name", "text", "name of the stage after TensorFlow's optimization"),
    Field("function", "text", "function that the stage calls; empty if not known"),
    Field("place", "text", "file and line of the function"),
    Field("elements", "int", "number of elements that the stage has produced"),
    _maybe("element_ns", "int", "its own processing time for one element"),
    _maybe("rate", "float", "its elements a second"),
    _maybe("busy", "float", "threads that work for it, on average"),
    _maybe("parallelism", "int", "calls at once"),
    _maybe("parallelism_max", "int", "calls at once at most"),
    _maybe("buffered", "float", "elements in its buffer, on average"),
    _maybe("buffer_size", "int", "the size of its buffer"),
    _maybe("capacity", "float", "elements a second of the pipeline if only this stage limited it"),
    Field("is_limiting", "bool", "whether it limits the pipeline; False for all stages if that is not known"),
)
MEMORY_GROWTH = (
    Field("since", "time", "when the growth began"),
    Field("until", "time", "until when it is known"),
    Field("growing", "bool", "whether the memory still grew then"),
    Field("start_bytes", "int", "memory of the process at the beginning"),
    Field("end_bytes", "int", "memory of the process at the end"),
    Field("bytes_per_s", "float", "growth in bytes a second"),
    Field("kind", "text", ", ".join(get_args(MemoryKind))),
    Field("name", "text", "name of the type or of the functions whose number grew; empty if not known"),
    Field("place", "text", "file and line that made them; empty if not known"),
    _maybe("grown", "int", "by how much their number grew while they were counted, for some 20 s"),
    Field("text", "text", "the growth and its cause in words"),
    Field("advice", "text", "what to try"),
)

#: Table name -> columns, in the order in which they are written.
TABLES: dict[str, tuple[Field, ...]] = {
    "session": SESSION,
    "runs": RUNS,
    "steps": STEPS,
    "traces": TRACES,
    "slices": SLICES,
    "ops": OPS,
    "tensors": TENSORS,
    "transfers": TRANSFERS,
    "findings": FINDINGS,
    "sentences": SENTENCES,
    "stalls": STALLS,
    "ledger": LEDGER,
    "input_stages": INPUT_STAGES,
    "memory_growth": MEMORY_GROWTH,
}
#: All tables: those above, and the tables that only scripts can read, whose rows combine several traces.
SCRIPT_TABLES = {**TABLES, "ops_over_traces": OPS_OVER_TRACES}
#: The tables in which each row belongs to a trace.
OF_TRACES = tuple(name for name, fields in TABLES.items() if fields[: len(_TRACE)] == _TRACE)
