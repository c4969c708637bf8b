"""The message from which the page draws a trace: its slices as columns, in the order of the layout's rows."""

from __future__ import annotations

import numpy as np

from tftracer.contract import trace as messages
from tftracer.contract.basics import Finding
from tftracer.trace import timeline_lanes
from tftracer.trace.arrays.columns import column, narrow, strings
from tftracer.trace.arrays.types import Bool
from tftracer.trace.model import UNKNOWN_TIME, Trace, TraceContext
from tftracer.trace.timeline_lanes import Layout


def timeline(
    trace: Trace, laid_out: Layout, critical: Bool, context: TraceContext, findings: list[Finding], trace_id: int
) -> messages.Timeline:
    """Build the message. ``critical``: [n] whether each node is on the critical path."""
    order = laid_out.order
    start = trace.start[order]
    duration = trace.end[order] - start
    is_scheduled = trace.scheduled[order] != UNKNOWN_TIME
    delay = np.where(is_scheduled, start - trace.scheduled[order], -1)
    wide = duration.max(initial=0) >= 1 << 32
    return {
        "trace_id": trace_id,
        "title": context.title,
        "nodes": trace.n,
        "origin_ns": str(trace.origin_ns),
        "duration_ns": float(trace.duration_ns),
        "lanes": timeline_lanes.lane_messages(trace, laid_out),
        "row_offsets": column(laid_out.row_offsets.astype(np.uint32)),
        "start": column(start.astype(np.float64)),
        "duration": column(duration.astype(np.float64 if wide else np.uint32)),
        "delay": column(delay.astype(np.float32)),
        "node": column(order.astype(np.uint32)),
        "name": column(trace.name[order].astype(np.uint32)),
        "op": column(narrow(trace.op[order], len(trace.ops))),
        "kind": column(trace.kind[order].astype(np.uint8)),
        "critical": column(critical[order]),
        "names": strings(trace.names),
        "ops": strings(trace.ops),
        "has_cost_graph": trace.cost_graph is not None,
        "findings": findings,
    }
