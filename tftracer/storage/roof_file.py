"""The files that ``tftracer roof --save`` writes: one per host, in the user's cache. Their contents are checked when read.

A *roof* is the highest FLOP/s and bytes/s that were measured on a machine.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from tftracer.contract.machine import MeasuredRoof
from tftracer.storage import untrusted
from tftracer.storage.plain_files import open_own
from tftracer.storage.spool_folder import user_cache
from tftracer.storage.whole_file import replacing, writing

_MAX_BYTES = 1 << 20


def roof_path(host: str) -> Path:
    """Return the path of a host's file. Each host has its own file, because several hosts may share the home folder."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", host)[:100]
    return user_cache() / "roofs" / f"{name}.json"


def save_roof(roof: MeasuredRoof) -> Path:
    """Write a roof to its host's file, replacing an older one. Raises ``StorageError`` if it cannot be written."""
    path = roof_path(roof["host"])
    with writing(path, ". Set XDG_CACHE_HOME to a writable folder."):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path, lasting=False) as file:
            file.write(json.dumps(roof, indent=1).encode() + b"\n")
    return path


def saved_roof(host: str, processor: str) -> MeasuredRoof | None:
    """Return the roof of a machine; None if none was saved, or if it was measured on another processor."""
    if not host or not processor:
        return None
    try:
        with os.fdopen(open_own(roof_path(host)), "rb") as file:
            roof = untrusted.measured_roof(json.loads(file.read(_MAX_BYTES)))
    except (OSError, ValueError, RecursionError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    return roof if roof and (roof["host"], roof["processor"]) == (host, processor) else None
