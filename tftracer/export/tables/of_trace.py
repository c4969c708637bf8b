"""The rows of one trace in the tables of slices, ops, tensors, transfers and sentences: as on the page, but all rows.

The columns are computed from the trace's ``Answers``, without a Python object per node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from tftracer.contract.session import TraceRecord
from tftracer.export.tables.table import Part
from tftracer.trace.analyses import ops
from tftracer.trace.analyses.communication import transfers
from tftracer.trace.analyses.ops import By
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.columns import Coded, Columns, Values
from tftracer.trace.arrays.types import Float64, Int64
from tftracer.trace.model import UNKNOWN_TIME, NodeKind, Trace

_ALL = 1 << 62  # a limit on rows that no table reaches
_KINDS = [kind.name.lower() for kind in NodeKind]


@dataclass(frozen=True)
class Times:
    """A trace's times on the clock of the tables: the trace's own clock, or the clock of the job's first process."""

    origin_ns: int  # epoch nanoseconds of time 0
    start: Int64  # [n] ns since then
    end: Int64  # [n]


@dataclass(frozen=True)
class TracePart:
    """One trace and its rows in each table.

    ``align``: converts times to the job's clock; None: the trace's own clock. ``other_answers``: returns the answers of the run's
    other traces that an analysis needs (contract/analyses.py).
    """

    record: TraceRecord
    answers: Answers
    align: Callable[[Trace], Times] | None
    other_answers: Callable[[str], Sequence[Mapping[str, Any]]]

    @cached_property
    def times(self) -> Times:
        trace = self.answers.trace
        return self.align(trace) if self.align else Times(trace.origin_ns, trace.start, trace.end)

    def _part(self, rows: int, columns: Columns) -> Part:
        """Build the part of a table: these columns, and the columns that identify the trace."""
        record, step = self.record, self.record["step"]
        of_trace: Columns = {
            "trace_id": lambda: np.full(rows, record["id"]),
            "run_id": lambda: np.full(rows, record["run_id"]),
            "step": lambda: np.ma.masked_array(np.full(rows, step or 0), np.full(rows, step is None)),
        }
        return Part(rows, {**of_trace, **columns})

    def slices(self) -> Part:
        trace = self.answers.trace
        columns: Columns = {
            "node": lambda: np.arange(trace.n),
            "device": lambda: Coded(trace.device, [device.name for device in trace.devices]),
            "name": lambda: Coded(trace.name, trace.names),
            "op": lambda: Coded(trace.op, trace.ops),
            "kind": lambda: Coded(trace.kind, _KINDS),
            "start_ns": lambda: np.ma.masked_array(self.times.start, ~trace.drawn),
            "dur_ns": lambda: np.ma.masked_array(self.times.end - self.times.start, ~trace.drawn),
            "self_ns": self._self_ns,
            "delay_ns": self._delay_ns,
            "thread": lambda: np.ma.masked_equal(trace.thread, 0),
            "bytes_moved": lambda: trace.bytes_moved,
            "flops": lambda: np.ma.masked_invalid(self.answers.arithmetic.flops),
            "traffic_bytes": lambda: np.ma.masked_invalid(self.answers.arithmetic.bytes),
            "counted": lambda: trace.counted,
            "critical": self.answers.on_critical_path,
        }
        return self._part(trace.n, columns)

    def _self_ns(self) -> Values:
        by_node = np.zeros(self.answers.trace.n)
        by_node[self.answers.work.node] = self.answers.work.self_ns
        return by_node

    def _delay_ns(self) -> Values:
        trace = self.answers.trace
        unknown = (trace.scheduled == UNKNOWN_TIME) | ~trace.drawn
        return np.ma.masked_array(np.maximum(trace.start - trace.scheduled, 0), unknown)

    def ops(self, by: By) -> Part:
        trace = self.answers.trace
        table = ops.op_table(trace, by, self.answers.work, _ALL)
        columns: Columns = {
            "key": lambda: _named(table),
            "op": lambda: Coded(table.op, trace.ops),
            "device": lambda: Coded(table.device, [device.name for device in trace.devices]),
            "count": lambda: table.sums.count,
            "total_ns": lambda: _rounded(table.sums.total),
            "self_ns": lambda: table.sums.self_ns,
            "max_ns": lambda: _rounded(table.max_ns),
            "host_ns": lambda: _rounded(table.sums.total - table.sums.device_ns),
            "device_ns": lambda: _rounded(table.sums.device_ns),
            "delay_ns": lambda: np.ma.masked_array(_rounded(table.delay_ns), table.delay_ns == UNKNOWN_TIME),
            "longest_node": lambda: table.node,
            **self._flops_and_bytes(by),
        }
        return self._part(len(table.key), columns)

    def _flops_and_bytes(self, by: By) -> Columns:
        """Return the columns of FLOPs and bytes. The graph and all outputs are read when one of these columns is read."""

        @cache
        def sums() -> ops.FlopsAndBytes:
            table = ops.op_table(self.answers.trace, by, self.answers.work, _ALL, self.answers.arithmetic)
            return table.sums.flops_and_bytes

        return {
            "flops": lambda: np.ma.masked_array(sums().flops, sums().no_flops),
            "flops_unknown": lambda: _rounded(sums().flops_unknown),
            "traffic_bytes": lambda: np.ma.masked_array(sums().bytes, sums().no_bytes),
            "traffic_unknown": lambda: _rounded(sums().bytes_unknown),
        }

    def tensors(self) -> Part:
        """Return the outputs of ops, or a profile's allocations; largest first."""
        tensors = self.answers.tensors
        return self._part(len(tensors.largest), tensors.columns(tensors.largest, self.times.start))

    def transfers(self) -> Part:
        trace, times = self.answers.trace, self.times
        moved = transfers(trace)
        duration = times.end[moved.node] - times.start[moved.node]
        order = np.argsort(-duration, kind="stable")
        node, link, label = moved.node[order], moved.link[order], trace.label[moved.node[order]]
        columns: Columns = {
            "node": lambda: node,
            "tensor": lambda: [moved.tensors[code].tensor for code in label.tolist()],
            "op": lambda: Coded(trace.op[node], trace.ops),
            "source": lambda: Coded(link, [source for source, _ in moved.links]),
            "destination": lambda: Coded(link, [destination for _, destination in moved.links]),
            "bytes": lambda: trace.bytes_moved[node],
            "start_ns": lambda: times.start[node],
            "dur_ns": lambda: duration[order],
        }
        return self._part(len(node), columns)

    def sentences(self) -> Part:
        verdict = self.answers.verdict(other_traces=self.other_answers("verdict"))["sentences"]
        columns: Columns = {"place": lambda: np.arange(1, len(verdict) + 1)}
        for name in ("code", "text", "advice", "share"):
            columns[name] = lambda name=name: [sentence[name] for sentence in verdict]  # type: ignore[misc,literal-required]
        return self._part(len(verdict), columns)

    def facts(self) -> dict[str, Any]:
        """Return the fields of the table of traces that are read from the trace itself."""
        answers = self.answers
        trace, budget = answers.trace, answers.budget()
        curves = answers.curves
        parts = {f"{name}_ns": None if value is None else round(value) for name, value in budget["whole"]["parts_ns"].items()}
        return {
            "origin_at": np.datetime64(self.times.origin_ns, "ns") if trace.n and trace.origin_ns else np.datetime64("NaT", "ns"),
            "source": trace.source,
            "length_ns": trace.duration_ns if trace.n else None,
            "memory_peak_bytes": round(curves[0]["peak_bytes"]) if curves else None,
            **parts,
        }


def _named(table: ops.OpTable) -> Values:
    """Return the keys. An empty key gets the same name as on the page."""
    if not table.unnamed:
        return Coded(table.key, table.keys)
    texts = Coded(table.key, table.keys).decoded()
    texts[texts == ""] = table.unnamed
    return texts


def _rounded(values: Float64) -> Int64:
    return np.rint(values).astype(np.int64)
