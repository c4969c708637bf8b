"""The folder of spools: its place, the spools of ended jobs, and their deletion."""

from __future__ import annotations

import logging
import os
import re
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tftracer.errors import StorageError
from tftracer.storage.plain_files import is_own_folder, open_own
from tftracer.storage.spool import ASIDE, Spool, is_locked
from tftracer.storage.tftrace_format import SUFFIX, is_session

log = logging.getLogger("tftracer")

#: An ended job's spool is deleted when it is older than this.
KEEP_DAYS = 30
#: Half-written spools are deleted after this time in seconds; a rewrite takes seconds, on a slow network file system minutes.
LEFTOVER_S = 86400.0
#: Limit of the total size of ended jobs' spools in one folder. The oldest are deleted first; the newest is always kept.
MAX_BYTES = 10 << 30

_NAME = re.compile(
    rf"(?P<host>.+)-(?P<pid>[0-9]{{1,9}})-[0-9]{{8}}T[0-9]{{6}}-[0-9a-f]+({re.escape(SUFFIX)}|{re.escape(ASIDE)})$"
)


@dataclass(frozen=True)
class EndedSpool:
    path: Path
    host: str
    pid: int
    bytes: int
    changed_at: float  # epoch seconds of the last record
    locked: bool = False  # its process is gone, but a child process still has the file open


def default_folder() -> Path:
    """Return $TFTRACER_SPOOL_DIR, or tftracer/spool in the user's cache."""
    folder = os.environ.get("TFTRACER_SPOOL_DIR")
    return Path(folder) if folder else user_cache() / "spool"


def user_cache() -> Path:
    """Return tftracer's folder in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "tftracer"


def temporary_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"tftracer-{os.getuid()}"


def open_spool(folder: str | os.PathLike[str] | None, session_id: str) -> tuple[Spool, str]:
    """Return (a new spool in the folder, or else in a temporary one, or else in memory; why not in the folder, or "")."""
    problems: list[str] = []
    for place in (Path(folder) if folder else default_folder(), temporary_folder()):
        try:
            return Spool(_ready(place) / spool_name(session_id)), " ".join(problems)
        except (OSError, StorageError, RuntimeError) as error:
            problems.append(f"Spool folder {place} cannot be used ({getattr(error, 'strerror', None) or error}).")
    problems.append("The session is kept in memory and ends with the process. Set TFTRACER_SPOOL_DIR or spool_dir.")
    return Spool(None), " ".join(problems)


def spool_name(session_id: str) -> str:
    return f"{_own_host()}-{os.getpid()}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{session_id}{SUFFIX}"


def _own_host() -> str:
    """Return this host's name as in the names of spools."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", socket.gethostname())[:60] or "host"


def _ready(folder: Path) -> Path:
    """Return the folder; create it if necessary, accessible only by its owner."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder == temporary_folder():
        # Anybody can create folders in the system's temporary folder; a folder of another user must not be used.
        if not is_own_folder(folder):
            raise StorageError("it belongs to another user")
        folder.chmod(0o700)
    return folder


def ended_spools(folder: str | os.PathLike[str] | None = None) -> list[EndedSpool]:
    """Return the spools of ended jobs, newest first. Reads only their first bytes."""
    spools = []
    for place in [Path(folder)] if folder else [default_folder(), temporary_folder()]:
        for path in sorted(place.glob(f"*{SUFFIX}")):
            ended = _ended_spool(path)
            if ended:
                spools.append(ended)
    return sorted(spools, key=lambda spool: spool.changed_at, reverse=True)


def _ended_spool(path: Path) -> EndedSpool | None:
    """Return the spool at ``path``; None if it is in use, cannot be read, or is no spool."""
    parts = _NAME.match(path.name)
    if not parts:
        return None
    host, pid = parts["host"], int(parts["pid"])
    try:
        with os.fdopen(open_own(path), "rb") as file:
            locked, gone = is_locked(file.fileno()), process_is_gone(host, pid)
            in_use = gone is False if locked is None else locked and not gone
            if in_use or not is_session(file.read(64)):
                return None
            facts = os.fstat(file.fileno())
    except OSError:
        return None
    return EndedSpool(path, host, pid, facts.st_size, facts.st_mtime, bool(locked))


def recording_processes() -> list[int]:
    """Return the ids of the processes of this host that write to a spool in one of the default folders."""
    paths = [path for place in (default_folder(), temporary_folder()) for path in sorted(place.glob(f"*{SUFFIX}"))]
    return sorted({pid for path in paths for pid in [_writer(path)] if pid is not None})


def _writer(path: Path) -> int | None:
    """Return the id of this host's process that writes to a spool; None if none does."""
    parts = _NAME.match(path.name)
    if not parts or process_is_gone(parts["host"], int(parts["pid"])) is not False:
        return None
    try:
        with os.fdopen(open_own(path), "rb") as file:
            return None if is_locked(file.fileno()) is False else int(parts["pid"])
    except OSError:
        return None


def process_is_gone(host: str, pid: int) -> bool | None:
    """Return whether the process with this id has ended; None if it belongs to another host."""
    if host != _own_host():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def delete_old_spools(folder: Path) -> None:
    """Delete ended jobs' spools that are older than KEEP_DAYS, then the oldest of the rest until they take at most MAX_BYTES."""
    cutoff, total = time.time() - KEEP_DAYS * 86400, 0
    for position, spool in enumerate(ended_spools(folder)):  # newest first
        total += spool.bytes
        if spool.locked:
            continue
        if spool.changed_at < cutoff:
            _delete(spool, f"its job ended more than {KEEP_DAYS} days ago")
        elif total > MAX_BYTES and position:
            _delete(spool, f"ended jobs' spools took more than {MAX_BYTES / 1e9:.0f} GB")
            total -= spool.bytes
    for path in folder.glob(f"*{ASIDE}"):  # left by jobs that were killed during a rewrite; their spools are complete
        leftover = _ended_spool(path)
        if leftover and leftover.changed_at < time.time() - LEFTOVER_S:
            path.unlink(missing_ok=True)


def _delete(spool: EndedSpool, why: str) -> None:
    spool.path.unlink(missing_ok=True)
    log.warning("tftracer: deleted the spool %s (%.1f MB): %s", spool.path, spool.bytes / 1e6, why)
