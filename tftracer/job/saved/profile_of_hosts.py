"""Loads a profile of several hosts (one folder of logs) as a job whose processes are the hosts."""

from __future__ import annotations

from pathlib import Path

from tftracer.contract.job import JobTrace
from tftracer.contract.session import TraceRecord
from tftracer.errors import FormatError
from tftracer.importers.profile import host_of, newest_profile
from tftracer.job.hub.hub import Member, TracedStep
from tftracer.job.hub.services import JobServices
from tftracer.session.files.saved import SavedSession

#: A step on all hosts: (title, number). Without a step number, its position among the steps with this title.
Step = tuple[str, int]


def load_hosts(job: JobServices, source: SavedSession, path: str) -> bool:
    """Load the hosts of the profile that was opened from a folder; return False if it has one host, or is not a profile."""
    if not Path(path).is_dir():
        return False
    try:
        files = newest_profile(Path(path))
        hosts, taken_at = [host_of(file) for file in files], max(file.stat().st_mtime for file in files)
    except (FormatError, OSError):
        return False
    if len(hosts) < 2:
        return False
    for number, host in enumerate(hosts, 1):
        info = job.hub.process(str(number), {"title": host, "host": host})
        info["state"], info["steps_per_s"] = "ended", None
        job.hub.members[str(number)] = Member(str(number), info, None)
    for number, (step, records) in enumerate(_steps(source, hosts).items(), 1):
        _add_step(job, source, number, step, records, taken_at)
    return True


def _steps(source: SavedSession, hosts: list[str]) -> dict[Step, dict[str, TraceRecord]]:
    """Return step -> id of the process -> record of its trace."""
    records: dict[Step, dict[str, TraceRecord]] = {}
    for run in source.runs():
        host, _, title = run["title"].partition(": ")
        for position, record in enumerate(run["traces"], 1):
            if host in hosts:
                records.setdefault((title, record["step"] or position), {})[str(hosts.index(host) + 1)] = record
    return records


def _add_step(
    job: JobServices, source: SavedSession, number: int, step: Step, records: dict[str, TraceRecord], taken_at: float
) -> None:
    processes = list(job.hub.members)
    missing = dict.fromkeys(set(processes) - set(records), "Its profile holds no such step.")
    message: JobTrace = {
        "id": number,
        "title": f"{step[0]}, step {step[1]:,}",
        "step": step[1],
        "steps": dict.fromkeys(records, step[1]),
        "run_title": step[0],
        "asked_at": taken_at,
        "state": "partial" if missing else "ready",
        "processes": processes,
        "ready": list(records),
        "missing": missing,
    }
    traced = job.hub.traces[number] = TracedStep(message)
    for process, record in records.items():
        traced.records[process] = record
        job.traces.add_stored(number, process, source.trace_state(record["id"]).payload)
