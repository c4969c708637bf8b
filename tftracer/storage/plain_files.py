"""Opens files safely at paths where other users could have put a link, a FIFO, a device, or a file of their own.

Opening a FIFO would wait for its other end, and writing through a link would change another file. So opening never waits, and the
opened file is checked before it is used.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_NEVER_WAITS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def open_plain(path: str | os.PathLike[str]) -> int:
    """Open a regular file of any user, even through a link, for reading. Raises OSError for anything else."""
    return _checked(os.open(path, os.O_RDONLY | _NEVER_WAITS), path)


def open_own(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file of this user that is not a link. Raises OSError for anything else.

    Root may read files of other users: on some network file systems its own files seem to belong to another user.
    """
    handle = _checked(os.open(path, flags | _NEVER_WAITS | os.O_NOFOLLOW), path)
    is_reading = flags & (os.O_WRONLY | os.O_RDWR) == 0
    if os.fstat(handle).st_uid != os.geteuid() and not (is_reading and os.geteuid() == 0):
        os.close(handle)
        raise PermissionError(errno.EACCES, "it belongs to another user", str(path))
    return handle


def read_plain(path: str | os.PathLike[str]) -> bytes:
    with os.fdopen(open_plain(path), "rb") as file:
        return file.read()


def is_own_folder(path: Path) -> bool:
    """Return whether the folder belongs to this user and is not a link. Raises OSError if it does not exist."""
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _checked(handle: int, path: str | os.PathLike[str]) -> int:
    """Return the handle if it is of a regular file; otherwise close it and raise OSError."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return handle
