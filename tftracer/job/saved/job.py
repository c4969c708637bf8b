"""The job as one file: the .tftrace of the hub's session, with the job and every process's trace of every traced step.

It adds two record types to the format (docs/file-format.rst); readers that do not know them skip them:

    job        meta: the job as GET /api/job answers it, and the user's communication_ops
    job_trace  meta: {job_trace, process, record}; payload: that process's RunMetadata of the step
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

from tftracer.contract.job import JobTrace
from tftracer.errors import TracerError
from tftracer.job.hub.hub import Hub, Member, TracedStep
from tftracer.job.hub.services import JobServices
from tftracer.session.answers import SessionSource
from tftracer.session.files.reading import read_trace_record, with_sizes
from tftracer.storage import tftrace_format as tftrace_format
from tftracer.storage import untrusted
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.tftrace_format import StoredPayload
from tftracer.storage.tftrace_reader import Reader
from tftracer.web.downloads import read_pieces

JOB, JOB_TRACE = "job", "job_trace"
MEMORY_BYTES = 32 << 20  # if the processes' traces have more bytes, they are kept on disk


async def job_file(job: JobServices, source: SessionSource) -> Iterator[bytes]:
    """Return the file's bytes. The processes' traces are fetched first; unavailable ones are missing in the file."""
    parts: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115 (closed by _chunks)
    message = job.job_message()
    if message is not None:
        traces = [await _save_trace(job, traced, parts) for traced in list(job.hub.traces.values())]
        parts.write(tftrace_format.record(JOB, {**message, "traces": traces, "communication_ops": job.traces.communication_ops}))
        parts.write(tftrace_format.end_record({JOB_TRACE: sum(len(trace["ready"]) for trace in traces), JOB: 1}))
    return _chunks(source.saved_bytes(), parts)


async def _save_trace(job: JobServices, traced: TracedStep, parts: IO[bytes]) -> JobTrace:
    message: JobTrace = {**traced.message, "missing": dict(traced.message["missing"]), "ready": []}
    for process_id in traced.message["ready"]:
        try:
            raw = await job.traces.raw(traced, process_id)
        except TracerError as error:
            message["missing"][process_id] = str(error)
            continue
        meta = {"job_trace": message["id"], "process": process_id, "record": traced.records[process_id]}
        stored = await job.traces.work(lambda raw=raw: tftrace_format.compress(raw))  # type: ignore[misc]
        parts.write(tftrace_format.record_head(JOB_TRACE, meta, stored, len(raw)) + stored)
        message["ready"].append(process_id)
    pending = set(message["processes"]) - set(message["ready"]) - set(message["missing"])
    message["missing"].update(dict.fromkeys(pending, "It had not traced the step when the job was saved."))
    message["state"] = "partial" if message["missing"] else "ready"
    return message


def _chunks(session: Iterator[bytes], parts: IO[bytes]) -> Iterator[bytes]:
    with parts:
        yield from session
        parts.seek(0)
        yield from read_pieces(parts)


def load_job(job: JobServices, path: str) -> bool:
    """Load the job from a file; return False if it has none. Invalid records are skipped."""
    try:
        records = [record for record in Reader(FileBytes(path)) if record.type in (JOB, JOB_TRACE)]
    except TracerError:  # a format without jobs
        return False
    jobs = [record for record in records if record.type == JOB]
    if not jobs:
        return False
    job.traces.communication_ops = untrusted.text(jobs[-1].meta.get("communication_ops"))
    _load_processes(job.hub, jobs[-1].meta)
    _load_traces(job.hub, jobs[-1].meta)
    for record in records:
        traced = job.hub.traces.get(untrusted.count(record.meta.get("job_trace")))
        process_id, fields = untrusted.text(record.meta.get("process"), 64), record.meta.get("record")
        if record.type == JOB_TRACE and traced is not None and isinstance(fields, dict):
            _load_trace(job, traced, process_id, fields, record.payload)
    return True


def _load_processes(hub: Hub, job: dict[str, Any]) -> None:
    hub.name = untrusted.text(job.get("name"), 300)
    for fields in untrusted.items(job.get("processes")):
        process_id = untrusted.text(fields.get("id"), 64) if isinstance(fields, dict) else ""
        if process_id:
            info = hub.process(process_id, fields)
            info["state"] = "lost" if fields.get("state") == "lost" else "ended"
            info["steps_per_s"] = None
            info["last_seen_at"] = untrusted.seconds(fields.get("last_seen_at"))
            hub.members[process_id] = Member(process_id, info, None)


def _load_traces(hub: Hub, job: dict[str, Any]) -> None:
    for fields in untrusted.items(job.get("traces")):
        number = untrusted.count(fields.get("id")) if isinstance(fields, dict) else 0
        if not number:
            continue
        missing, steps = untrusted.table(fields.get("missing")), untrusted.table(fields.get("steps"))
        message: JobTrace = {
            "id": number,
            "title": untrusted.text(fields.get("title"), 1000),
            "step": untrusted.count(fields.get("step")) or None,
            "steps": {str(process): untrusted.count(step) for process, step in steps.items()},
            "run_title": untrusted.text(fields.get("run_title"), 1000),
            "asked_at": untrusted.seconds(fields.get("asked_at")),
            "state": "partial" if missing else "ready",
            "processes": untrusted.texts(fields.get("processes")),
            "ready": [],
            "missing": {str(process): untrusted.text(why) for process, why in missing.items()},
        }
        hub.traces[number] = TracedStep(message)


def _load_trace(job: JobServices, traced: TracedStep, process_id: str, fields: dict[str, Any], payload: StoredPayload) -> None:
    traced.records[process_id] = with_sizes(read_trace_record({**fields, "asked_by": "user"}), payload)
    traced.message["ready"].append(process_id)
    job.traces.add_stored(traced.message["id"], process_id, payload)
