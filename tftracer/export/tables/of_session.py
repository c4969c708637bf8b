"""The rows of a session in the tables of the session, runs, steps, traces and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Run, Session, TraceRecord
from tftracer.contract.stalls import Stall
from tftracer.export.tables.of_trace import trace_columns
from tftracer.export.tables.schema import TRACES, Field
from tftracer.export.tables.table import Array, Part, moments, nanoseconds
from tftracer.trace.arrays.columns import Columns

_STATISTICS = ("mean", "p50", "p95", "p99", "min", "max", "between_steps")
_UNKNOWN: dict[str, Any] = {"int": None, "text": "", "time": np.datetime64("NaT", "ns")}


def session_part(session: Session, title: str, clock_offset_ns: int | None, clock_error_ns: int | None) -> Part:
    """One row. ``clock_...``: None in a session that is no part of a job, or that nothing ties to the job's clock."""
    place = session["place"]
    row: dict[str, Any] = {
        "session_id": session["id"],
        "title": title,
        "pid": session["pid"] or None,
        "role": place["role"],
        "size": place["size"],
        "launcher": place["launcher"],
        "clock_offset_ns": clock_offset_ns,
        "clock_error_ns": clock_error_ns,
    }
    names = ("host", "tensorflow", "tftracer", "python", "command", "gpus", "steps_lost", "cut", "damage")
    row.update((name, session[name]) for name in names)  # type: ignore[literal-required]
    columns: Columns = {name: lambda value=value: [value] for name, value in row.items()}  # type: ignore[misc]
    columns["started_at"] = lambda: moments([session["started_at"]])
    columns["ended_at"] = lambda: moments([session["ended_at"]])
    return Part(1, columns)


def runs_part(runs: Sequence[Run]) -> Part:
    columns: Columns = {
        "run_id": lambda: [run["id"] for run in runs],
        "title": lambda: [run["title"] for run in runs],
        "origin": lambda: [run["origin"] for run in runs],
        "fetches": lambda: [", ".join(run["fetches"]) for run in runs],
        "feeds": lambda: [", ".join(run["feeds"]) for run in runs],
        "steps": lambda: [run["steps"] or None for run in runs],
        "traces": lambda: [len(run["traces"]) for run in runs],
        "first_run_at": lambda: moments([run["first_run_at"] for run in runs]),
        "last_run_at": lambda: moments([run["last_run_at"] for run in runs]),
    }
    for name in _STATISTICS:
        columns[f"{name}_ns"] = lambda name=name: nanoseconds([run[f"{name}_s"] for run in runs])  # type: ignore[misc,literal-required]
    return Part(len(runs), columns)


def steps_part(run_id: int, entries: Array, traced: Sequence[int]) -> Part:
    """``entries``: as session/steps/history.py has them; ``traced``: numbers of steps."""
    step, count, start_at, *times = entries.T
    columns: Columns = {
        "run_id": lambda: np.full(len(entries), run_id),
        "step": lambda: step,
        "count": lambda: count,
        "start_at": lambda: moments(start_at),
        "traced": lambda: _holds(step, count, traced),
    }
    for name, seconds in zip(("mean_ns", "min_ns", "max_ns"), times):
        columns[name] = lambda seconds=seconds: np.rint(seconds * 1e9)  # type: ignore[misc]
    return Part(len(entries), columns)


def _holds(first: Array, count: Array, numbers: Sequence[int]) -> Array:
    """[rows] whether one of the numbers lies in first : first + count."""
    ordered = np.sort(np.array(numbers, np.float64))
    return np.asarray(np.searchsorted(ordered, first) < np.searchsorted(ordered, first + count))


def trace_part(record: TraceRecord, read_facts: Callable[[], dict[str, Any]]) -> Part:
    """One row. ``read_facts`` decodes the trace: it is called for columns that the record does not tell (``TracePart.facts``)."""
    values: dict[str, Any] = {"trace_id": record["id"], "devices": ", ".join(record["devices"])}
    names = ("run_id", "step", "bytes", "nodes", "asked_by", "state", "headline", "note")
    values.update((name, record[name]) for name in names)  # type: ignore[literal-required]
    values["duration_ns"], values["median_ns"] = nanoseconds([record["duration_s"], record["median_s"]])
    values["start_at"] = moments([record["started_at"]])[0]
    facts: dict[str, Any] = {}

    def fact(field: Field) -> Any:
        if not facts:
            facts.update(read_facts())
        return facts.get(field.name, _UNKNOWN[field.type])

    columns: Columns = {field.name: lambda field=field: [fact(field)] for field in TRACES}  # type: ignore[misc]
    columns.update((name, lambda value=value: [value]) for name, value in values.items())  # type: ignore[misc]
    return Part(1, columns)


def stalls_part(stalls: Sequence[Stall]) -> Part:
    columns: Columns = {
        "stall_id": lambda: [stall["id"] for stall in stalls],
        "inside": lambda: [stall["where"] == "inside" for stall in stalls],
        "start_at": lambda: moments([stall["started_at"] for stall in stalls]),
        "duration_ns": lambda: np.array(nanoseconds([stall["duration_s"] for stall in stalls]), np.int64),
        "expected_ns": lambda: nanoseconds([stall["expected_s"] for stall in stalls]),
        "code": lambda: [stall["place"] for stall in stalls],
    }
    for name in ("run_id", "step", "cause", "text", "uncertainty", "samples", "trace_id", "every"):
        columns[name] = lambda name=name: [stall[name] for stall in stalls]  # type: ignore[misc,literal-required]
    return Part(len(stalls), columns)


_OF_STAGE = [
    *("depth", "name", "function", "place", "elements", "rate", "busy", "parallelism", "parallelism_max"),
    *("buffered", "buffer_size", "capacity", "is_limiting"),
]


def ledger_part(ledger: Ledger) -> Part:
    parts = ledger["parts"]
    columns: Columns = {
        "duration_ns": lambda: np.array(nanoseconds([part["duration_s"] for part in parts]), np.int64),
        "items": lambda: ["; ".join(f"{item['name']} {item['duration_s']:.3f} s" for item in part["items"]) for part in parts],
    }
    for name in ("kind", "name", "permille"):
        columns[name] = lambda name=name: [part[name] for part in parts]  # type: ignore[misc,literal-required]
    return Part(len(parts), columns)


def input_stages_part(pipelines: InputPipelines) -> Part:
    rows = [(each, stage) for each in pipelines["pipelines"] for stage in each["stages"]]
    columns: Columns = {
        "pipeline": lambda: [each["title"] for each, _ in rows],
        "pipeline_rate": lambda: [each["rate"] for each, _ in rows],
        "wait": lambda: [each["wait"] for each, _ in rows],
        "predicted_rate": lambda: [each["predicted_rate"] for each, _ in rows],
        "element_ns": lambda: nanoseconds([stage["element_s"] for _, stage in rows]),
    }
    for name in _OF_STAGE:
        columns[name] = lambda name=name: [stage[name] for _, stage in rows]  # type: ignore[misc,literal-required]
    return Part(len(rows), columns)


def memory_growth_part(memory: ProcessMemory) -> Part:
    rows = [(each, each["things"][0] if each["things"] else None) for each in memory["growths"]]
    columns: Columns = {
        "since": lambda: moments([each["since"] for each, _ in rows]),
        "until": lambda: moments([each["until"] for each, _ in rows]),
        "growing": lambda: [each["is_growing"] for each, _ in rows],
        "bytes_per_s": lambda: [each["bytes_rate"] for each, _ in rows],
        "name": lambda: [thing["name"] if thing else "" for _, thing in rows],
        "place": lambda: [thing["place"] if thing else "" for _, thing in rows],
        "grown": lambda: [thing["grown"] if thing else None for _, thing in rows],
    }
    for name in ("start_bytes", "end_bytes", "kind", "text", "advice"):
        columns[name] = lambda name=name: [each[name] for each, _ in rows]  # type: ignore[misc,literal-required]
    return Part(len(rows), columns)


def findings_part(record: TraceRecord) -> Part:
    findings = record["findings"]
    columns: Columns = trace_columns(record, len(findings))
    for name in ("code", "severity", "message", "remedy"):
        columns[name] = lambda name=name: [finding[name] for finding in findings]  # type: ignore[misc,literal-required]
    return Part(len(findings), columns)
