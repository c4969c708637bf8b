"""Op statistics: executions grouped by op type, by op or by name scope. Everything but the final rows is NumPy.

- *total*: the sum of the durations (end less start). Ops that run at the same time each count in full.
- *self*: each moment in which k ops of a device run counts 1/k for each of them; an op that only waits for the ops inside it (a
  function call, a ``While``) counts where nothing else runs. Over a device the self times add up to the time it was busy.
  (TensorFlow writes no thread numbers on a CPU, so nested and concurrent ops cannot be told apart by thread.)
- *share*: of the sum of all totals. *host*: what ran on the host, launches included; *device*: kernels and copies on a GPU's
  streams, counted under the op that launched them.
- *by scope*: an op counts for every scope it lies in, so ``a`` holds ``a/b``; an op without a ``/`` lies in no scope.

Repeating devices are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from tftracer.trace import physical
from tftracer.trace.intervals import Bool, Float64, bites, fair_shares
from tftracer.trace.model import UNKNOWN_TIME, Int32, Int64, Trace
from tftracer.web.messages import Finding, OpRow, OpStatistics

MAX_ROWS = 10_000

#: These run other ops of the trace and do nothing else meanwhile.
CALLS = frozenset(
    [
        "PartitionedCall",
        "StatefulPartitionedCall",
        "RemoteCall",
        "SymbolicGradient",
        "While",
        "StatelessWhile",
        "If",
        "StatelessIf",
        "Case",
        "StatelessCase",
        "For",
        "MapDefun",
        "BatchFunction",
        "TPUPartitionedCall",
    ]
)


@dataclass(frozen=True)
class Work:
    """What each counted node adds to the row it falls in. Arrays of one entry a counted node."""

    node: Int64  # its index in the trace
    op: Int32  # its op type; a kernel has that of its launch
    name: Int32
    duration: Int64
    self_ns: Float64
    delay: Int64
    on_stream: Bool

    @cached_property
    def by_duration(self) -> Int64:
        """Positions, the longest execution last."""
        return np.argsort(self.duration, kind="stable")

    def only(self, chosen: Bool) -> Work:
        """Some of the nodes; ``chosen`` has an entry for each of this work's."""
        return Work(*(getattr(self, f.name)[chosen] for f in fields(self)))


def work(trace: Trace) -> Work:
    """The part of the statistics that does not depend on the grouping."""
    node = np.flatnonzero(trace.counted)
    op, name = trace.op[node], trace.name[node]
    stream = physical.on_stream(trace)
    if stream.any():
        launch = physical.launch_of(trace)[node]
        joined = launch >= 0
        op, name = np.where(joined, trace.op[launch], op), np.where(joined, trace.name[launch], name)
    scheduled, start = trace.scheduled[node], trace.start[node]
    delay = np.where(scheduled == UNKNOWN_TIME, 0, np.maximum(start - scheduled, 0))
    return Work(node, op, name, trace.end[node] - start, self_times(trace)[node], delay, stream[node])


def self_times(trace: Trace) -> Float64:
    """[n] ns, as defined above; 0 on repeating devices."""
    result = np.zeros(trace.n)
    node = np.flatnonzero(trace.counted)
    if len(node):
        offset = trace.device[node].astype(np.int64) * (trace.duration_ns + 1)  # one device after the other
        calls = np.array([op in CALLS for op in trace.ops])
        start, end = trace.start[node] + offset, trace.end[node] + offset
        share, alone = fair_shares(start, end, ~calls[trace.op[node]] if calls.any() else None)
        result[node] = share + alone
    return result


def op_statistics(
    trace: Trace,
    by: Literal["type", "name", "scope"],
    findings: list[Finding],
    known: Work | None = None,
    most: int = MAX_ROWS,
) -> OpStatistics:
    """The rows of the table, by total time, the longest first, at most ``most``."""
    what = known or work(trace)
    total = float(what.duration.sum())
    if by == "scope":
        rows, left_out = _by_scope(trace, what, total, most)
    else:
        code = what.op if by == "type" else what.name
        rows = _rows(trace, what, code, total, by, most)
        left_out = max(0, _distinct(code) - most)
    return {
        "by": by,
        "rows": rows,
        "left_out": left_out,
        "total_ns": total,
        "findings": findings,
    }


def rows_by_name(trace: Trace, what: Work, total: float) -> list[OpRow]:
    """The rows of some of the work, by op; ``share`` is of ``total``."""
    return _rows(trace, what, what.name, total, "name")


def _distinct(code: Int32) -> int:
    return int(np.count_nonzero(np.bincount(code))) if len(code) else 0


@dataclass(frozen=True)
class Sums:
    """Sums for each code 0..m of a grouping."""

    count: Int64
    total: Float64
    self_ns: Float64
    device_ns: Float64
    delay: Float64
    longest: Int64  # position in Work of the longest execution


def _sums(what: Work, code: Int32, groups: int) -> Sums:
    duration = what.duration.astype(np.float64)

    def added(weights: Float64) -> Float64:
        return np.bincount(code, weights, groups).astype(np.float64)

    longest = np.zeros(groups, np.int64)
    order = what.by_duration
    longest[code[order]] = order  # of several writes to one place the last stays
    return Sums(
        np.bincount(code, minlength=groups),
        added(duration),
        added(what.self_ns),
        added(duration * what.on_stream),
        added(what.delay.astype(np.float64)),
        longest,
    )


def _rows(trace: Trace, what: Work, code: Int32, total: float, by: str, most: int = MAX_ROWS) -> list[OpRow]:
    if not len(code):
        return []
    sums = _sums(what, code, int(code.max()) + 1)
    there = np.flatnonzero(sums.count)
    there = there[np.argsort(-sums.total[there], kind="stable")][:most]
    one_device = _only_device(trace, what, code, len(sums.count))
    rows = []
    for bite in bites(len(there)):
        for c in there[bite.start : bite.stop].tolist():
            longest = int(sums.longest[c])
            op = trace.ops[what.op[longest]]
            key = (op or "(no op type)") if by == "type" else trace.names[c]
            device = trace.devices[one_device[c]].name if one_device[c] >= 0 else ""
            rows.append(_row(key, op, device, sums, c, int(what.node[longest]), float(what.duration[longest]), total))
    return rows


def _row(key: str, op: str, device: str, sums: Sums, code: int, node: int, longest: float, total: float) -> OpRow:
    count, spent, on_stream = int(sums.count[code]), float(sums.total[code]), float(sums.device_ns[code])
    return {
        "key": key,
        "op": op,
        "device": device,
        "count": count,
        "total_ns": spent,
        "self_ns": float(sums.self_ns[code]),
        "mean_ns": spent / count,
        "max_ns": longest,
        "share": spent / total if total else 0.0,
        "host_ns": spent - on_stream,
        "device_ns": on_stream,
        "delay_ns": float(sums.delay[code]),
        "node": node,
    }


def empty_row(key: str, op: str) -> OpRow:
    """A row of nothing, for tables that fill in some of it."""
    return {
        "key": key,
        "op": op,
        "device": "",
        "count": 0,
        "total_ns": 0.0,
        "self_ns": 0.0,
        "mean_ns": 0.0,
        "max_ns": 0.0,
        "share": 0.0,
        "host_ns": 0.0,
        "device_ns": 0.0,
        "delay_ns": 0.0,
        "node": -1,
    }


def _only_device(trace: Trace, what: Work, code: Int32, groups: int) -> Int64:
    """For each code the device of all its executions, -1 if there are several."""
    device = trace.device[what.node].astype(np.int64)
    some = np.full(groups, -1, np.int64)
    some[code] = device
    others = code[device != some[code]]
    some[others] = -1
    return some


def scope_of(name: str) -> str:
    """``a/b`` of ``a/b/c``, "" of ``c``."""
    return name.rsplit("/", 1)[0] if "/" in name else ""


def _by_scope(trace: Trace, what: Work, total: float, most: int) -> tuple[list[OpRow], int]:
    """(the longest rows, how many are left out)."""
    scopes, code = _scope_codes(trace, what)
    if not len(code):
        return [], 0
    keys, own, key = _ancestors(scopes)
    sums = _added_up(_sums(what, code, len(scopes)), own, key, len(keys), what)
    longest = np.argsort(-sums.total, kind="stable")  # keys are sorted: of equal ones the first by name comes first
    rows = []
    for bite in bites(min(most, len(keys))):
        for k in longest[bite.start : bite.stop].tolist():
            at = int(sums.longest[k])
            rows.append(_row(keys[k], "", "", sums, k, int(what.node[at]), float(what.duration[at]), total))
    return rows, len(keys) - len(rows)


def _ancestors(scopes: list[str]) -> tuple[list[str], Int64, Int64]:
    """(all scopes and those that they lie in, sorted; pairs of a scope's number and the key that it counts for)."""
    own: list[int] = []
    wanted: list[str] = []
    for bite in bites(len(scopes)):
        for c in bite:
            scope = scopes[c]
            while scope:
                own.append(c)
                wanted.append(scope)
                scope = scope_of(scope)
    keys = sorted(set(wanted))
    number = {key: k for k, key in enumerate(keys)}
    return keys, np.array(own, np.int64), np.array([number[key] for key in wanted], np.int64)


def _added_up(sums: Sums, own: Int64, key: Int64, groups: int, what: Work) -> Sums:
    """The sums of scopes, added up for each of their ancestors."""

    def added(values: Int64 | Float64) -> Float64:
        return np.bincount(key, values[own].astype(np.float64), groups).astype(np.float64)

    longest = np.zeros(groups, np.int64)
    order = np.lexsort((-np.arange(len(own)), what.duration[sums.longest[own]]))
    longest[key[order]] = sums.longest[own[order]]  # of several writes to one place the last stays
    count = added(sums.count).astype(np.int64)
    return Sums(count, added(sums.total), added(sums.self_ns), added(sums.device_ns), added(sums.delay), longest)


def _scope_codes(trace: Trace, what: Work) -> tuple[list[str], Int32]:
    """The distinct scopes, and for each counted node its own. One Python turn for each distinct name."""
    present = np.flatnonzero(np.bincount(what.name, minlength=1)) if len(what.name) else np.zeros(0, np.int64)
    scope_code = np.zeros(max(len(trace.names), 1), np.int32)
    index: dict[bytes, int] = {}
    codes: list[int] = []
    data, offsets = bytes(trace.names.data), trace.names.offsets.tolist()
    for bite in bites(len(present)):
        scopes = [data[offsets[c] : offsets[c + 1]].rpartition(b"/")[0] for c in present[bite.start : bite.stop].tolist()]
        codes += [index.setdefault(scope, len(index)) for scope in scopes]
    scope_code[present] = codes
    return [scope.decode("utf-8", "replace") for scope in index], scope_code[what.name]
