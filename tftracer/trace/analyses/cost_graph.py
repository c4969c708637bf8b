"""TensorFlow's cost model (``build_cost_model``) next to the measured times, op by op, joined by name.

``estimated``: the cost graph's ``compute_cost``, a running mean in microseconds. ``measured``: the total duration of the op's
executions in this trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tftracer.contract.basics import Finding
from tftracer.contract.trace import CostGraph, CostRow
from tftracer.errors import FormatError
from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.model import Trace

MAX_ROWS = 10_000


def cost_graph(trace: Trace, findings: list[Finding]) -> CostGraph:
    """Return the rows, longest estimated time first; no rows if the trace has no cost graph.

    Raises FormatError if the cost graph is damaged.
    """
    if trace.cost_graph is None:
        return {"rows": [], "findings": findings}
    span = trace.cost_graph
    try:
        nodes = message_class("CostGraphDef").FromString(trace.raw[span.offset : span.offset + span.size]).node
    except DecodeError as error:
        raise FormatError(f"The cost graph of this trace is damaged ({error}). The rest of the trace can be read.") from error
    count = np.bincount(trace.name[trace.counted], minlength=len(trace.names))
    spent = np.bincount(trace.name[trace.counted], (trace.end - trace.start)[trace.counted].astype(np.float64), len(trace.names))
    first = _first_executions(trace)
    codes = {name: code for code, name in enumerate(trace.names)}
    rows: list[CostRow] = []
    for node in paced(nodes):
        code = codes.get(node.name, -1)
        executed = code >= 0 and count[code] > 0
        rows.append(_row(trace, node, int(first[code]) if executed else -1, spent[code] if executed else 0.0))
    rows.sort(key=lambda row: (-row["estimated_ns"], -row["measured_ns"], row["name"]))
    return {"rows": rows[:MAX_ROWS], "findings": findings}


def _first_executions(trace: Trace) -> Int64:
    """Return [names] the first counted node with each name, -1: none."""
    first = np.full(len(trace.names), -1, np.int64)
    nodes = np.flatnonzero(trace.counted)[::-1]
    first[trace.name[nodes]] = nodes
    return first


def _row(trace: Trace, cost: Any, index: int, measured: float) -> CostRow:
    memory = cost.temporary_memory_size + cost.persistent_memory_size
    memory += sum(max(0, output.size) for output in cost.output_info)
    return {
        "node": index,
        "name": cost.name,
        "op": trace.ops[trace.op[index]] if index >= 0 else "",
        "device": cost.device,
        "estimated_ns": float(cost.compute_cost) * 1e3,
        "measured_ns": float(measured),
        "memory_bytes": float(memory),
    }
