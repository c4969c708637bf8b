"""Answers questions about slow steps from a log. Call the functions under the lock of the log's owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tftracer.contract import stalls as contract
from tftracer.slow.answer.groups import Traces, all_groups, headline, trace_of
from tftracer.slow.answer.messages import no_gaps
from tftracer.slow.answer.texts import ordinal, step_text
from tftracer.slow.record.kept_slow_steps import SlowLog
from tftracer.slow.record.steps_of_periods import StepsOfPeriods

NEVER_SAMPLED = "The time between the steps was not sampled, so that there are no lines for it."


def all_stalls(log: SlowLog, traces: Mapping[int, Traces], steps_of: Callable[[int], int]) -> contract.StallList:
    """Return the slow steps of all runs. ``traces``: run -> its traces. ``steps_of``: returns the number of a run's steps."""
    stalls = [stall for run_id, run_traces in traces.items() for stall in stalls_of(log, run_id, run_traces)]
    return {
        "stalls": sorted(stalls, key=lambda stall: stall["started_at"]),
        "count": sum(log.count(run_id) for run_id in traces),
        "groups": all_groups(log, traces, steps_of),
        "periods": sorted(log.periods.values(), key=lambda period: -period["duration_s"]),
    }


def gaps(log: SlowLog, run_id: int, sampling: bool) -> contract.GapProfile:
    """Return the profile of the time between a run's steps. ``sampling``: whether the time is being sampled now."""
    profile = log.gaps.get(run_id)
    if sampling:
        return {**(profile or no_gaps(run_id, "sampling", "")), "state": "sampling"}
    return profile or no_gaps(run_id, "none", NEVER_SAMPLED)


def slow_steps(log: SlowLog, run_id: int, steps: int, traces: Traces) -> contract.SlowSteps:
    """Return a summary of a run's slow steps, for its record."""
    profile = log.gaps.get(run_id)
    text, trace_id = headline(log, run_id, steps, traces)
    return {
        "count": log.count(run_id),
        "longest_s": log.longest_s(run_id),
        "lost_s": sum(kind["lost_s"] for kind in log.kinds_of(run_id).of_run(run_id)),
        "last_at": log.last_at(run_id),
        "text": text,
        "trace_id": trace_id,
        "gaps_at": profile["sampled_at"] if profile else None,
    }


def stalls_of(log: SlowLog, run_id: int, traces: Traces) -> list[contract.Stall]:
    """Return a run's slow steps with their current traces and periods, the oldest first."""
    periods = log.steps_of_periods(run_id)
    return [_current(state.message, periods, traces) for state in log.of_run(run_id)]


def _current(stall: contract.Stall, periods: StepsOfPeriods, traces: Traces) -> contract.Stall:
    """Return a slow step with its current trace and period.

    If its line is unknown, or only takes the next element of a dataset, the text also names the place of its period.
    """
    known_period, period = periods.of_known_cause(stall), periods.period_of(stall)
    addition = ""
    if known_period and known_period["place"] and (not stall["place"] or stall["cause"] == "input"):
        addition = f"; it came with every {ordinal(known_period['every'])} step: {known_period['place']}"
    return {
        **stall,
        "text": stall["text"] + addition,
        "step_text": step_text(stall["step"], stall["call"]),
        "trace_id": trace_of(stall, traces),
        "every": period["every"] if period else None,
    }
