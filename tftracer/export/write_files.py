"""Writes files atomically to a folder of this machine, or of any storage that fsspec supports."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from pathlib import Path
from typing import Any, Union

from tftracer.errors import UnsupportedError
from tftracer.storage.plain_files import read_plain
from tftracer.storage.whole_file import take_place, temporary_name, writing

_REMEDY = ". Check the path, its rights and space."


class LocalFolder:
    """A folder of this machine. Paths are relative, with slashes. Methods raise ``StorageError`` if the storage fails."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._temporary_paths: set[Path] = set()

    def temporary_path(self, path: str) -> Path:
        """Return the path of a temporary local file, which ``publish`` turns into the file at ``path``."""
        target = self.root / path
        with writing(target, _REMEDY):
            target.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_name(target)
        self._temporary_paths.add(temporary)
        return temporary

    def publish(self, temporary: Path, path: str) -> None:
        with writing(self.root / path, _REMEDY):
            take_place(temporary, self.root / path)
        self._temporary_paths.discard(temporary)

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None if it does not exist."""
        with writing(self.root / path, _REMEDY):
            try:
                return read_plain(self.root / path)
            except FileNotFoundError:
                return None

    def remove(self, path: str) -> None:
        with writing(self.root / path, _REMEDY):
            (self.root / path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove temporary files that were not published."""
        for path in self._temporary_paths:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


class RemoteFolder:
    """A remote folder: a file is written locally first, then copied to a temporary name in the folder, and renamed."""

    def __init__(self, system: Any, root: str) -> None:
        self.system = system
        self.root = root
        self._local = tempfile.TemporaryDirectory(prefix="tftracer-export-")

    def temporary_path(self, path: str) -> Path:
        return Path(self._local.name) / secrets.token_hex(8)

    def publish(self, temporary: Path, path: str) -> None:
        target = f"{self.root}/{path}"
        parent, _, name = target.rpartition("/")
        temporary_target = f"{parent}/.{name}.{secrets.token_hex(4)}.part"
        with writing(target, _REMEDY):
            self.system.makedirs(parent, exist_ok=True)
            self.system.put_file(str(temporary), temporary_target)
            self.system.mv(temporary_target, target)
        temporary.unlink()

    def read(self, path: str) -> bytes | None:
        with writing(f"{self.root}/{path}", _REMEDY):
            try:
                return bytes(self.system.cat_file(f"{self.root}/{path}"))
            except FileNotFoundError:
                return None

    def remove(self, path: str) -> None:
        with writing(f"{self.root}/{path}", _REMEDY), contextlib.suppress(FileNotFoundError):
            self.system.rm_file(f"{self.root}/{path}")

    def close(self) -> None:
        self._local.cleanup()


Folder = Union[LocalFolder, RemoteFolder]


def folder(place: str) -> Folder:
    """Open a folder. ``place``: a path, or a URL such as ``s3://bucket/folder``."""
    if "://" not in place:
        return LocalFolder(Path(place))
    try:
        import fsspec
    except ImportError:
        scheme = place.partition("://")[0]
        raise UnsupportedError(f"Writing to {scheme}:// needs fsspec, which is not installed here: pip install fsspec") from None
    try:
        system, path = fsspec.core.url_to_fs(place)
    except (ValueError, ImportError) as error:
        raise UnsupportedError(f"{place}: {error}") from error
    return RemoteFolder(system, path.rstrip("/"))
