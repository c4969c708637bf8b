"""How files are opened by a name that others could have put something else under: a link, a FIFO, a device, a file of theirs.

Opening a FIFO waits for its other end, and what is written through a link lands elsewhere. So the open never waits, and what was
opened is looked at before it is used.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_NEVER_WAITS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_plain(path: str | os.PathLike[str]) -> int:
    """A file of anyone, to be read; a link to one is good, too. OSError for all else."""
    return _checked(os.open(path, os.O_RDONLY | _NEVER_WAITS), path)


def open_own(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """A file that this user has made, and no link. OSError for all else.

    The system's administrator may read those of others: on some network file systems, its own seem to be another user's.
    """
    handle = _checked(os.open(path, flags | _NEVER_WAITS | _NO_LINK), path)
    is_reading = flags & (os.O_WRONLY | os.O_RDWR) == 0
    if not _is_ours(os.fstat(handle)) and not (is_reading and os.geteuid() == 0):
        os.close(handle)
        raise PermissionError(errno.EACCES, "it belongs to another user", str(path))
    return handle


def read_plain(path: str | os.PathLike[str]) -> bytes:
    with os.fdopen(open_plain(path), "rb") as file:
        return file.read()


def is_own_folder(path: Path) -> bool:
    """Whether this user has made it, and it is no link. OSError where there is nothing."""
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and _is_ours(facts)


def _checked(handle: int, path: str | os.PathLike[str]) -> int:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return handle


def _is_ours(facts: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
