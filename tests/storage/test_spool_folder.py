"""Where spools lie and whose they are."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recording import RAW, recording, steps

from tftracer.session.files.saved import open_session
from tftracer.storage import spool_folder

DEAD_JOB = """
import os, sys
sys.path.insert(0, sys.argv[2])
from recording import RAW, steps
from tftracer.session.live import Recorder
recorder = Recorder(spool_dir=sys.argv[1]).start()
steps(recorder, 5, {2: RAW})
os.kill(os.getpid(), 9)
"""


def killed_job(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DEAD_JOB, str(folder), str(Path(__file__).parents[1])], check=False)
    assert done.returncode == -9


def test_the_spool_of_a_killed_job_is_found_and_opens(tmp_path: Path) -> None:
    killed_job(tmp_path)
    with recording(tmp_path) as live:
        steps(live, 3)
        (ended,) = spool_folder.ended_spools(tmp_path)
        assert str(ended.path) != live.session()["file"] and ended.bytes > 0
        session = open_session(ended.path)
    assert session.runs()[0]["steps"] == 5 and session.trace_bytes(1) == RAW and session.session()["pid"] == ended.pid
    assert len(spool_folder.ended_spools(tmp_path)) == 2


@pytest.mark.parametrize("number", ["²", "٣", "9" * 100])
def test_a_name_with_no_number_of_a_process_is_no_spool(number: str, tmp_path: Path) -> None:
    killed_job(tmp_path)
    (ended,) = spool_folder.ended_spools(tmp_path)
    (tmp_path / ended.path.name.replace(f"-{ended.pid}-", f"-{number}-")).write_bytes(ended.path.read_bytes())
    assert spool_folder.ended_spools(tmp_path) == [ended]


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFTRACER_SPOOL_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spool, trouble = spool_folder.open_spool(None, "abc")
    assert trouble == "" and spool.path is not None and spool.path.parent == tmp_path / "tftracer/spool"
    assert (tmp_path / "tftracer/spool").stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("TFTRACER_SPOOL_DIR", str(tmp_path / "given"))
    assert spool_folder.default_folder() == tmp_path / "given"


def test_a_folder_that_cannot_be_used_is_replaced_by_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("")
    spool, trouble = spool_folder.open_spool(tmp_path / "file", "abc")
    assert spool.path is not None and spool.path.parent == spool_folder.temporary_folder()
    assert str(tmp_path / "file") in trouble


def test_a_temporary_folder_that_is_a_link_is_a_trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    spool_folder.temporary_folder().symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").write_text("")
    spool, trouble = spool_folder.open_spool(tmp_path / "file", "abc")
    assert spool.path is None and "another user" in trouble
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_old_spools_of_dead_jobs_go_young_ones_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        killed_job(tmp_path)
    young, old = sorted(ended.path for ended in spool_folder.ended_spools(tmp_path))
    then = time.time() - 31 * 86400
    os.utime(old, (then, then))
    (tmp_path / "mine.tftrace").write_bytes(young.read_bytes())
    os.utime(tmp_path / "mine.tftrace", (then, then))
    with recording(tmp_path / "other") as live, caplog.at_level(logging.WARNING, "tftracer"):
        live_path = tmp_path / Path(live.session()["file"]).name
        spool_folder.delete_old_spools(tmp_path)
        assert not live_path.exists()
    assert sorted(path.name for path in tmp_path.glob("*.tftrace")) == sorted(["mine.tftrace", young.name])
    assert str(old) in caplog.text and "30 days" in caplog.text


def test_the_oldest_spools_make_room_for_the_newer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killed_job(tmp_path)
    (ended,) = spool_folder.ended_spools(tmp_path)
    paths = [ended.path.with_name(f"{ended.host}-{ended.pid}-20200101T00000{number}-a.tftrace") for number in range(5)]
    for age, path in enumerate(paths):
        path.write_bytes(ended.path.read_bytes())
        os.utime(path, (time.time() - age * 3600, time.time() - age * 3600))
    ended.path.unlink()
    monkeypatch.setattr(spool_folder, "MAX_BYTES", 3 * ended.bytes)
    spool_folder.delete_old_spools(tmp_path)
    assert sorted(tmp_path.glob("*.tftrace")) == paths[:3]
    assert all(str(path) in caplog.text for path in paths[3:])
    monkeypatch.setattr(spool_folder, "MAX_BYTES", ended.bytes // 2)
    spool_folder.delete_old_spools(tmp_path)
    assert sorted(tmp_path.glob("*.tftrace")) == paths[:1]


def test_a_killed_job_whose_forked_child_lives_is_found(tmp_path: Path) -> None:
    """A data loader's worker, say. Neither one that Python forked keeps the lock, nor is one asked that C code forked."""
    code = (
        "import ctypes, os, signal, sys; sys.path.insert(0, sys.argv[2])\n"
        "from recording import steps; from tftracer.session.live import Recorder\n"
        "recorder = Recorder(spool_dir=sys.argv[1]).start(); steps(recorder, 5)\n"
        "child = os.fork() if sys.argv[3] == 'python' else ctypes.PyDLL(None).fork()\n"
        "if bool(child) == (sys.argv[3] == 'c'): print(child or os.getpid(), flush=True)\n"
        "signal.pause()\n"
    )
    for kind in ("python", "c"):
        folder = tmp_path / kind
        command = [sys.executable, "-c", code, str(folder), str(Path(__file__).parents[1]), kind]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
            assert job.stdout is not None
            # Python's child says so when all that follows a fork is done. C's may hang: a thread that is no more had its turn.
            child = int(job.stdout.readline())
            try:
                job.kill()
                job.wait(60)
                (ended,) = spool_folder.ended_spools(folder)
                assert ended.pid == job.pid and ended.locked == (kind == "c")
                assert open_session(ended.path).runs()[0]["steps"] == 5
            finally:
                os.kill(child, 9)


def test_what_a_kill_left_of_a_rewrite_goes_after_a_day(tmp_path: Path) -> None:
    killed_job(tmp_path)
    (ended,) = spool_folder.ended_spools(tmp_path)
    left, mine = ended.path.with_suffix(".new"), tmp_path / "mine.new"
    for path in (left, mine):
        path.write_bytes(ended.path.read_bytes()[:-10])
    spool_folder.delete_old_spools(tmp_path)
    assert left.exists()
    then = time.time() - 2 * 86400
    for path in (left, mine):
        os.utime(path, (then, then))
    spool_folder.delete_old_spools(tmp_path)
    assert not left.exists() and mine.exists() and spool_folder.ended_spools(tmp_path) == [ended]


def test_a_folder_without_rights_is_said_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder, opened = tmp_path / "locked", os.open

    def refusing(path: object, flags: int, mode: int = 0o777) -> int:  # root may write anywhere
        if str(path).startswith(str(folder)):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(str(path), flags, mode)

    monkeypatch.setattr(os, "open", refusing)
    folder.mkdir(mode=0o500)
    with recording(folder) as recorder:
        steps(recorder, 5, {2: RAW})
        (problem,) = recorder.session()["problems"]
        assert problem["code"] == "spool" and f"{folder} cannot be used" in problem["message"]
        assert "Permission denied" in problem["message"]
        assert Path(recorder.session()["file"]).parent == spool_folder.temporary_folder() and recorder.trace_bytes(1) == RAW
    assert list(folder.iterdir()) == []


def test_a_disk_that_is_full_at_the_start_keeps_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        spool, trouble = spool_folder.open_spool(tmp_path / "full", "abc")
    assert spool.path is None and trouble.count("No space left") == 2
    assert list((tmp_path / "full").iterdir()) == [] == list(spool_folder.temporary_folder().iterdir())


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a network file system without a lock daemon answers."""

    def no_locks(fd: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    killed_job(tmp_path)
    monkeypatch.setattr("fcntl.flock", no_locks)
    with recording(tmp_path) as live:
        steps(live, 5, {2: RAW})
        assert live.session()["problems"] == [] and live.trace_bytes(1) == RAW
        (ended,) = spool_folder.ended_spools(tmp_path)
        assert str(ended.path) != live.session()["file"]
        assert open_session(live.session()["file"]).runs()[0]["steps"] == 5
        live.store.rewrite()
        assert live.trace_bytes(1) == RAW
    assert open_session(live.session()["file"]).trace_bytes(1) == RAW


def test_a_file_in_use_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spool of the same name: the new session goes elsewhere, and the other's stays whole."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(spool_folder, "spool_name", lambda session_id: "the-same-1-20200101T000000-a.tftrace")
    with recording(tmp_path / "spool") as one:
        steps(one, 3, {2: RAW})
        with recording(tmp_path / "spool") as other:
            steps(other, 5)
            (problem,) = other.session()["problems"]
            assert problem["code"] == "spool" and "cannot be used" in problem["message"]
            assert Path(other.session()["file"]).parent == spool_folder.temporary_folder()
        assert one.trace_bytes(1) == RAW
    assert open_session(one.session()["file"]).runs()[0]["steps"] == 3


def test_a_live_spool_is_never_taken_for_dead_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_job(tmp_path)
    monkeypatch.setattr(spool_folder, "is_locked", lambda fd: None)
    with recording(tmp_path) as live:
        steps(live, 1)
        (ended,) = spool_folder.ended_spools(tmp_path)  # told apart by their processes
        assert str(ended.path) != live.session()["file"]
