"""What a session answers about slow steps: what its log holds, with its traces and step times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tftracer.contract import stalls as contract
from tftracer.contract.session import RunStatistics
from tftracer.session.model import SessionModel
from tftracer.session.steps.changes import step_changes
from tftracer.session.steps.history import History
from tftracer.slow.answer import answers
from tftracer.slow.answer.messages import SlowMark


def run_stalls(model: SessionModel, run_id: int, steps: int) -> contract.RunStalls:
    """Under the lock. ``with_history`` adds the rest outside of it."""
    return answers.run_stalls(model.slow, run_id, _traces(model, run_id), steps)


def all_stalls(model: SessionModel, steps_of: Callable[[int], int]) -> contract.StallList:
    """Under the lock: of all runs. ``steps_of``: how many steps a run has had."""
    traces = {run_id: _traces(model, run_id) for run_id in model.runs}
    return answers.all_stalls(model.slow, traces, steps_of)


def one_stall(model: SessionModel, stall_id: int) -> contract.Stall:
    """Under the lock. ``UnknownError`` where it has made way."""
    run_id = model.slow.stall(stall_id).message["run_id"]
    stalls = answers.stalls_of(model.slow, run_id, _traces(model, run_id))
    return next(stall for stall in stalls if stall["id"] == stall_id)


def gaps(model: SessionModel, run_id: int, sampling: bool) -> contract.GapProfile:
    """Under the lock."""
    model.run(run_id)
    return answers.gaps(model.slow, run_id, sampling)


def _traces(model: SessionModel, run_id: int) -> answers.Traces:
    records = [trace.record for trace in model.traces_of(run_id)]
    return {record["step"]: record["id"] for record in records if record["step"] is not None}


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
