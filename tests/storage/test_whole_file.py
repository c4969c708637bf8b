"""Files appear whole or not at all, and are on the disk with their names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tftracer.export.write_files import LocalFolder
from tftracer.storage.whole_file import replacing, write_whole


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files and folders that were brought to the disk, at that moment."""
    names: list[str] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        names.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    return names


def test_a_session_is_on_the_disk_before_it_has_its_name(tmp_path: Path, synced: list[str]) -> None:
    write_whole(str(tmp_path / "saved"), [b"a", b"b"])
    (temporary, folder) = synced
    assert temporary.endswith(".part") and folder == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"] and (tmp_path / "saved").read_bytes() == b"ab"


def test_an_exported_file_is_on_the_disk_and_so_is_its_name(tmp_path: Path, synced: list[str]) -> None:
    folder = LocalFolder(tmp_path)
    temporary = folder.temporary_path("a/b.parquet")
    temporary.write_bytes(b"x")
    folder.publish(temporary, "a/b.parquet")
    assert synced == [str(temporary), str(tmp_path / "a")]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.parquet"]


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(ValueError), replacing(target) as file:
        file.write(b"new")
        raise ValueError
    assert target.read_bytes() == b"old" and [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_page_for_others_has_the_rights_that_the_user_s_umask_gives(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        with replacing(tmp_path / "page", mode=0o666, lasting=False) as file:
            file.write(b"x")
        with replacing(tmp_path / "own") as file:
            file.write(b"x")
    finally:
        os.umask(umask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("page", "own")] == [0o640, 0o600]
