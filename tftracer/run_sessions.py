"""The list of the sessions that the processes of a ``tftracer run`` record: each adds its own, the first one reads them all.

A temporary file with a JSON object a line; a line is written at once, so processes do not mix theirs.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple


class ProcessSession(NamedTuple):
    """One process's session."""

    process: str  # "worker.py, process 4711"
    file: str


def new_list() -> str:
    """An empty list; ``""`` where there is no place for it: then nobody is told of the sessions at the end."""
    import tempfile  # takes a while, and the processes that add to a list need it not

    try:
        handle, path = tempfile.mkstemp(prefix="tftracer-run-", suffix=".jsonl")
        os.close(handle)
    except OSError:
        return ""
    return path


def add(path: str, session: ProcessSession) -> None:
    """Does nothing where the list is gone: the first process has ended."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, json.dumps(session._asdict()).encode() + b"\n")
        finally:
            os.close(handle)


def read(path: str) -> list[ProcessSession]:
    """The sessions, in the order of their first steps."""
    sessions: list[ProcessSession] = []
    with contextlib.suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record: dict[str, Any] = json.loads(line)
                sessions.append(ProcessSession(str(record["process"]), str(record["file"])))
    return sessions


def delete(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).unlink()
