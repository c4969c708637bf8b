"""Reads the source text of the lines in a stack, only for the owner of a live session.

The text is read when somebody opens the stack, and only from files that this process executes: never from a path in a loaded
session. It is not written to the session's file. A file that was changed after the session began has no text, because its lines
may have moved.
"""

from __future__ import annotations

from pathlib import Path

from tftracer.contract.stalls import StallStacks

MAX_BYTES = 2 << 20  # maximum size of a file
MAX_TEXT = 300  # maximum number of characters of a line


def with_sources(stacks: StallStacks, since: float) -> StallStacks:
    """Add the source text to each frame. ``since``: epoch seconds; files that were changed later have no text."""
    files: dict[str, list[str]] = {}
    for frame in stacks["frames"]:
        path = frame["file"]
        if path and path not in files:
            files[path] = _lines(path, since)
        lines = files.get(path, [])
        if 0 < frame["line"] <= len(lines):
            frame["source"] = lines[frame["line"] - 1].strip()[:MAX_TEXT]
    return stacks


def _lines(path: str, since: float) -> list[str]:
    try:
        file = Path(path)
        facts = file.stat()
        if not file.is_file() or file.suffix != ".py" or facts.st_mtime > since or facts.st_size > MAX_BYTES:
            return []
        return file.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return []
