"""The HTML that a notebook shows for a session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from tftracer.contract.session import Run, Session
from tftracer.display import markup
from tftracer.scripting.trace import SessionTrace
from tftracer.session.steps.statistics import total_s
from tftracer.trace.units import duration

_SHOWN_RUNS = 8
_SHOWN_PROCESSES = 16


def as_html(name: str, facts: Session, runs: Sequence[Run], processes: Sequence[str], newest: SessionTrace | None) -> str:
    """Return the session as HTML. ``processes``: titles of the job's processes. ``newest``: the trace whose verdict is shown."""
    busiest = sorted(runs, key=total_s, reverse=True)
    return markup.block(
        name,
        markup.note(_origin(facts)),
        markup.note(_process_list(processes)) if len(processes) > 1 else "",
        *(markup.paragraph(text) for text in (facts["cut"], facts["damage"]) if text),
        _run_table(busiest[:_SHOWN_RUNS]),
        markup.note(f"{len(runs) - _SHOWN_RUNS:,} more runs") if len(runs) > _SHOWN_RUNS else "",
        *_newest_trace(newest),
    )


def _origin(facts: Session) -> str:
    parts = [facts["host"], f"TensorFlow {facts['tensorflow']}" if facts["tensorflow"] else "", facts["command"]]
    if facts["started_at"] > 0:
        parts.insert(0, f"{datetime.fromtimestamp(facts['started_at'], timezone.utc):%Y-%m-%d %H:%M} UTC")
    return " · ".join(filter(None, parts))


def _process_list(processes: Sequence[str]) -> str:
    more = f", and {len(processes) - _SHOWN_PROCESSES:,} more" if len(processes) > _SHOWN_PROCESSES else ""
    return f"{len(processes):,} processes: {', '.join(processes[:_SHOWN_PROCESSES])}{more}"


def _run_table(runs: Sequence[Run]) -> str:
    rows = [
        (run["title"], f"{run['steps']:,}", _time(run["p50_s"]), _time(run["p99_s"]), str(run["slow_steps"]["count"]),
         str(len(run["traces"])))
        for run in runs
    ]  # fmt: skip
    return markup.table(("run", " steps", " median", " p99", " slow", " traces"), rows)


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds * 1e9)


def _newest_trace(newest: SessionTrace | None) -> list[str]:
    if newest is None:
        return [markup.note("No step was traced.")]
    return [markup.paragraph(f"The newest trace, {newest.title}:"), *newest.parts()]
