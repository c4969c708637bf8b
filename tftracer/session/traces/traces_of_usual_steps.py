"""Selects the traces of a run that show usual steps, and so can be compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tftracer.contract.session import AskedBy, TraceRecord


def measures_tracing(asked_by: AskedBy) -> bool:
    """Return whether a traced step shows the cost of tracing. False if it was traced because it was expected to be slow."""
    return asked_by != "slow"


def usual(records: Iterable[TraceRecord], except_trace: int = 0) -> list[TraceRecord]:
    """Return the traces of steps that were not expected to be slow, without broken traces and without ``except_trace``."""
    return [
        record
        for record in records
        if record["id"] != except_trace and record["state"] != "broken" and measures_tracing(record["asked_by"])
    ]


def durations_s(records: Iterable[TraceRecord]) -> list[float]:
    """Return the known wall times of the traced steps."""
    durations = [record["duration_s"] for record in records]
    return [duration for duration in durations if duration is not None]


def follows_traced(records: Sequence[TraceRecord], step: int | None) -> bool:
    """Return whether the previous step was traced, too: collecting its trace delays the script's threads."""
    return step is not None and any(record["step"] == step - 1 for record in records)
