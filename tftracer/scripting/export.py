"""Exports sessions as a data set of Parquet files, one partition per process, for ``tftracer export``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from tftracer.export import parquet
from tftracer.export.write_files import folder
from tftracer.scripting.job import job_of, places
from tftracer.scripting.session import Session
from tftracer.scripting.session import open as open_session
from tftracer.scripting.write_partition import export_session

_SUFFIXES = (".tftrace", ".gz", ".pb", ".xplane", ".pbtxt", ".json", ".pickle")


def export(files: Sequence[str], folder_path: str, job: str | None = None) -> list[dict[str, Any]]:
    """Export files (or URLs) to the folder ``folder_path``; return the manifests of the partitions.

    ``job``: name of the job whose processes recorded the files; their clocks are aligned. If None, each file is a separate job,
    named after the job in the file, or else after the file. Raises the errors of opening and writing.
    """
    connection, target = parquet.connect(), folder(folder_path)
    try:
        return [export_session(connection, session, target, name) for name, session in each_session(files, job)]
    finally:
        target.close()
        connection.close()


def each_session(files: Sequence[str], job: str | None = None) -> Iterator[tuple[str, Session]]:
    """Yield (job's name, session) of every process in the files. Use a session only until the next session is yielded."""
    if job is not None:
        for session in one_job([open_session(file) for file in files]):
            with session:
                yield job, session
        return
    file_counts = Counter[str]()
    for file in files:
        with open_session(file) as session:
            name = session.job_name or _stem(file)
            file_counts[name] += 1
            name += f"-{file_counts[name]}" if file_counts[name] > 1 else ""
            for process in session.processes:
                yield name, process
                process.forget_traces()


def one_job(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions as processes of one job, on one clock. Return a single session's processes as they are."""
    if len(sessions) == 1:
        return sessions[0].processes
    job = job_of([session.source for session in sessions])
    return [Session(session.source, session.name, place) for session, place in zip(sessions, places(job))]


def _stem(file: str) -> str:
    """Return ``training`` for ``runs/training.tftrace`` and for ``training.pb.gz``."""
    name = PurePath(file.partition("?")[0].rstrip("/")).name
    while PurePath(name).suffix in _SUFFIXES:
        name = PurePath(name).stem
    return name or "session"
