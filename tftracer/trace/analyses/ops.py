"""Op statistics: executions grouped by op type, by op or by name scope, computed in NumPy.

- *count*: executions of ops. A launch with the kernels and copies that it launched is one execution; their times are added up.
- *total*: the sum of the durations (end - start). Ops that run at the same time count in full. A stage of tf.data counts
  without the stages that it calls.
- *self*: each moment in which k ops of a device run counts 1/k for each of them. An op that only waits for the ops inside it (a
  function call, a ``While``) counts only while nothing else runs. The self times of a device add up to its busy time.
  (TensorFlow records no thread numbers on a CPU, so nested and concurrent ops look alike.)
- *share*: the total as a part of the sum of all totals.
- *host*: ops of a CPU, and launches. *device*: kernels and copies on a GPU's streams, counted under the op that launched them.
- *delay*: the sum of the known scheduling delays; unknown if no delay is known.
- *FLOPs*, *bytes*: sums over the executions for which they are known (arithmetic.py), and the number of other executions.
- *by scope*: an op counts for each scope that it is in (``a`` includes ``a/b``); an op without a ``/`` is in no scope.

Devices that repeat the executions of other devices are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import ComputingOpRow, OpRow, OpStatistics
from tftracer.errors import UnknownError
from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.arithmetic import Arithmetic
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.name_scopes import Scopes, scopes_of
from tftracer.trace.arrays.columns import Coded, Values, rows_of
from tftracer.trace.arrays.groups import largest_first, largest_in_groups
from tftracer.trace.arrays.intervals import fair_shares
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Float64, Int32, Int64, Rows
from tftracer.trace.decode.profile_host import TF_DATA
from tftracer.trace.model import UNKNOWN_TIME, Trace

MAX_ROWS = 10_000

#: The key of the row of nodes without an op type.
NO_OP = "(no op type)"

By = Literal["type", "name", "scope"]


def check_grouping(by: str) -> None:
    """Raise UnknownError for an unknown grouping."""
    if by not in get_args(By):
        raise UnknownError(f"Ops are grouped by type, name or scope, not by {by!r}.")


#: Ops that run other ops of the trace and only wait for them.
CALLS = frozenset([
    "PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "SymbolicGradient", "While", "StatelessWhile", "If",
    "StatelessIf", "Case", "StatelessCase", "For", "MapDefun", "BatchFunction", "TPUPartitionedCall",
])  # fmt: skip


@dataclass(frozen=True)
class Work(Rows):
    """The contribution of each counted node to its row; one entry per counted node."""

    node: Int64  # index in the trace
    op: Int32  # op type; for a kernel, the op type of its launch
    name: Int32
    duration: Int64
    self_ns: Float64
    delay: Int64  # from scheduled to start, or UNKNOWN_TIME
    on_stream: Bool
    launched: Bool  # counted under the op that launched it
    execution_ns: Int64  # for a launch, its time and that of everything it launched; 0 for kernels and copies with a launch


def work_of(trace: Trace) -> Work:
    """Compute the entries of all counted nodes, for any grouping."""
    node = np.flatnonzero(trace.counted)
    self_ns = self_times(trace)[node]  # first, because it needs the most temporary memory
    op, name = trace.op[node], trace.name[node]
    stream, is_launched = physical_devices.on_stream(trace), np.zeros(len(node), bool)
    duration = execution_ns = _without_inner_stages(trace)[node]
    if stream.any():
        launch = launch_of(trace)[node]
        is_launched = launch >= 0
        op, name = np.where(is_launched, trace.op[launch], op), np.where(is_launched, trace.name[launch], name)
        execution_ns = np.where(is_launched, 0, duration)
        np.add.at(execution_ns, np.searchsorted(node, launch[is_launched]), duration[is_launched])
    scheduled, start = trace.scheduled[node], trace.start[node]
    delay = np.where(scheduled == UNKNOWN_TIME, UNKNOWN_TIME, np.maximum(start - scheduled, 0))
    return Work(node, op, name, duration, self_ns, delay, stream[node], is_launched, execution_ns)


def _without_inner_stages(trace: Trace) -> Int64:
    """Return [n] the duration of each node in ns; for a stage of tf.data, without the time of the stages that it called."""
    duration: Int64 = trace.end - trace.start
    if not trace.known_edges:
        return duration
    (called, caller), is_stage = trace.known_edges, trace.on_devices_where(lambda device: device.name == TF_DATA)
    inner = is_stage[called] & is_stage[caller]
    inner &= (trace.thread[called] == trace.thread[caller]) & trace.counted[called]
    within = duration[called[inner]]
    result = duration.copy()
    np.subtract.at(result, caller[inner], within)
    return np.maximum(result, 0)


def self_times(trace: Trace) -> Float64:
    """Return [n] self times in ns, as defined above; 0 on repeating devices."""
    result = np.zeros(trace.n)
    node = np.flatnonzero(trace.counted)
    if len(node):
        running = ~trace.op_types_where(CALLS.__contains__)[trace.op[node]]
        share, alone = fair_shares(*_devices_in_sequence(trace, node), running)
        share += alone
        result[node] = share
    return result


def _devices_in_sequence(trace: Trace, node: Int64) -> tuple[Int64, Int64]:
    """Return (starts, ends), shifted by device so that nodes of different devices do not overlap."""
    start, end = trace.start[node], trace.end[node]
    offset = trace.device[node] * np.int64(trace.duration_ns + 1)
    start += offset
    end += offset
    return start, end


@dataclass(frozen=True)
class FlopsAndBytes:
    """FLOPs and bytes of ops, one entry per group or per node."""

    flops: Float64  # sum over the executions for which they are known
    flops_unknown: Float64  # number of the other executions
    bytes: Float64
    bytes_unknown: Float64

    @property
    def no_flops(self) -> Bool:
        """Whether no FLOPs are known. A launch has 0 known FLOPs, so if other executions are unknown, a sum of 0 says nothing."""
        return np.asarray((self.flops == 0) & (self.flops_unknown > 0))

    @property
    def no_bytes(self) -> Bool:
        return np.asarray((self.bytes == 0) & (self.bytes_unknown > 0))

    def each(self, apply: Callable[[Float64], Float64]) -> FlopsAndBytes:
        return FlopsAndBytes(apply(self.flops), apply(self.flops_unknown), apply(self.bytes), apply(self.bytes_unknown))

    def __getitem__(self, rows: Int64) -> FlopsAndBytes:
        return self.each(lambda column: column[rows])


@dataclass(frozen=True)
class OpTable:
    """The rows of a table of ops as columns, the largest total first."""

    key: Int64  # codes into keys
    keys: StringTable
    op: Int64  # codes into the trace's ops; -1: several types
    device: Int64  # codes into the trace's devices; -1: several devices
    sums: Sums
    max_ns: Float64
    delay_ns: Float64  # UNKNOWN_TIME if none is known
    node: Int64  # the longest execution
    left_out: int  # rows beyond the table's limit
    unnamed: str  # shown for an empty key


def op_table(trace: Trace, by: By, work: Work, limit: int = MAX_ROWS, arithmetic: Arithmetic | None = None) -> OpTable:
    """Return the ``limit`` rows with the largest totals. Without ``arithmetic``, FLOPs and bytes are not known."""
    if by == "scope":
        return _by_scope(trace, work, limit, arithmetic)
    code = work.op if by == "type" else work.name
    sums = _sums(work, code, int(code.max(initial=-1)) + 1, arithmetic)
    present = np.flatnonzero(sums.count)
    shown = present[largest_first(sums.total[present], limit)]
    op, device = work.op[sums.longest[shown]].astype(np.int64), _only_device(trace, work, code, len(sums.count))[shown]
    return _table(
        trace, work, sums, shown, shown, trace.ops if by == "type" else trace.names, op, device, len(present) - len(shown)
    )


def _table(
    trace: Trace, work: Work, sums: Sums, shown: Int64, key: Int64, keys: StringTable, op: Int64, device: Int64, left_out: int
) -> OpTable:
    sums = sums.only(shown)
    max_ns = np.maximum(work.execution_ns, work.duration)[sums.longest].astype(np.float64)
    delay_ns = np.where(sums.delays > 0, sums.delay, UNKNOWN_TIME)
    unnamed = NO_OP if keys is trace.ops else ""
    return OpTable(key, keys, op, device, sums, max_ns, delay_ns, work.node[sums.longest], left_out, unnamed)


def _columns(trace: Trace, table: OpTable, total: float) -> dict[str, Values]:
    """Return the columns of OpRow. Shares are shares of ``total``."""
    sums = table.sums
    return {
        "key": [key or table.unnamed for key in table.keys.texts(table.key)],
        "op": Coded(table.op, trace.ops),
        "device": Coded(table.device, [device.name for device in trace.devices]),
        "count": sums.count,
        "total_ns": sums.total,
        "self_ns": sums.self_ns,
        "mean_ns": sums.total / sums.count,
        "max_ns": table.max_ns,
        "share": sums.total / (total or 1.0),
        "host_ns": sums.total - sums.device_ns,
        "device_ns": sums.device_ns,
        "delay_ns": _or_none(table.delay_ns, table.delay_ns == UNKNOWN_TIME),
        "node": table.node,
    }


def _or_none(values: Float64, unknown: Bool) -> list[float | None]:
    return [None if is_unknown else value for value, is_unknown in zip(values.tolist(), unknown.tolist())]


def op_statistics(
    trace: Trace,
    by: By,
    findings: list[Finding],
    work: Work | None = None,
    limit: int = MAX_ROWS,
    arithmetic: Arithmetic | None = None,
) -> OpStatistics:
    """Return the answer with at most ``limit`` rows, largest total first."""
    work = work or work_of(trace)
    total = float(work.duration.sum())
    table = op_table(trace, by, work, limit, arithmetic)
    return {
        "by": by,
        "rows": cast(
            "list[ComputingOpRow]", rows_of({**_columns(trace, table, total), **_arithmetic_columns(table.sums.flops_and_bytes)})
        ),
        "left_out": table.left_out,
        "total_ns": total,
        "findings": findings,
    }


def _arithmetic_columns(sums: FlopsAndBytes) -> dict[str, Values]:
    return {
        "flops": _or_none(sums.flops, sums.no_flops),
        "flops_unknown": sums.flops_unknown.astype(np.int64),
        "bytes": _or_none(sums.bytes, sums.no_bytes),
        "bytes_unknown": sums.bytes_unknown.astype(np.int64),
    }


def rows_by_name(trace: Trace, work: Work, total: float) -> list[OpRow]:
    """Return the rows by op name; shares are shares of ``total``."""
    return cast("list[OpRow]", rows_of(_columns(trace, op_table(trace, "name", work), total)))


def rows_by_type(trace: Trace, node: Int64, amount: Int64, own: Int64) -> list[OpRow]:
    """Return the rows of some nodes by op type, without devices. ``amount``: times or bytes of the nodes. ``own``: self times."""
    on_stream, launched = physical_devices.on_stream(trace)[node], np.zeros(len(node), np.bool_)
    delay = np.full(len(node), UNKNOWN_TIME)
    work = Work(node, trace.op[node], trace.name[node], amount, own.astype(np.float64), delay, on_stream, launched, amount)
    table = op_table(trace, "type", work)
    columns = _columns(trace, table, float(amount.sum()))
    return cast("list[OpRow]", rows_of({**columns, "device": [""] * len(table.key)}))


@dataclass(frozen=True)
class Sums(Rows):
    """Sums for each code of a grouping, or for each row of a table."""

    count: Int64  # executions of ops
    total: Float64
    self_ns: Float64
    device_ns: Float64
    delay: Float64  # sum of the known delays
    delays: Float64  # number of known delays
    longest: Int64  # position in Work of the longest execution
    flops_and_bytes: FlopsAndBytes


def _sums(work: Work, code: Int32, groups: int, arithmetic: Arithmetic | None) -> Sums:
    duration = work.duration.astype(np.float64)

    def added(weights: Float64) -> Float64:
        return np.bincount(code, weights, groups).astype(np.float64) if weights.any() else np.zeros(groups)

    longest = np.maximum(largest_in_groups(code, work.execution_ns, groups, work.duration), 0)
    nodes, has_delay = np.bincount(code, minlength=groups), work.delay != UNKNOWN_TIME
    launched = added(work.launched.astype(np.float64)).astype(np.int64)
    return Sums(
        np.where(launched < nodes, nodes - launched, nodes),  # if a group has only launched kernels, each is an execution
        added(duration),
        added(work.self_ns),
        added(duration * work.on_stream),
        added(np.where(has_delay, work.delay, 0.0)),
        added(has_delay.astype(np.float64)),
        longest,
        _flops_and_bytes(work, arithmetic).each(added),
    )


def _flops_and_bytes(work: Work, arithmetic: Arithmetic | None) -> FlopsAndBytes:
    """Return the FLOPs and bytes of each counted node."""
    if arithmetic is None:
        zero, one = np.zeros(len(work.node)), np.ones(len(work.node))
        return FlopsAndBytes(zero, one, zero, one)
    flops, size = arithmetic.flops[work.node], arithmetic.bytes[work.node]
    no_flops, no_size = np.isnan(flops), np.isnan(size)
    return FlopsAndBytes(
        np.where(no_flops, 0.0, flops), no_flops.astype(float), np.where(no_size, 0.0, size), no_size.astype(float)
    )


def _only_device(trace: Trace, work: Work, code: Int32, groups: int) -> Int64:
    """Return [groups] the device of all executions with a code, -1 if they ran on several devices."""
    device = trace.device[work.node].astype(np.int64)
    device_of = np.full(groups, -1, np.int64)
    device_of[code] = device
    with_several = code[device != device_of[code]]
    device_of[with_several] = -1
    return device_of


def _by_scope(trace: Trace, work: Work, limit: int, arithmetic: Arithmetic | None) -> OpTable:
    scopes = scopes_of(trace.names, work.name)
    sums = _with_ancestors(_sums(work, scopes.scope, scopes.own, arithmetic), scopes, work)
    shown = scopes.longest_first(sums.total, limit)
    several = np.full(len(shown), -1, np.int64)
    left_out = len(scopes) - len(shown)
    return _table(trace, work, sums, shown, np.arange(len(shown)), scopes.texts(shown), several, several, left_out)


def _with_ancestors(sums: Sums, scopes: Scopes, work: Work) -> Sums:
    """Return the sums of all scopes: each direct scope counts for itself and for all its ancestors."""
    direct_scope, key, groups = scopes.inside, scopes.key, len(scopes)

    def added(values: Int64 | Float64) -> Float64:
        return np.bincount(key, values[direct_scope].astype(np.float64), groups).astype(np.float64)

    longest = np.zeros(groups, np.int64)
    order = np.lexsort((-np.arange(len(direct_scope)), work.execution_ns[sums.longest[direct_scope]]))
    longest[key[order]] = sums.longest[direct_scope[order]]  # if an index occurs several times, the last write stays
    count, flops_and_bytes = added(sums.count).astype(np.int64), sums.flops_and_bytes.each(added)
    total, self_ns, device_ns, delay, delays = map(added, (sums.total, sums.self_ns, sums.device_ns, sums.delay, sums.delays))
    return Sums(count, total, self_ns, device_ns, delay, delays, longest, flops_and_bytes)
