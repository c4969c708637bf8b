"""What others put in the place of a file of ours is neither waited for, followed nor read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tftracer
from tftracer import sessions_of_one_command
from tftracer.cli import main
from tftracer.errors import StorageError, TracerError
from tftracer.job.agent import discovery
from tftracer.scripting.find_partitions import partitions
from tftracer.scripting.write_partition import MANIFESTS
from tftracer.sessions_of_one_command import ProcessSession
from tftracer.storage import roof_file, spool_folder
from tftracer.storage.plain_files import open_own, open_plain, read_plain

SESSION = ProcessSession("worker.py, process 1", "worker.tftrace")


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_a_fifo_and_a_folder_are_no_plain_files(fifo: Path, tmp_path: Path) -> None:
    for path in (fifo, tmp_path, Path("/dev/zero")):
        for opens in (open_plain, open_own, read_plain):
            with pytest.raises(OSError):
                opens(path)
    with pytest.raises(OSError):
        open_own(fifo, os.O_WRONLY | os.O_APPEND)


def test_a_link_is_followed_for_what_a_user_names_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link") == b"content"
    os.close(open_own(tmp_path / "file"))
    with pytest.raises(OSError):
        open_own(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_file_of_another_user_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.chown(tmp_path / "file", 4711, -1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        open_own(tmp_path / "file", os.O_WRONLY)


def test_the_list_of_a_runs_sessions_is_in_a_folder_of_its_own() -> None:
    path = sessions_of_one_command.new_list()
    assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    sessions_of_one_command.add(path, SESSION)
    assert sessions_of_one_command.read(path) == [SESSION]
    sessions_of_one_command.delete(path)
    assert not Path(path).parent.exists()


def test_nothing_is_written_where_the_list_was(tmp_path: Path, fifo: Path) -> None:
    """The first process has ended, and its name in the temporary folder is free for everyone."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    path = Path(sessions_of_one_command.new_list())
    sessions_of_one_command.delete(str(path))
    path.parent.mkdir(mode=0o700)
    try:
        for other in (victim, fifo):
            path.symlink_to(other)
            sessions_of_one_command.add(str(path), SESSION)
            assert sessions_of_one_command.read(str(path)) == []
            path.unlink()
        os.mkfifo(path)
        sessions_of_one_command.add(str(path), SESSION)
        assert sessions_of_one_command.read(str(path)) == []
    finally:
        sessions_of_one_command.delete(str(path))
    path.parent.symlink_to(tmp_path)
    (tmp_path / path.name).write_text("untouched")
    sessions_of_one_command.add(str(path), SESSION)
    path.parent.unlink()
    assert victim.read_text() == (tmp_path / path.name).read_text() == "untouched"


def test_a_fifo_in_the_spool_folder_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_SPOOL_DIR", str(tmp_path))
    name = spool_folder.spool_name("0123456789abcdef")
    os.mkfifo(tmp_path / name.replace(f"-{os.getpid()}-", "-999999999-"))
    os.mkfifo(tmp_path / name)
    assert spool_folder.ended_spools(tmp_path) == []
    assert spool_folder.recording_processes() == []
    spool_folder.delete_old_spools(tmp_path)
    spool, trouble = spool_folder.open_spool(tmp_path, "fedcba9876543210")
    assert not trouble
    spool.close()
    assert main(["--recover"]) == 0


def test_a_fifo_that_a_user_opens_is_refused(fifo: Path) -> None:
    with pytest.raises(TracerError, match="no plain file"):
        tftracer.open(fifo)


def test_a_fifo_in_place_of_the_hubs_file_is_no_hub(tmp_path: Path) -> None:
    path = discovery.hub_file("job", tmp_path / "hubs")
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path, 0o600)
    assert discovery.read_hub("job", tmp_path / "hubs") is None


def test_a_fifo_in_place_of_a_measured_roof_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = roof_file.roof_path("host")
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert roof_file.saved_roof("host", "processor") is None


def test_a_fleet_leaves_out_a_partition_whose_manifest_is_a_fifo(tmp_path: Path) -> None:
    place = tmp_path / MANIFESTS / "job=a" / "rank=0"
    place.mkdir(parents=True)
    os.mkfifo(place / "manifest.json")
    with pytest.raises(StorageError, match="manifest cannot be read"):
        partitions(tmp_path)
