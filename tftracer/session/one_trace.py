"""Makes a record for a trace outside of any session (of a Timeline, or of a single file), and a session with only that trace."""

from __future__ import annotations

import os
import platform

from tftracer.contract.session import RunStatistics, SessionMessage, TraceRecord
from tftracer.session.files.reading import new_facts, read_trace_record
from tftracer.session.model import RunState, SessionModel, no_statistics
from tftracer.trace.answers import Answers
from tftracer.trace.record_fields import contents_of
from tftracer.version import __version__


def record_of(answers: Answers) -> TraceRecord:
    trace, context = answers.trace, answers.context
    known = {
        "id": 1,
        "run_id": 1,
        "step": context.step,
        "started_at": trace.origin_ns / 1e9,
        "duration_s": context.step_s if context.step_s is not None else trace.duration_ns / 1e9,
        "median_s": context.median_s,
        "bytes": trace.content.size,
        "stored_bytes": trace.content.size,
        "asked_by": "script",
    }
    devices = [device.name for device in trace.devices if not device.repeats]
    return {**read_trace_record(known), **contents_of(answers), "devices": devices}  # type: ignore[typeddict-item]


def session_of(record: TraceRecord) -> SessionMessage:
    started_at, step_s = record["started_at"], record["duration_s"]
    statistics: RunStatistics = {
        **no_statistics(),
        **dict.fromkeys(("mean_s", "p50_s", "p95_s", "p99_s", "min_s", "max_s", "last_s"), step_s),  # type: ignore[typeddict-item]
        "steps": 1,
        "first_run_at": started_at,
        "last_run_at": started_at,
    }
    run = RunState(record["run_id"], "session.run", [], [], "", statistics)
    facts = new_facts()
    facts["id"], facts["host"], facts["pid"] = "timeline", platform.node(), os.getpid()
    facts["tftracer"], facts["python"] = __version__, platform.python_version()
    facts["started_at"], facts["ended_at"] = started_at, started_at + (step_s or 0.0)
    model = SessionModel(facts)
    return {"session": facts, "runs": [{**model.run_without_traces(run), "traces": [record]}]}
