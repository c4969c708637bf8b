"""What the loop waits for beside a step's ops: what passes before the first of them and after the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tftracer.trace.decode.host_events import FunctionCall
from tftracer.trace.model import NodeKind, Trace, TraceContext


class Around(NamedTuple):
    """In ns; 0 where it is not known."""

    before_ns: int
    after_ns: int
    python_ns: int = 0  # of functions: the part in which the call is still, or again, in Python


def around(trace: Trace, context: TraceContext, calls: Sequence[FunctionCall]) -> Around:
    """A profile tells when the calls of its functions began and ended. Of a session's step it is known when it began, and how
    long the run's untraced steps take: what TensorFlow needs to collect a trace follows the last op, and is no part of it.
    Where the ops wait for input, untraced steps may wait longer: what follows the last op is not known then."""
    duration_ns, origin_ns = trace.duration_ns, trace.origin_ns
    if calls:
        before, after = -min(0, *(call.start for call in calls)), max(duration_ns, *(call.end for call in calls)) - duration_ns
        return Around(before, after, sum(call.end - call.start - call.ran_ns for call in calls if call.ran_ns))
    if context.trace_level == "profile" or context.step_s is None:
        return Around(0, 0)
    took = int(context.step_s * 1e9)
    usual = took if context.median_s is None else min(took, int(context.median_s * 1e9))
    passed = max(usual - duration_ns, 0)
    tells_after = context.median_s is not None and not (trace.kind == NodeKind.INPUT).any()
    known = context.began_at is not None and origin_ns > 0
    before = min(max(origin_ns - int((context.began_at or 0.0) * 1e9), 0), passed) if known else 0
    return Around(before, passed - before if tells_after else 0)
