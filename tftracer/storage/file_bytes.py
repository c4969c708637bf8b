"""Reads files by position, from any thread."""

from __future__ import annotations

import os
from typing import Protocol

from tftracer.errors import StorageError
from tftracer.storage.plain_files import open_plain


class Bytes(Protocol):
    """The bytes of a session: a file, or memory if no file can be written."""

    name: str  # for error messages

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end."""

    def length(self) -> int: ...


class Handle:
    """A file descriptor that is closed when nothing refers to it any more, so that readers of a replaced file can finish."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class FileBytes:
    """An open file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = str(path)
        try:
            self.handle = Handle(open_plain(path))
        except OSError as error:
            raise StorageError(f"{self.name}: cannot be opened ({error.strerror or error})") from error

    def read_at(self, offset: int, size: int) -> bytes:
        return read_fully(self.handle.fd, offset, size, self.name)

    def length(self) -> int:
        return os.fstat(self.handle.fd).st_size

    def changed_ns(self) -> int:
        """Return the time of the content's last change, in ns since the epoch."""
        return os.fstat(self.handle.fd).st_mtime_ns


def read_fully(fd: int, offset: int, size: int, name: str) -> bytes:
    """Return ``size`` bytes, fewer at the end of the file. Raises ``StorageError`` if the file cannot be read."""
    parts = []
    try:
        while size > 0 and (part := os.pread(fd, min(size, 1 << 30), offset)):
            parts.append(part)
            offset += len(part)
            size -= len(part)
    except OSError as error:
        raise StorageError(f"{name}: cannot be read ({error.strerror or error})") from error
    return parts[0] if len(parts) == 1 else b"".join(parts)
