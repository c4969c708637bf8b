"""What the loop waits for beside a step's ops: what passes before the first of them and after the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tftracer.trace.decode.host_events import FunctionCall
from tftracer.trace.model import NodeKind, Trace, TraceContext

SLOW_FACTOR = 1.5  # a traced step against the median untraced one
START_NS = 5_000_000  # what tracing costs within a step beside its ops, at most
HOST_OP_NS = 5_000  # what recording an op costs in a profile of the host: 1.4 microseconds on TensorFlow 2.21, 2.5 on 2.15


class Around(NamedTuple):
    """In ns; 0 where it is not known."""

    before_ns: int
    after_ns: int
    python_ns: int = 0  # of functions: the part in which the call is still, or again, in Python


def around(trace: Trace, context: TraceContext, calls: Sequence[FunctionCall]) -> Around:
    """A profile tells when the calls of its functions began and ended; being traced makes them longer. Of a session's step it is
    known when it began, and how long the run's untraced steps take: what TensorFlow needs to collect a trace follows the last op,
    and is no part of it.
    Where the ops wait for input, untraced steps may wait longer, for the input pipeline works ahead while TensorFlow starts a
    trace: what follows the last op is not known then, and what comes before the first only where something is fed.
    A slow step may be so by what passes before its first op, which is measured: only ``START_NS`` of that may be tracing's."""
    duration_ns, origin_ns = trace.duration_ns, trace.origin_ns
    if calls:
        before, after = -min(0, *(call.start for call in calls)), max(duration_ns, *(call.end for call in calls)) - duration_ns
        python = sum(call.end - call.start - call.ran_ns for call in calls if call.ran_ns)
        return _untraced(Around(before, after, python), trace, context, calls)
    if context.trace_level == "profile" or context.step_s is None:
        return Around(0, 0)
    took = int(context.step_s * 1e9)
    usual = took if context.median_s is None else min(took, int(context.median_s * 1e9))
    passed = max(usual - duration_ns, 0)
    waits = bool((trace.kind == NodeKind.INPUT).any())
    tells_after = context.median_s is not None and not waits
    known = context.began_at is not None and origin_ns > 0 and (not waits or bool(context.feeds))
    measured = max(origin_ns - int((context.began_at or 0.0) * 1e9), 0) if known else 0
    before = min(measured, passed)
    if context.median_s is not None and context.step_s >= SLOW_FACTOR * context.median_s:
        before = max(before, measured - START_NS)
    return Around(before, max(passed - before, 0) if tells_after else 0)


def _untraced(traced: Around, trace: Trace, context: TraceContext, calls: Sequence[FunctionCall]) -> Around:
    """No more than in the median untraced step, where being traced may be why it is more: but where a call traced its function,
    which untraced steps do not. Ops that run while the call is in Python, which make a tensor of what it is given, are part of
    both."""
    took, usual, fastest = context.step_s, context.median_s, context.fastest_traced_s
    if any(call.was_traced for call in calls) or took is None or usual is None:
        return traced
    alone_slow = fastest is not None and fastest < SLOW_FACTOR * usual
    if alone_slow or (took - (usual if fastest is None else fastest)) * 1e9 > START_NS + HOST_OP_NS * trace.n:
        return traced
    passed, most = traced.before_ns + traced.after_ns, max(int(usual * 1e9) - trace.duration_ns, 0)
    if passed <= most:
        return traced
    python_ns = min(traced.python_ns, max(int(usual * 1e9) - sum(call.ran_ns for call in calls), 0))
    return Around(traced.before_ns * most // passed, traced.after_ns * most // passed, python_ns)
