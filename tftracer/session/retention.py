"""Which traces of a live session make way for newer ones."""

from __future__ import annotations

from statistics import median

from tftracer.session.model import SessionModel, TraceState

#: Disk that the traces that were asked for may take together; then the oldest make way.
ASKED_BYTES = 4 << 30
#: A trace that is so many times as long as the median of its run's stays before newer ones.
SLOW_FACTOR = 2.0


def superfluous(model: SessionModel, run_id: int, keep: int) -> list[TraceState]:
    """Of a run's traces that nobody asked for one by one: those that are not worth their place.

    Of steps traced because they were expected to be slow, the ``keep`` slowest stay. Of the others (global tracing, the script's
    own), the newest stay, and in up to half of the places those that took far longer than the rest.
    """
    traces = model.traces_of(run_id)
    expected = sorted((trace for trace in traces if trace.record["asked_by"] == "slow"), key=_seconds, reverse=True)
    others = [trace for trace in traces if trace.record["asked_by"] in ("global", "script")]
    slowest = _far_slower(others)[: keep // 2]
    newest = [trace for trace in others if trace not in slowest]
    return expected[keep:] + newest[: max(0, len(others) - keep)]


def _far_slower(traces: list[TraceState]) -> list[TraceState]:
    """The slowest first. Compared with each other, for tracing makes all of them slower."""
    if not traces:
        return []
    usual = median(map(_seconds, traces))
    return sorted((trace for trace in traces if _seconds(trace) > SLOW_FACTOR * usual), key=_seconds, reverse=True)


def _seconds(trace: TraceState) -> float:
    return trace.record["duration_s"] or 0.0


def over_the_cap(model: SessionModel, most: int) -> list[TraceState]:
    """The oldest traces that were asked for, where these take more than ``most`` bytes together; the newest one stays."""
    own = [trace for trace in model.traces.values() if not model.runs[trace.record["run_id"]].origin]
    asked = [trace for trace in own if trace.record["asked_by"] == "user"]
    excess, dropped = sum(trace.record["stored_bytes"] for trace in asked) - most, []
    for trace in asked[:-1]:
        if excess <= 0:
            break
        dropped.append(trace)
        excess -= trace.record["stored_bytes"]
    return dropped
