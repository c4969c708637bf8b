"""Compares the ops of two traces.

Ops with equal keys are compared: the key is the op's type, its node name, or its scope. A difference matters if it exceeds both
``FLOOR_NS`` and ``FLOOR_SHARE`` of the larger time. Two steps of the same code may differ by more, so this does not prove a
change: comparison/two_traces.py checks the other traces of the runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tftracer.contract.trace import ComparedOp, OpRow, OpStatistics, OpStatus

FLOOR_NS = 20_000.0
FLOOR_SHARE = 0.05


def compared_ops(a: OpStatistics, b: OpStatistics) -> list[ComparedOp]:
    """Return every op of either trace, in no particular order; times in ns.

    A difference that matters has the status ``unknown``, because it may be chance.
    """
    before = {row["key"]: row for row in a["rows"]}
    after = {row["key"]: row for row in b["rows"]}
    return [compared(key, before.get(key), after.get(key)) for key in {**before, **after}]


def compared(key: str, a: OpRow | None, b: OpRow | None) -> ComparedOp:
    total_a, total_b = (a["total_ns"] if a else 0.0), (b["total_ns"] if b else 0.0)
    either = a or b
    return {
        "key": key,
        "op": either["op"] if either else "",
        "status": status(a is not None, b is not None, total_a, total_b),
        "statistic": "",
        "count_a": a["count"] if a else 0,
        "count_b": b["count"] if b else 0,
        "total_a_ns": total_a,
        "total_b_ns": total_b,
        "delta_ns": total_b - total_a,
        "share_a": a["share"] if a else 0.0,
        "share_b": b["share"] if b else 0.0,
        "node_a": a["node"] if a else -1,
        "node_b": b["node"] if b else -1,
    }


def status(in_a: bool, in_b: bool, total_a: float, total_b: float) -> OpStatus:
    if not in_a:
        return "appeared"
    if not in_b:
        return "vanished"
    return "unknown" if matters(total_a, total_b) else "same"


def matters(before_ns: float, after_ns: float) -> bool:
    """Return whether two times differ by more than the floors."""
    return abs(after_ns - before_ns) > max(FLOOR_NS, FLOOR_SHARE * max(before_ns, after_ns))
