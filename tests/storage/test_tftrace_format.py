"""The .tftrace format: what is written is read, whole or cut, and nothing made to do harm does any."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import RAW, recording, steps

from tftracer.errors import FormatError, StorageError, TruncatedError
from tftracer.session.files.reading import read_model
from tftracer.session.files.saved import SavedSession, open_session
from tftracer.storage import tftrace_format as tftrace_format
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.spool import Memory
from tftracer.storage.tftrace_format import compress, record
from tftracer.storage.tftrace_reader import Reader

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
METAS = st.dictionaries(st.text(max_size=10), VALUES, max_size=5).filter(
    lambda meta: not {"raw_size", "payload_crc"} & meta.keys()
)


def memory(data: bytes) -> Memory:
    store = Memory(1 << 30)
    store.write_at(0, data)
    return store


def read(data: bytes) -> tuple[list[Any], str]:
    """The records, and what is damaged."""
    reader = Reader(memory(data))
    return list(reader), reader.damage


def file_of(*records: bytes, counts: dict[str, int] | None = None) -> bytes:
    """A whole file."""
    return tftrace_format.header() + b"".join(records) + tftrace_format.end_record(counts or {})


@given(st.lists(st.tuples(st.text("abc_", max_size=31), METAS, st.binary(max_size=300)), max_size=5))
def test_what_is_written_is_read(written: list[tuple[str, dict[str, Any], bytes]]) -> None:
    reader = Reader(memory(file_of(*(record(*each) for each in written))))
    assert [(each.type, each.meta, each.payload.raw()) for each in reader] == written
    assert reader.cut == reader.damage == ""


def test_any_msgpack_library_reads_it() -> None:
    """As docs/file-format.rst says, checksums included."""
    data = file_of(record("note", {"a": [1, "b"]}, b"payload"), counts={"note": 1})
    unpacker = msgpack.Unpacker(io.BytesIO(data))
    header = next(unpacker)
    assert header["crc"] == zlib.crc32(data[: unpacker.tell() - 5])
    (kind, crc, meta, payload), (end, *_, end_meta, _) = unpacker
    assert (header["format"], header["version"], kind, end) == ("tftracer-session", 2, "note", "end")
    assert crc == zlib.crc32(struct.pack(">III", len(kind), len(meta), len(payload)) + kind.encode() + meta)
    assert msgpack.unpackb(end_meta)["records"] == {"note": 1}
    facts = msgpack.unpackb(meta)
    assert facts["a"] == [1, "b"] and facts["payload_crc"] == zlib.crc32(payload)
    assert zstandard.ZstdDecompressor().decompress(payload) == b"payload" and facts["raw_size"] == 7


def small_file() -> bytes:
    """A session with a run, steps, a trace and a note; its header has no descriptors, so that all of it is small."""
    packed = msgpack.packb({"format": "tftracer-session", "version": 2, "spool": False, "crc": 1 << 31})
    columns = {name: np.arange(1.0, 3.0).tobytes() for name in ("start_at", "duration_s")}
    records = [
        ("session", {"id": "a", "host": "h", "started_at": 5.0}, b""),
        ("run", {"id": 1, "title": "train", "fetches": ["train"]}, b""),
        ("steps", {"run_id": 1, "first_step": 1, "stats": {"steps": 2}}, msgpack.packb(columns)),
        ("trace", {"id": 1, "run_id": 1, "step": 2, "headline": "fine"}, b"\n\0"),
        ("trace_facts", {"id": 1, "note": "slow"}, b""),
    ]
    data = packed[:-4] + zlib.crc32(packed[:-5]).to_bytes(4, "big") + b"".join(record(*each) for each in records)
    return bytes(data + tftrace_format.end_record(Counter(kind for kind, *_ in records)))


def complaint(path: Path) -> tuple[SavedSession, str]:
    """The session and what it says is wrong with its file."""
    session = open_session(path)
    session.check_payloads()
    return session, session.session()["cut"] + session.session()["damage"]


def everything(session: SavedSession) -> list[Any]:
    runs = session.runs()
    raw = [session.trace_bytes(trace["id"]) for run in runs for trace in run["traces"]]
    return [session.session(), runs, [session.step_times(run["id"]) for run in runs], raw]


def test_cut_at_every_byte(tmp_path: Path) -> None:
    whole, target = small_file(), tmp_path / "cut.tftrace"
    first = Reader(memory(whole)).first
    for size in range(len(whole)):
        target.write_bytes(whole[:size])
        if size < first:
            with pytest.raises(FormatError):
                open_session(target)
        else:
            assert complaint(target)[1], f"cut after {size} of {len(whole)} bytes"


def test_every_flipped_bit_is_said_or_harmless(tmp_path: Path) -> None:
    whole, target = small_file(), tmp_path / "flipped.tftrace"
    target.write_bytes(whole)
    session, said = complaint(target)
    original = everything(session)
    assert said == "" and original[3] == [b"\n\0"] and original[1][0]["traces"][0]["note"] == "slow"
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        target.write_bytes(flipped)
        session, said = complaint(target)  # and it always opens
        assert said or everything(session) == original, f"bit {bit % 8} of byte {bit // 8}"


def test_a_spool_that_was_not_closed_is_not_damaged(tmp_path: Path) -> None:
    """That of a job that was killed or is still running; when the job ends, it closes its spool."""
    with recording(tmp_path) as recorder:
        steps(recorder, 5, {2: RAW})
        spool = recorder.session()["file"]
        _, killed = complaint(Path(spool))
    assert "without closing" in killed and "damage" not in killed
    assert complaint(Path(spool))[1] == ""


def test_records_after_a_damaged_one_are_read() -> None:
    parts = [bytearray(record(name, {"x": 1}, b"y" * 50)) for name in "abc"]
    parts[1][3] ^= 0xFF
    records, damage = read(file_of(*map(bytes, parts), counts={"a": 1, "b": 1, "c": 1}))
    assert [each.type for each in records] == ["a", "c"]
    assert damage == f"1 part of the file is damaged: {len(parts[1])} bytes could not be read. Missing records: 1 b."


def test_records_that_were_taken_out_are_missed() -> None:
    records, damage = read(file_of(record("a", {}), counts={"a": 1, "trace": 2}))
    assert len(records) == 1 and damage == "Missing records: 2 trace."


def test_a_file_of_false_heads_is_not_searched_for_ever() -> None:
    head = b"\x94\xa1x\xce\0\0\0\0\xc6\x00\x40\0\0"
    source = CountingMemory(tftrace_format.header() + head * 400_000)
    reader = Reader(source)
    assert list(reader) == [] and "damaged" in reader.damage
    assert source.bytes_read < 1 << 30


class CountingMemory(Memory):
    bytes_read = 0

    def __init__(self, data: bytes) -> None:
        super().__init__(1 << 30)
        self.write_at(0, data)

    def read_at(self, offset: int, size: int) -> bytes:
        data = super().read_at(offset, size)
        self.bytes_read += len(data)
        return data


def test_a_damaged_payload_harms_its_record_alone() -> None:
    damaged = bytearray(record("a", {}, b"x" * 1000))
    damaged[-3] ^= 0xFF
    records, damage = read(file_of(bytes(damaged), record("b", {}, b"y")))
    with pytest.raises(FormatError, match="checksum"):
        records[0].payload.raw()
    assert records[1].payload.raw() == b"y" and not damage


def test_bombs_do_not_go_off() -> None:
    bomb = compress(bytes(1 << 24))
    head = tftrace_format.record_head("trace", {}, bomb, 100)
    (bomb_record,), _ = read(tftrace_format.header() + head + bomb)
    with pytest.raises(FormatError, match="claims"):
        bomb_record.payload.raw()
    streamed = zstandard.ZstdCompressor().compressobj()
    unsized = streamed.compress(bytes(1 << 24)) + streamed.flush()
    (bomb_record,), _ = read(tftrace_format.header() + tftrace_format.record_head("trace", {}, unsized, 100) + unsized)
    with pytest.raises(FormatError):
        bomb_record.payload.raw()


def test_impossible_sizes() -> None:
    head = msgpack.packb("trace")
    huge = b"\x94" + head + b"\xce\0\0\0\0" + b"\xc6\xff\xff\xff\xff"
    records, damage = read(tftrace_format.header() + huge)
    assert not records and damage


def test_a_later_version_names_the_remedy() -> None:
    with pytest.raises(FormatError, match="pip install -U tftracer"):
        Reader(memory(msgpack.packb({"format": "tftracer-session", "version": 3})))
    with pytest.raises(FormatError, match="no version"):
        Reader(memory(msgpack.packb({"format": "tftracer-session"})))
    with pytest.raises(FormatError, match="not a tftracer session"):
        Reader(memory(b"PK\x03\x04"))
    with pytest.raises(TruncatedError):
        Reader(memory(tftrace_format.header()[:40]))


def test_records_of_unknown_types_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "later.tftrace"
    path.write_bytes(file_of(record("of_tomorrow", {"x": 1}, b"y"), record("run", {"id": 1, "title": "a"})))
    session = open_session(path)
    assert [run["title"] for run in session.runs()] == ["a"]
    assert "1 record of types that this version does not know (of_tomorrow)" in session.session()["damage"]


def test_a_trace_whose_run_was_damaged_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "damaged.tftrace"
    run = bytearray(record("run", {"id": 3, "title": "a"}))
    run[-2] ^= 1
    path.write_bytes(file_of(bytes(run), record("trace", {"id": 7, "run_id": 3}, RAW), counts={"run": 1, "trace": 1}))
    session = open_session(path)
    assert session.runs()[0]["title"] == "run 3 (its record is missing)" and session.trace_bytes(7) == RAW
    assert "Missing records: 1 run." in session.session()["damage"]


WORDS = st.sampled_from(["session", "run", "steps", "history", "trace", "trace_facts", "trace_removed", "other"])
FIELDS = st.sampled_from(
    [
        *("id", "run_id", "title", "fetches", "feeds", "stats", "step", "started_at", "findings", "context", "note"),
        *("nodes", "devices", "problems", "place", "gpus", "pid", "first_step"),
    ]
)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(WORDS, st.dictionaries(FIELDS, VALUES | st.integers(0, 3), max_size=8), st.binary(max_size=64)), max_size=8
    )
)
def test_no_record_however_made_breaks_the_reader(written: list[tuple[str, dict[str, Any], bytes]]) -> None:
    data = tftrace_format.header() + record("run", {"id": 1}) + b"".join(record(*each) for each in written)
    session = SavedSession(read_model(Reader(memory(data)), "memory"))
    for run in session.runs():
        with contextlib.suppress(FormatError):
            session.step_times(run["id"])
        for trace in run["traces"]:
            session.trace_context(trace["id"])
    assert session.session()["live"] is False


@settings(deadline=None)
@given(st.data())
def test_no_change_of_bytes_breaks_the_reader(data: Any) -> None:
    whole = bytearray(tftrace_format.header()[:0] + msgpack.packb({"format": "tftracer-session", "version": 1}))
    whole += (
        record("session", {"host": "h"})
        + record("run", {"id": 1, "title": "t"})
        + record("trace", {"id": 1, "run_id": 1}, RAW[:200])
    )
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        for each in Reader(memory(bytes(whole))):
            each.payload.raw()
    except FormatError:
        pass


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        FileBytes(tmp_path / "none")
    with pytest.raises(FormatError, match="folder"):
        open_session(str(tmp_path))


class Counting(FileBytes):
    """A file that knows how much of it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads: list[int] = []

    def read_at(self, offset: int, size: int) -> bytes:
        data = super().read_at(offset, size)
        self.reads.append(len(data))
        return data


def test_two_gigabytes_are_indexed_by_skipping(tmp_path: Path) -> None:
    """Two hundred payloads are holes of 10 MB: reading one would show in the bytes read."""
    path, payload, traces = tmp_path / "large.tftrace", 10 << 20, 205
    with path.open("wb") as file:
        file.write(tftrace_format.header() + record("run", {"id": 1, "title": "a"}))
        hole = bytes(payload)
        for number in range(1, traces + 1):
            file.write(tftrace_format.record_head("trace", {"id": number, "run_id": 1, "payload_crc": 0}, hole, 100))
            file.seek(payload, os.SEEK_CUR)
        file.write(record("run", {"id": 2, "title": "b"}) + tftrace_format.end_record({"run": 2, "trace": traces}))
    assert path.stat().st_size > 2 << 30
    source = Counting(path)
    model = read_model(Reader(source), str(path))
    assert [run.title for run in model.runs.values()] == ["a", "b"]
    assert model.facts["cut"] == model.facts["damage"] == ""
    assert [trace.payload.size for trace in model.traces.values()] == [payload] * traces
    assert sum(source.reads) < 8 << 20  # the most that a header may be, and some kB a trace


def test_small_records_are_read_many_at_a_time_and_large_ones_whole(tmp_path: Path) -> None:
    notes = ["x" * (3_000_000 if number == 500 else number % 40) for number in range(2000)]
    path = tmp_path / "small.tftrace"
    path.write_bytes(tftrace_format.header() + b"".join(record("note", {"text": note}) for note in notes))
    source = Counting(path)
    assert [each.meta["text"] for each in Reader(source)] == notes
    assert len(source.reads) < 30
