"""Sessions measured and compared: what ``Session.compare`` and ``tftracer compare`` do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from tftracer.comparison.comparison import Comparison, compare
from tftracer.comparison.measured import Measured, Steps, block_values, step_values, usual_steps
from tftracer.contract.session import Run
from tftracer.contract.session import Session as Facts
from tftracer.errors import UnknownError
from tftracer.export.tables.table import Table
from tftracer.trace.answers import By


class Session(Protocol):
    """What is asked of a session (session.py)."""

    name: str

    @property
    def facts(self) -> Facts: ...

    @property
    def traces(self) -> Table: ...

    def run_messages(self) -> list[Run]: ...

    def steps(self, run: int | str | None = None) -> Table: ...

    def ops(self, by: By = "type", trace: int | None = None) -> Table: ...

    def transfers(self, trace: int | None = None) -> Table: ...

    def table(self, name: str, trace: int | None = None) -> Table: ...


def compare_sessions(before: Sequence[Session], after: Sequence[Session], run: str | None = None, by: By = "name") -> Comparison:
    """``run``: the title of the run to compare; without it, the one that took the most time of those that all sessions have.

    ``UnknownError``: the sessions have no run in common, or not this one.
    """
    title = _shared_run([*before, *after], run)
    return compare(title, *([measure(session, title, by) for session in side] for side in (before, after)))


def _shared_run(sessions: Sequence[Session], wanted: str | None) -> str:
    titles = [[run["title"] for run in _busiest_first(session)] for session in sessions]
    shared = [title for title in titles[0] if all(title in others for others in titles)]
    if wanted is not None and wanted not in shared:
        raise UnknownError(f"Not all sessions have a run {wanted[:80]!r}. They share {_listed(shared)}.")
    if not shared:
        each = "; ".join(f"{session.name}: {_listed(of)}" for session, of in zip(sessions, titles))
        raise UnknownError(f"The sessions have no run in common: {each[:2000]}.")
    return wanted if wanted is not None else shared[0]


def _busiest_first(session: Session) -> list[Run]:
    return sorted(session.run_messages(), key=lambda run: -run["steps"] * (run["mean_s"] or 0.0))


def _listed(titles: Sequence[str]) -> str:
    return ", ".join(repr(title[:80]) for title in titles[:5]) or "none"


def measure(session: Session, run: str, by: By = "name") -> Measured:
    """The numbers of one session that are compared."""
    table = session.steps(run).select("step", "count", "start_at", "mean_ns", "traced")
    single = table["count"] == 1
    steps = Steps(table["step"], table["start_at"].astype(np.int64), table["mean_ns"]).only(single)
    usual = usual_steps(steps, steps.number[table["traced"][single]])
    traces = _traces(session, run)
    facts = session.facts
    return Measured(
        name=session.name,
        steps=len(usual.number),
        values={**step_values(usual), **_trace_values(session, traces)},
        blocks=block_values(usual),
        ops=_op_medians(session, traces, by),
        op_types=_op_medians(session, traces, "type"),
        findings=frozenset(_findings(session, traces)),
        traces=len(traces),
        facts={"host": facts["host"], "TensorFlow": facts["tensorflow"], "GPUs": _text(facts["gpus"])},
    )


def _traces(session: Session, run: str) -> list[int]:
    """Of the run, those that can be read."""
    table = session.traces.select("trace_id", "run_id", "state")
    run_id = next(each["id"] for each in session.run_messages() if each["title"] == run)
    return [int(trace) for trace in table["trace_id"][(table["run_id"] == run_id) & (table["state"] == "ready")]]


def _trace_values(session: Session, traces: Sequence[int]) -> dict[str, float]:
    """Medians of the traces, of what they tell."""
    if not traces:
        return {}
    peaks = [
        peak for trace in traces for peak in session.table("traces", trace)["memory_peak_bytes"].tolist() if peak is not None
    ]
    moved = [float(session.transfers(trace)["bytes"].sum()) for trace in traces]
    values = {"bytes": float(np.median(moved))}
    return {**values, "memory": float(np.median(peaks))} if peaks else values


def _op_medians(session: Session, traces: Sequence[int], by: By) -> dict[str, float]:
    """Each op's median over the traces; one that a trace does not have took no time in it."""
    totals: dict[str, list[int]] = {}
    for trace in traces:
        ops = session.ops(by, trace).select("key", "total_ns")
        for key, total in zip(ops["key"].tolist(), ops["total_ns"].tolist()):
            totals.setdefault(key, []).append(total)
    return {key: float(np.median(values + [0] * (len(traces) - len(values)))) for key, values in totals.items()}


def _findings(session: Session, traces: Sequence[int]) -> Iterator[str]:
    for trace in traces:
        yield from session.table("findings", trace)["code"].tolist()


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
