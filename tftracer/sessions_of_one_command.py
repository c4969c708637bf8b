"""The list of sessions that the processes of one ``tftracer run`` record: each process adds its own, the first reads them all.

The list is a file with one JSON object per line, in a separate folder. Each line is written by one system call, so lines of
different processes never mix. The first process deletes the folder when it ends. After that another user may create a folder of
that name, so ``add`` and ``read`` check the owner.
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
    process: str  # "worker.py, process 4711"
    file: str


def new_list() -> str:
    """Create an empty list and return its path; ``""`` if that fails: then the sessions are not listed at the end."""
    import tempfile  # a slow import, not needed for adding to a list

    try:
        path = Path(tempfile.mkdtemp(prefix="tftracer-run-")) / NAME
        path.touch(mode=0o600)
    except OSError:
        return ""
    return str(path)


def add(path: str, session: ProcessSession) -> None:
    """Add a session. Does nothing if the first process has ended and deleted the list."""
    with contextlib.suppress(OSError):
        if not is_own_folder(Path(path).parent):
            return
        with os.fdopen(open_own(path, os.O_WRONLY | os.O_APPEND), "ab", buffering=0) as file:
            file.write(json.dumps(session._asdict()).encode() + b"\n")


def read(path: str) -> list[ProcessSession]:
    """Return the sessions in the order in which they were added."""
    sessions: list[ProcessSession] = []
    with contextlib.suppress(OSError), os.fdopen(open_own(path), encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record: dict[str, Any] = json.loads(line)
                sessions.append(ProcessSession(str(record["process"]), str(record["file"])))
    return sessions


def delete(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).unlink()
        Path(path).parent.rmdir()
