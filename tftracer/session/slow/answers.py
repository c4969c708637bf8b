"""What is asked about slow steps, live or reopened. Under the owner's lock but for what says otherwise."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence

import numpy as np

from tftracer.contract import stalls as contract
from tftracer.contract.session import RunStatistics
from tftracer.session.model import SessionModel
from tftracer.session.slow.messages import STARVED, SlowMark, no_gaps
from tftracer.session.slow.no_cpu import no_cpu
from tftracer.session.step_changes import step_changes
from tftracer.session.step_history import History

NEVER_SAMPLED = "The time between the steps was not sampled, so that there are no lines for it."


def run_stalls(model: SessionModel, run_id: int) -> contract.RunStalls:
    """Without marks, changes and drift, which ``with_history`` adds outside the lock."""
    stalls = _complete(model, run_id)
    return {
        "run_id": run_id,
        "stalls": stalls,
        "count": model.slow.count(run_id),
        "no_cpu": no_cpu(stalls),
        "periods": model.slow.periods_of(run_id),
        "marks": [],
        "changes": [],
        "drift": None,
        "median_s": None,
        "p99_s": None,
        "max_s": None,
    }


def with_history(
    answer: contract.RunStalls, history: History, statistics: RunStatistics, marks: Sequence[SlowMark]
) -> contract.RunStalls:
    """Needs no lock: of copies."""
    changes, drift = step_changes(history)
    return {
        **answer,
        "marks": placed_marks(marks, history),
        "changes": changes,
        "drift": drift,
        "median_s": statistics["p50_s"],
        "p99_s": statistics["p99_s"],
        "max_s": statistics["max_s"],
    }


def all_stalls(model: SessionModel) -> contract.StallList:
    """Of all runs, the oldest first."""
    stalls = [stall for run_id in model.runs for stall in _complete(model, run_id)]
    return {
        "stalls": sorted(stalls, key=lambda stall: stall["started_at"]),
        "count": sum(model.slow.count(run_id) for run_id in model.runs),
        "no_cpu": no_cpu(stalls),
        "periods": sorted(model.slow.periods.values(), key=lambda period: -period["duration_s"]),
    }


def one_stall(model: SessionModel, stall_id: int) -> contract.Stall:
    run_id = model.slow.stall(stall_id).message["run_id"]
    return next(stall for stall in _complete(model, run_id) if stall["id"] == stall_id)


def gaps(model: SessionModel, run_id: int, sampling: bool) -> contract.GapProfile:
    model.run(run_id)
    profile = model.slow.gaps.get(run_id)
    if sampling:
        return {**(profile or no_gaps(run_id, "sampling", "")), "state": "sampling"}
    return profile or no_gaps(run_id, "none", NEVER_SAMPLED)


def _complete(model: SessionModel, run_id: int) -> list[contract.Stall]:
    """A run's stalls with their traces and periods, and what the machine did around them, as known now. Oldest first."""
    records = [trace.record for trace in model.traces_of(run_id)]
    traces = {record["step"]: record["id"] for record in records if record["step"] is not None}
    periods = model.slow.periods_of(run_id)
    host = list(model.slow.marks.get("host", ()))
    host_at = [mark.at for mark in host]
    completed: list[contract.Stall] = []
    for stall in (state.message for state in model.slow.of_run(run_id)):
        trouble = _around(stall, host, host_at)
        completed.append(
            {
                **stall,
                "trace_id": _trace_of(stall, traces),
                "every": _period_of(stall, periods),
                "evidence": [*stall["evidence"], *([f"In those seconds: {trouble}."] if trouble else [])],
                "no_cpu": stall["cause"] == "machine" or trouble.startswith(STARVED),
            }
        )
    return completed


def _trace_of(stall: contract.Stall, traces: dict[int, int]) -> int | None:
    """A trace shows what a step does inside: it tells nothing of the time before it."""
    return traces.get(stall["step"]) if stall["step"] is not None and stall["where"] == "inside" else None


def _around(stall: contract.Stall, host: Sequence[SlowMark], host_at: Sequence[float]) -> str:
    """The machine's trouble in the second of a stall that was too short to be measured by itself: evidence, and no cause.

    ``host_at``: when each of the marks began.
    """
    if stall["cause"] != "unknown":
        return ""
    at = bisect(host_at, stall["started_at"] + stall["duration_s"]) - 1
    mark = host[at] if at >= 0 else None
    return mark.text if mark and mark.end >= stall["started_at"] else ""


def _period_of(stall: contract.Stall, periods: Iterable[contract.Period]) -> int | None:
    for period in periods:
        is_on_time = (period["last_step"] - (stall["step"] or 0)) % period["every"] == 0
        if stall["step"] and stall["where"] == period["where"] and is_on_time:
            return period["every"]
    return None


# ------------------------------------------------------------------------------------------------------------------- marks


def placed_marks(marks: Sequence[SlowMark], history: History) -> list[contract.Mark]:
    """The marks with the step that each lies in, or before."""
    rows = history.entries()
    if not len(rows) or not marks:
        return []
    step, count, start, mean = rows.T[:4]
    at = np.array([mark.at for mark in marks])
    entry = np.searchsorted(start, at, side="right") - 1
    inside = np.maximum(entry, 0)
    ends = np.append(start[1:], start[-1] + mean[-1] * count[-1])
    passed = np.clip((at - start[inside]) / np.maximum(ends[inside] - start[inside], 1e-9), 0, 1)
    number = step[inside] + np.where(count[inside] > 1, np.floor(passed * (count[inside] - 1)), at > start[inside] + mean[inside])
    last = step[-1] + count[-1] - 1
    return [
        {
            "kind": mark.kind,
            "at": mark.at,
            "duration_s": mark.duration_s,
            "step": int(min(max(number[i], 1), last)) if entry[i] >= 0 else None,
            "text": mark.text,
        }
        for i, mark in enumerate(marks)
    ]
