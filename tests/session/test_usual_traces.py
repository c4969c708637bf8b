"""Which traces of a run are a measure of tracing, and of what is usual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tftracer.session.steps.statistics import Between, StepStatistics
from tftracer.session.traces.traces_of_usual_steps import follows_traced, usual


def record(number: int, asked_by: str = "user", state: str = "ready") -> Any:
    return {"id": number, "step": 10 * number, "asked_by": asked_by, "state": state}


def test_steps_that_were_traced_for_being_slow_are_no_measure_of_tracing() -> None:
    records = [record(1), record(2, "slow"), record(3, "global"), record(4, state="broken")]
    assert [each["id"] for each in usual(records)] == [1, 3]
    assert [each["id"] for each in usual(records, except_trace=1)] == [3]


def test_the_step_before_was_traced() -> None:
    assert follows_traced([record(1)], 11) and not follows_traced([record(1)], 12) and not follows_traced([record(1)], None)


def test_what_tracing_costs_is_not_told_by_steps_that_were_expected_to_be_slow() -> None:
    statistics, starts = StepStatistics(), np.arange(5.0)
    statistics.add(
        starts, np.array([0.01, 0.01, 0.01, 0.40, 0.012]), Between(np.full(5, np.nan), np.full(5, np.nan)), [3, 4], measuring=[4]
    )
    overhead = statistics.message()["traced_overhead_s"]
    assert overhead is not None and 0 < overhead < 0.01


def test_the_first_step_alone_is_no_usual_one() -> None:
    """A judge read "a usual step of the run 65.2 s": TensorFlow traced the function in the first one."""
    statistics = StepStatistics()
    statistics.add(np.zeros(1), np.array([65.2]), Between(np.full(1, np.nan), np.full(1, np.nan)), [], [])
    assert statistics.median_s is None
    statistics.add(np.ones(1), np.array([0.05]), Between(np.full(1, np.nan), np.full(1, np.nan)), [], [])
    assert statistics.median_s == pytest.approx(0.05, rel=0.02)
