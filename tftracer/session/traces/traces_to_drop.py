"""Selects the traces of a live session that are removed for newer ones."""

from __future__ import annotations

from statistics import median

from tftracer.session.model import TraceState

#: Maximum size of all traces that users requested; beyond it, the oldest are removed.
MAX_REQUESTED_BYTES = 4 << 30
#: A trace that took more than this many times the median of its run's traces is kept longer than newer ones.
SLOW_FACTOR = 2.0


class Retention:
    """Holds this process's traces in two groups with separate limits: those that users requested, and all others."""

    def __init__(self) -> None:
        self._requested: dict[int, TraceState] = {}  # by id, oldest first
        self._requested_bytes = 0
        self._automatic: dict[int, dict[int, TraceState]] = {}  # run id -> traces that no user requested

    def add(self, trace: TraceState) -> None:
        record = trace.record
        if record["asked_by"] == "user":
            self._requested[record["id"]] = trace
            self._requested_bytes += record["stored_bytes"]
        else:
            self._automatic.setdefault(record["run_id"], {})[record["id"]] = trace

    def remove(self, trace: TraceState) -> None:
        record = trace.record
        if self._requested.pop(record["id"], None) is not None:
            self._requested_bytes -= record["stored_bytes"]
        self._automatic.get(record["run_id"], {}).pop(record["id"], None)

    def superfluous(self, run_id: int, keep: int) -> list[TraceState]:
        """Return the traces of a run that need not be kept. Those that users requested are not among them.

        Of steps traced because they were expected to be slow, the ``keep`` slowest stay. Of the others (global tracing, the
        script's own), ``keep`` stay: up to half of them because they took far longer than the rest, and the newest.
        """
        traces = list(self._automatic.get(run_id, {}).values())
        expected = sorted((trace for trace in traces if trace.record["asked_by"] == "slow"), key=_seconds, reverse=True)
        others = [trace for trace in traces if trace.record["asked_by"] != "slow"]
        slowest = _far_slower(others)[: keep // 2]
        newest = [trace for trace in others if trace not in slowest]
        return expected[keep:] + newest[: max(0, len(others) - keep)]

    def over_the_cap(self, limit: int) -> list[TraceState]:
        """Return the oldest requested traces, if all requested traces take more than ``limit`` bytes. The newest one stays."""
        excess = self._requested_bytes - limit
        dropped: list[TraceState] = []
        for trace in self._requested.values():
            if excess <= 0 or len(dropped) == len(self._requested) - 1:
                break
            dropped.append(trace)
            excess -= trace.record["stored_bytes"]
        return dropped


def _far_slower(traces: list[TraceState]) -> list[TraceState]:
    """Return the traces that took far longer than the median, slowest first.

    The median is that of the traces, not of all steps, because tracing makes steps slower.
    """
    if not traces:
        return []
    usual = median(map(_seconds, traces))
    return sorted((trace for trace in traces if _seconds(trace) > SLOW_FACTOR * usual), key=_seconds, reverse=True)


def _seconds(trace: TraceState) -> float:
    return trace.record["duration_s"] or 0.0
