"""Writes files atomically: under a temporary name in the same folder first, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from tftracer.errors import StorageError
from tftracer.storage.plain_files import open_plain


@contextlib.contextmanager
def writing(path: object, remedy: str = "") -> Iterator[None]:
    """Raise ``StorageError`` if the block cannot write the file. ``remedy``: the end of the error's message."""
    try:
        yield
    except StorageError:  # an error of the data to be written, not of this file
        raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror or error}){remedy or '.'}") from error


def temporary_name(target: Path) -> Path:
    """Return a new hidden name in the folder of ``target``."""
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")


def take_place(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target``. Write its bytes to the disk before the rename, and the new name before returning."""
    with os.fdopen(open_plain(temporary), "rb") as written:
        os.fsync(written.fileno())
    temporary.replace(target)
    _sync_folder(target.parent)


@contextlib.contextmanager
def replacing(target: Path, mode: int = 0o600, lasting: bool = True) -> Iterator[IO[bytes]]:
    """Yield a file to write to, which replaces ``target`` when the block ends, or is deleted if the block raises.

    ``mode``: the new file's permissions before the umask. ``lasting``: whether the new file must survive a crash of the machine.
    If ``target`` is a link, the link is replaced. Raises OSError.
    """
    temporary = temporary_name(target)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
        if lasting:
            take_place(temporary, target)
        else:
            temporary.replace(target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(path: str, chunks: Iterable[bytes]) -> None:
    """Write a file atomically: ``path`` is the old file until the new one is complete and on the disk.

    Raises ``StorageError`` if it cannot be written; then the old file stays. If ``path`` is a link, the file that it leads to is
    replaced.
    """
    with writing(path, ". Nothing was saved."), replacing(Path(path).resolve()) as file:
        for chunk in chunks:
            file.write(chunk)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
