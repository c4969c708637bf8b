"""The processes of a job that was saved as one file: each as a session, and the traces that belong to the same step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tftracer.contract.job import Process
from tftracer.contract.session import TraceRecord
from tftracer.job.hub.hub import Hub, TracedStep
from tftracer.job.hub.services import JobServices
from tftracer.job.saved.job import load_job
from tftracer.session.files.reading import new_facts
from tftracer.session.files.saved import SavedSession
from tftracer.session.model import RunState, SessionModel, TraceState
from tftracer.trace.model import TraceContext


@dataclass(frozen=True)
class SavedProcess:
    """One process of a saved job. ``clock`` identifies its clock: equal for processes of one machine, "" if not known."""

    title: str
    rank: int | None
    clock: str
    session: SavedSession


@dataclass(frozen=True)
class SavedJob:
    """A saved job. ``steps``: each traced step as a list of (position of a process that traced it, id of that trace)."""

    name: str
    processes: list[SavedProcess]
    steps: list[list[tuple[int, int]]]


def saved_job(path: str, own: SavedSession) -> SavedJob | None:
    """Read the job in a file; None if the file has none.

    ``own``: the session of the process that ran the hub; it is stored in the same file.
    """
    job = JobServices(Hub("", ""))
    if not load_job(job, path):
        return None
    members = [member.info for member in job.hub.members.values()]
    processes = [_process(job, info, own) for info in members]
    position = {info["id"]: i for i, info in enumerate(members)}
    steps = [
        [(position[id_], record["id"]) for id_, record in traced.records.items() if id_ in position]
        for traced in job.hub.traces.values()
    ]
    return SavedJob(job.hub.name, processes, steps)


def _process(job: JobServices, info: Process, own: SavedSession) -> SavedProcess:
    session = own if info["id"] == own.session()["id"] else SavedSession(_model(job, info))
    return SavedProcess(info["title"], info["place"]["rank"], info["clock"], session)


def _model(job: JobServices, info: Process) -> SessionModel:
    """Build the session of a process: its facts, a run for each title, and their traces.

    The file has the step times only of the process that ran the hub.
    """
    facts = {name: info[name] for name in ("id", "host", "pid", "place")}
    model = SessionModel({**new_facts(), **facts, "rank": info["place"]["rank"]})  # type: ignore[typeddict-item]
    runs: dict[str, int] = {}
    for traced in job.hub.traces.values():
        if info["id"] in traced.records:
            title = traced.message["run_title"]
            if title not in runs:
                runs[title] = model.next_run_id()
                model.add_run(RunState(runs[title], title, [], [], ""))
            _add_trace(model, job, info, traced, runs[title])
    return model


def _add_trace(model: SessionModel, job: JobServices, info: Process, traced: TracedStep, run_id: int) -> None:
    record = cast(TraceRecord, {**traced.records[info["id"]], "run_id": run_id})
    payload = job.traces.stored(traced.message["id"], info["id"])
    if payload is not None and record["id"] not in model.traces:
        context = TraceContext(
            step_s=record["duration_s"], communication_ops=job.traces.communication_ops, rank=info["place"]["rank"]
        )
        model.add_trace(TraceState(record, context, payload))
