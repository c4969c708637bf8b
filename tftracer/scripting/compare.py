"""Measures and compares sessions, for ``Session.compare`` and ``tftracer compare``."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol, get_args

import numpy as np

from tftracer.comparison.comparison import Comparison, compare
from tftracer.comparison.values_of_session import WARM_UP, Measured, Steps, block_values, counted_steps, step_values
from tftracer.contract.ledger import LedgerKind
from tftracer.contract.session import Run
from tftracer.contract.session import Session as Facts
from tftracer.errors import UnknownError, UsageError
from tftracer.export.tables.table import Table
from tftracer.session.steps.history import RECENT
from tftracer.session.steps.percentile_sketch import ERROR, SketchedSteps
from tftracer.session.steps.statistics import total_s
from tftracer.trace.analyses.ops import By

MIN_SHARE = 0.5  # a shared run is compared if in any session it took at least this share of the longest run's time
_REPETITION_NUMBER = re.compile(r"\[\d+\]")


class Session(Protocol):
    """The methods of a session (session.py) that are used here."""

    name: str

    @property
    def facts(self) -> Facts: ...

    @property
    def growth_rate(self) -> float | None: ...

    def run_messages(self) -> list[Run]: ...

    def steps(self, run: int | str | None = None) -> Table: ...

    def ops(self, by: By = "type", trace: int | None = None) -> Table: ...

    def table(self, name: str, trace: int | None = None) -> Table: ...

    def sketched_steps(self, run: int | str) -> tuple[SketchedSteps, int]: ...

    def forget_traces(self) -> None: ...


def compare_sessions(before: Sequence[Session], after: Sequence[Session], run: str | None = None, by: By = "name") -> Comparison:
    """Compare sessions before and after a change.

    ``run``: the title of the run to compare; by default the run that took the most time of those that all sessions have. If there
    is none, or if in each session it took less than half of the time of the longest run, the longest runs of the two sides are
    compared instead, with a warning. Raises ``UnknownError`` if not all sessions have the run, or if they have no run in common
    and the sessions of a side have different longest runs; ``UsageError`` if a session is given twice.
    """
    _check_distinct([*before, *after])
    titles = _runs_to_compare(before, after, run)
    sides = ([_measured(session, title, by) for session in side] for side, title in zip((before, after), titles))
    if titles[0] == titles[1]:
        return compare(titles[0], *sides)
    warning = (
        f"The runs differ: {titles[0][:80]!r} before, {titles[1][:80]!r} after. Each took the most time on its side; no run that "
        "all sessions have took half as much."
    )
    comparison = compare(f"{titles[0]} before, {titles[1]} after", *sides)
    return replace(comparison, warnings=[warning, *comparison.warnings])


def _check_distinct(sessions: Sequence[Session]) -> None:
    """Raise UsageError if a session is given twice: differences would look smaller and more certain than they are."""
    names: dict[str, str] = {}
    for session in sessions:
        identity = session.facts["id"] or os.path.realpath(session.facts["file"] or session.name)
        if identity in names:
            reason = "is given twice" if names[identity] == session.name else f"and {names[identity]} hold the same session"
            raise UsageError(f"{session.name} {reason}. Compare sessions that were recorded one by one.")
        names[identity] = session.name


def _measured(session: Session, run: str, by: By) -> Measured:
    try:
        return measure(session, run, by)
    finally:
        session.forget_traces()  # traces of many sessions take much memory


def _runs_to_compare(before: Sequence[Session], after: Sequence[Session], title: str | None) -> tuple[str, str]:
    """Return the titles of the runs to compare: (before, after). ``title``: the run that the caller has selected."""
    sessions = [*before, *after]
    titles = [[run["title"] for run in _busiest_first(session)] for session in sessions]
    shared = [each for each in titles[0] if all(each in session_titles for session_titles in titles)]
    if title is not None:
        if title not in shared:
            raise UnknownError(f"Not all sessions have a run {title[:80]!r}. They share {_listed(shared)}.")
        return title, title
    longest = [{each[0] for each in side if each} for side in (titles[: len(before)], titles[len(before) :])]
    is_small = not shared or all(_share_of_longest(session, shared[0]) < MIN_SHARE for session in sessions)
    if is_small and all(titles) and len(longest[0]) == len(longest[1]) == 1:
        return longest[0].pop(), longest[1].pop()
    if not shared:
        listing = "; ".join(f"{session.name}: {_listed(its_titles)}" for session, its_titles in zip(sessions, titles))
        raise UnknownError(f"The sessions have no run in common: {listing[:2000]}.")
    return shared[0], shared[0]


def _share_of_longest(session: Session, title: str) -> float:
    runs = _busiest_first(session)
    return next(total_s(run) for run in runs if run["title"] == title) / max(total_s(runs[0]), 1e-9)


def _busiest_first(session: Session) -> list[Run]:
    return sorted(session.run_messages(), key=total_s, reverse=True)


def _listed(titles: Sequence[str]) -> str:
    return ", ".join(repr(title[:80]) for title in titles[:5]) or "none"


def measure(session: Session, run: str, by: By = "name") -> Measured:
    """Measure the values of one session that are compared."""
    table = session.steps(run).select("step", "count", "start_at", "mean_ns", "traced")
    single = table["count"] == 1
    steps = Steps(table["step"], table["start_at"].astype(np.int64), table["mean_ns"]).only(single)
    counted = counted_steps(steps, steps.number[table["traced"][single]])
    sketched = _sketched_values(session, run)
    traces = [_measure_trace(session, trace, by) for trace in _traces(session, run)]
    facts, gpus = session.facts, session.facts["gpus"]
    return Measured(
        name=session.name,
        steps=len(counted.number),
        values={**step_values(counted), **sketched, **_trace_values(traces)},
        relative_error=dict.fromkeys(sketched, ERROR),
        blocks=block_values(counted),
        ops=_over_traces(median, [trace.ops for trace in traces]),
        shortest_ops=_over_traces(min, [trace.ops for trace in traces]),
        op_types=_over_traces(median, [trace.op_types for trace in traces]),
        shortest_op_types=_over_traces(min, [trace.op_types for trace in traces]),
        findings=frozenset().union(*(trace.findings for trace in traces)),
        traces=len(traces),
        started_at=facts["started_at"] or None,
        shares=_shares(session),
        growth_rate=session.growth_rate,
        facts={"host": facts["host"], "TensorFlow": facts["tensorflow"], "GPUs": "" if gpus is None else str(gpus)},
    )


def _shares(session: Session) -> dict[str, float]:
    """Return the shares of the ledger's parts; a missing part took no time."""
    parts = {row["kind"]: row["permille"] / 1000 for row in session.table("ledger")}
    return {**dict.fromkeys(get_args(LedgerKind), 0.0), **parts} if parts else {}


def _sketched_values(session: Session, run: str) -> dict[str, float]:
    """Return the p99 of all steps, from sketches; {} if the session stores all its steps one by one, or has no complete
    sketches."""
    sketched, last_step = session.sketched_steps(run)
    if last_step <= RECENT or sketched.first_step > 1:
        return {}
    p99 = sketched.after(WARM_UP * last_step).percentile(0.99)
    return {} if p99 is None else {"p99": p99 * 1e9}


@dataclass(frozen=True)
class _Trace:
    """The values of one trace. ``ops``, ``op_types``: key -> ns."""

    peak_bytes: int | None
    received_bytes: int
    ops: dict[str, int]
    op_types: dict[str, int]
    findings: set[str]


def _measure_trace(session: Session, trace: int, by: By) -> _Trace:
    """Measure all values of a trace, which is decoded only once."""
    return _Trace(
        peak_bytes=session.table("traces", trace)["memory_peak_bytes"].tolist()[0],
        received_bytes=int(session.table("transfers", trace)["bytes"].sum()),
        ops=_totals(session, trace, by),
        op_types=_totals(session, trace, "type"),
        findings=set(session.table("findings", trace)["code"].tolist()),
    )


def _traces(session: Session, run: str) -> list[int]:
    """Return the ids of the run's readable traces."""
    run_traces = next(each["traces"] for each in session.run_messages() if each["title"] == run)
    return [trace["id"] for trace in run_traces if session.table("traces", trace["id"])["state"][0] == "ready"]


def _totals(session: Session, trace: int, by: By) -> dict[str, int]:
    """Return op -> ns.

    The names of tf.data stages have a number for each repetition; it is removed, because it differs between traces.
    """
    ops = session.ops(by, trace).select("key", "total_ns")
    totals: Counter[str] = Counter()
    for key, total in zip(ops["key"].tolist(), ops["total_ns"].tolist()):
        totals[_REPETITION_NUMBER.sub("", key) if key.startswith("Iterator::") else key] += total
    return dict(totals)


def _trace_values(traces: Sequence[_Trace]) -> dict[str, float]:
    """Return the medians of the traces' known values."""
    if not traces:
        return {}
    values = {"bytes": float(median(trace.received_bytes for trace in traces))}
    peaks = [trace.peak_bytes for trace in traces if trace.peak_bytes is not None]
    return {**values, "memory": float(median(peaks))} if peaks else values


def _over_traces(combine: Callable[[Iterable[int]], float], traces: Sequence[dict[str, int]]) -> dict[str, float]:
    """Return each op's median or shortest time over the traces; a missing op took no time."""
    return {key: float(combine(trace.get(key, 0) for trace in traces)) for key in set().union(*traces)}
