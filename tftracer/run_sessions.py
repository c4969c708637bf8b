"""The list of the sessions that the processes of a ``tftracer run`` record: each adds its own, the first one reads them all.

A file with a JSON object a line, in a folder of its own; a line is written at once, so processes do not mix theirs. The first
process deletes the folder at its end, and its name may be anybody's then.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from tftracer.storage.plain_files import is_own_folder, open_own

NAME = "sessions.jsonl"


class ProcessSession(NamedTuple):
    """One process's session."""

    process: str  # "worker.py, process 4711"
    file: str


def new_list() -> str:
    """An empty list; ``""`` where there is no place for it: then nobody is told of the sessions at the end."""
    import tempfile  # takes a while, and the processes that add to a list need it not

    try:
        path = Path(tempfile.mkdtemp(prefix="tftracer-run-")) / NAME
        path.touch(mode=0o600)
    except OSError:
        return ""
    return str(path)


def add(path: str, session: ProcessSession) -> None:
    """Does nothing where the list is gone: the first process has ended."""
    with contextlib.suppress(OSError):
        if not is_own_folder(Path(path).parent):
            return
        handle = open_own(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, json.dumps(session._asdict()).encode() + b"\n")
        finally:
            os.close(handle)


def read(path: str) -> list[ProcessSession]:
    """The sessions, in the order of their first steps."""
    sessions: list[ProcessSession] = []
    with contextlib.suppress(OSError):
        with os.fdopen(open_own(path), encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record: dict[str, Any] = json.loads(line)
                sessions.append(ProcessSession(str(record["process"]), str(record["file"])))
    return sessions


def delete(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).unlink()
        Path(path).parent.rmdir()
