"""The rows of a session in the tables that are not about one trace alone: session, runs, steps, traces, findings and so on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Run, Session, TraceRecord
from tftracer.contract.stalls import Stall
from tftracer.export.tables.schema import TABLES, TRACES, Field
from tftracer.export.tables.table import Array, Part, moments, nanoseconds
from tftracer.trace.analyses.over_traces import OpTotals, over_traces
from tftracer.trace.arrays.columns import Columns, Values

_UNKNOWN: dict[str, Any] = {"int": None, "text": "", "time": np.datetime64("NaT", "ns")}


def rows_part(table: str, rows: Sequence[Mapping[str, Any]]) -> Part:
    """Build a part. Each row maps column names to values; instead of a column ``x_ns``, rows may have seconds as ``x_s``."""

    def column(field: Field) -> Values:
        if rows and field.name not in rows[0]:
            return nanoseconds([row[f"{field.name.removesuffix('_ns')}_s"] for row in rows])
        values = [row[field.name] for row in rows]
        return moments(values) if field.type == "time" else values

    return Part(len(rows), {field.name: functools.partial(column, field) for field in TABLES[table]})


def session_part(session: Session, title: str, clock_offset_ns: int | None, clock_error_ns: int | None) -> Part:
    """Build one row. ``clock_...``: None for a session outside a job, or if its clock's offset is not known."""
    clock = {"clock_offset_ns": clock_offset_ns, "clock_error_ns": clock_error_ns}
    known = {"session_id": session["id"], "title": title, "pid": session["pid"] or None}
    return rows_part("session", [{**session, **session["place"], **known, **clock}])


def runs_part(runs: Sequence[Run]) -> Part:
    names = ("fetches", "feeds")
    listed = [{name: ", ".join(run[name]) for name in names} for run in runs]  # type: ignore[literal-required]
    counts = [{"run_id": run["id"], "steps": run["steps"] or None, "traces": len(run["traces"])} for run in runs]
    return rows_part("runs", [{**run, **texts, **numbers} for run, texts, numbers in zip(runs, listed, counts)])


def steps_part(run_id: int, entries: Array, traced: Sequence[int]) -> Part:
    """Build the rows of one run. ``entries``: as in session/steps/history.py. ``traced``: numbers of traced steps."""
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
    """Return [rows] whether one of the numbers is in first : first + count."""
    ordered = np.sort(np.array(numbers, np.float64))
    return np.asarray(np.searchsorted(ordered, first) < np.searchsorted(ordered, first + count))


def trace_part(record: TraceRecord, read_facts: Callable[[], dict[str, Any]]) -> Part:
    """Build one row. ``read_facts`` decodes the trace, for columns that the record does not have (``TracePart.facts``)."""
    row = {**record, "trace_id": record["id"], "devices": ", ".join(record["devices"]), "start_at": record["started_at"]}
    facts = functools.cache(read_facts)
    lacking = [field for field in TRACES if field.name not in row and f"{field.name.removesuffix('_ns')}_s" not in row]

    def fact(field: Field) -> list[Any]:
        return [facts().get(field.name, _UNKNOWN[field.type])]

    fact_columns: Columns = {field.name: functools.partial(fact, field) for field in lacking}
    return Part(1, {**rows_part("traces", [row]).columns, **fact_columns})


def stalls_part(stalls: Sequence[Stall]) -> Part:
    renamed = [
        {"stall_id": stall["id"], "inside": stall["where"] == "inside", "start_at": stall["started_at"], "code": stall["place"]}
        for stall in stalls
    ]
    return rows_part("stalls", [{**stall, **more} for stall, more in zip(stalls, renamed)])


def ledger_part(ledger: Ledger) -> Part:
    items = ["; ".join(f"{item['name']} {item['duration_s']:.3f} s" for item in part["items"]) for part in ledger["parts"]]
    return rows_part("ledger", [{**part, "items": text} for part, text in zip(ledger["parts"], items)])


def input_stages_part(pipelines: InputPipelines) -> Part:
    return rows_part(
        "input_stages",
        [
            {**pipeline, **stage, "pipeline": pipeline["title"], "pipeline_rate": pipeline["rate"]}
            for pipeline in pipelines["pipelines"]
            for stage in pipeline["stages"]
        ],
    )


def memory_growth_part(memory: ProcessMemory) -> Part:
    unknown = {"name": "", "place": "", "grown": None}
    rows = [{**(growth["things"][0] if growth["things"] else unknown), **growth} for growth in memory["growths"]]
    return rows_part(
        "memory_growth",
        [{**row, "growing": row["is_growing"], "bytes_per_s": row["bytes_rate"]} for row in rows],
    )


def findings_part(record: TraceRecord) -> Part:
    trace_ids = {"trace_id": record["id"], "run_id": record["run_id"], "step": record["step"]}
    return rows_part("findings", [{**finding, **trace_ids} for finding in record["findings"]])


def ops_over_traces_part(run_id: int, traces: Sequence[OpTotals]) -> Part:
    """Build the rows of one run. ``traces``: the op totals of its readable traces."""
    ops = over_traces(traces)
    rows, columns = len(ops.keys), ops.columns()
    for name in ("best", "median"):
        columns[f"{name}_flops_per_s"] = columns.pop(f"{name}_flop_rate")
    run_columns: Columns = {"run_id": lambda: np.full(rows, run_id), "of_traces": lambda: np.full(rows, len(traces))}
    return Part(rows, {**columns, **run_columns})
