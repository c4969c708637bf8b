"""The file that a live session appends to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tftracer.errors import StorageError
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.spool import NewRecord, Spool, is_locked
from tftracer.storage.tftrace_format import compress
from tftracer.storage.tftrace_reader import Reader


def part(number: int, raw: bytes = b"") -> NewRecord:
    return NewRecord("note", {"n": number}, compress(raw) if raw else b"", len(raw))


def numbers(path: Path) -> list[int]:
    return [record.meta["n"] for record in Reader(FileBytes(path))]


def test_each_record_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "s.tftrace"
    spool = Spool(path)
    for number in range(3):
        record = spool.append(part(number, b"x" * number))
        assert numbers(path) == list(range(number + 1)) and record.payload.raw() == b"x" * number
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_exists_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "s.tftrace").write_bytes(b"mine")
    with pytest.raises(StorageError, match="cannot be written"):
        Spool(tmp_path / "s.tftrace")
    assert (tmp_path / "s.tftrace").read_bytes() == b"mine"


def test_a_rewrite_takes_the_place_of_the_file_and_readers_of_the_old_one_go_on(tmp_path: Path) -> None:
    path = tmp_path / "s.tftrace"
    spool = Spool(path)
    old = spool.append(part(1, b"old"))
    spool.append(part(2))
    (new,) = spool.rewrite(iter([part(3, b"new")]))
    spool.append(part(4))
    assert numbers(path) == [3, 4] and new.payload.raw() == b"new" and old.payload.raw() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["s.tftrace"]


def test_a_rewrite_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.tftrace"
    spool = Spool(path)
    spool.append(part(1))
    (tmp_path / "s.new").mkdir()
    with pytest.raises(StorageError):
        spool.rewrite(iter([part(2)]))
    spool.append(part(3))
    assert numbers(path) == [1, 3]


def test_what_found_no_space_is_written_before_what_comes_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.tftrace"
    spool = Spool(path)
    spool.append(part(1))

    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        for number in (2, 3):
            with pytest.raises(StorageError, match="No space left"):
                spool.append(part(number))
            spool.write_later(part(number))
    assert numbers(path) == [1]
    spool.append(part(4))
    spool.append(part(5))
    assert numbers(path) == [1, 2, 3, 4, 5]
    spool.write_later(part(6))
    spool.rewrite(iter([part(6), part(7)]))  # all there is
    spool.append(part(8))
    assert numbers(path) == [6, 7, 8]


def test_there_is_space_again_when_the_largest_refused_would_find_it() -> None:
    spool = Spool(None)
    assert spool.has_space()
    with pytest.raises(StorageError):
        spool.append(NewRecord("note", {}, bytes(64 << 20), 1))
    spool.append(part(1))
    assert not spool.has_space()  # for what was refused
    kept = spool.append(NewRecord("note", {}, bytes(32 << 20), 1))
    with pytest.raises(StorageError):
        spool.append(NewRecord("note", {}, bytes(40 << 20), 1))
    assert not spool.has_space() and kept.payload.size == 32 << 20


def test_buried_payloads_give_their_space_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.tftrace")
    record = spool.append(part(1, os.urandom(1 << 20)))
    before = (tmp_path / "s.tftrace").stat().st_blocks
    spool.release(record.end - record.start, record.payload)
    assert spool.superfluous_bytes > 1 << 20 and spool.superfluous_records == 1
    after = (tmp_path / "s.tftrace").stat().st_blocks
    assert after <= before and numbers(tmp_path / "s.tftrace") == [1]


def test_a_live_spool_is_locked_for_as_long_as_it_is_open(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.tftrace")
    with (tmp_path / "s.tftrace").open("rb") as file:
        assert is_locked(file.fileno()) is True
        spool.close()
        assert is_locked(file.fileno()) is False


def test_in_memory_there_is_a_limit() -> None:
    spool = Spool(None)
    spool.append(part(1, b"x"))
    with pytest.raises(StorageError, match="64 MB"):
        spool.append(NewRecord("note", {}, bytes(64 << 20), 1))
    (record,) = spool.rewrite(iter([part(2, b"y")]))
    assert record.payload.raw() == b"y"
