"""Which traces of a run show what is usual, and may be compared with others of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tftracer.contract.session import AskedBy, TraceRecord


def measures_tracing(asked_by: AskedBy) -> bool:
    """Whether a step was traced for another reason than that it was expected to be slow: such a step is no measure of tracing."""
    return asked_by != "slow"


def usual(records: Iterable[TraceRecord], but_trace: int = 0) -> list[TraceRecord]:
    """Those of steps that nobody expected to be slow, and that are not known to be broken; but for one of them."""
    return [
        record
        for record in records
        if record["id"] != but_trace and record["state"] != "broken" and measures_tracing(record["asked_by"])
    ]


def durations_s(records: Iterable[TraceRecord]) -> list[float]:
    """Their wall times, where they are known."""
    durations = [record["duration_s"] for record in records]
    return [duration for duration in durations if duration is not None]


def follows_traced(records: Sequence[TraceRecord], step: int | None) -> bool:
    """Whether the step before was traced, too: while its trace is collected, the script's threads are held up."""
    return step is not None and any(record["step"] == step - 1 for record in records)
