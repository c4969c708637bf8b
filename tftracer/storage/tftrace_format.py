"""The .tftrace format, version 2: a msgpack stream of a header and self-contained records (docs/file-format.rst).

    header   map {"format": "tftracer-session", "version": 2, ..., "crc": uint32}
    record   array of 4: [type: str, crc: uint32, meta: bin, payload: bin]

``meta`` is a separate msgpack map. ``crc`` covers the record's type, its meta and the length of each part. ``meta`` has
``payload_crc`` and ``raw_size`` if the payload is not empty, so that a reader can build its index without reading payloads, and
any change of the file is still detected. Payloads are zstd frames. An ``end`` record has the number of records of each type since
the previous ``end`` record.

This module writes; tftrace_reader.py reads. spool.py handles appending and locking.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import zstandard

from tftracer.errors import FormatError, TruncatedError
from tftracer.storage.file_bytes import Bytes
from tftracer.version import __version__

FORMAT = "tftracer-session"
VERSION = 2
SUFFIX = ".tftrace"

#: Record types; see docs/file-format.rst. A reader skips unknown types.
SESSION, RUN, STEPS, HISTORY = "session", "run", "steps", "history"
LEDGER, INPUT_PIPELINES, MEMORY = "ledger", "input_pipelines", "memory"
TRACE, TRACE_FACTS, TRACE_REMOVED = "trace", "trace_facts", "trace_removed"
STALL, PERIOD, KINDS, GAPS, MARKS = "stall", "period", "slow_kinds", "gaps", "marks"
JOB, JOB_TRACE, END = "job", "job_trace", "end"
RECORD_TYPES = frozenset({SESSION, RUN, STEPS, HISTORY, LEDGER, INPUT_PIPELINES, MEMORY, TRACE, TRACE_FACTS, TRACE_REMOVED})
RECORD_TYPES |= {STALL, PERIOD, KINDS, GAPS, MARKS, JOB, JOB_TRACE, END}
#: Limits on the sizes in a file. TensorFlow's own protobufs are limited to 2 GB.
MAX_HEADER = 4 << 20
MAX_META = 4 << 20
MAX_RAW = (1 << 31) - 1
MAX_TYPE = 31
_LEVEL = 3  # zstd's default; makes step_stats 12 times smaller, at 400 MB/s

#: The first bytes of every file, after one byte with the number of the header's keys.
MAGIC = b"\xa6format\xb0" + FORMAT.encode()
_DESCRIPTORS = Path(__file__).parent.parent / "trace/decode/run_metadata.binpb"


@dataclass(frozen=True)
class StoredPayload:
    """The place of a payload in its file; the payload itself is read when it is needed."""

    source: Bytes
    offset: int
    size: int  # as stored
    raw_size: int
    crc: int | None  # None for a PlainPayload (session/files/imported.py)

    def frame_unchecked(self) -> bytes:
        """Return the zstd frame without checking it, to copy it to another file with the same ``crc``."""
        data = self.source.read_at(self.offset, self.size)
        if len(data) != self.size:
            raise TruncatedError(f"{self.source.name}: ends inside a record. What comes before it can be read.")
        return data

    def frame_checked(self) -> bytes:
        """Return the zstd frame after checking it."""
        data = self.frame_unchecked()
        if zlib.crc32(data) != self.crc:
            raise FormatError(f"{self.source.name}: a record is damaged (its checksum is wrong). The others can be read.")
        return data

    def is_whole(self) -> bool:
        """Return whether the payload is complete and its checksum is right."""
        try:
            self.frame_checked()
        except FormatError:
            return False
        return True

    def raw(self) -> bytes:
        return decompress(self.frame_checked(), self.raw_size, self.source.name) if self.size else b""


@dataclass(frozen=True)
class Record:
    type: str
    meta: dict[str, Any]
    payload: StoredPayload
    start: int  # position of the record in its file
    end: int

    @property
    def size(self) -> int:
        """The record's bytes, including the payload."""
        return self.end - self.start


def compress(raw: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL).compress(raw)


def decompress(data: bytes, raw_size: int, name: str) -> bytes:
    """Decompress to exactly ``raw_size`` bytes. Raises FormatError for another size, for more than MAX_RAW, or for damage."""
    try:
        declared = zstandard.frame_content_size(data)
        if declared != raw_size or not 0 <= raw_size <= MAX_RAW:
            raise FormatError(f"{name}: a record does not have the size that it claims. It is damaged or made to do harm.")
        raw = zstandard.ZstdDecompressor().decompress(data, max_output_size=raw_size)
    except zstandard.ZstdError as error:
        raise FormatError(f"{name}: a record cannot be decompressed ({error}). The others can be read.") from error
    if len(raw) != raw_size:
        raise FormatError(f"{name}: a record does not have the size that it claims. It is damaged.")
    return raw


def header(spool: bool = False) -> bytes:
    """Return the first bytes of a file. ``spool``: a live session appends to it, so it has no ``end`` record yet."""
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "tftracer": __version__,
        "created_at": time.time(),
        "spool": spool,
        "descriptors": _DESCRIPTORS.read_bytes(),  # of the messages in a trace's payload
    }
    packer = msgpack.Packer()
    parts = [packer.pack_map_header(len(fields) + 1)]
    parts += [packer.pack(part) for field in fields.items() for part in field]
    covered = b"".join([*parts, packer.pack("crc")])
    return covered + _uint32(zlib.crc32(covered))


def record_head(kind: str, meta: dict[str, Any], stored: bytes = b"", raw_size: int = 0) -> bytes:
    """Return the part of a record before its payload; the compressed payload follows immediately.

    A payload copied from another file brings its ``payload_crc`` in ``meta``, so that damage in that file stays detectable.
    """
    meta = dict(meta)
    if stored:
        meta["raw_size"] = raw_size
        if "payload_crc" not in meta:
            meta["payload_crc"] = zlib.crc32(stored)
    # A lone surrogate (from a file name that is not UTF-8, or a note in JSON) has no UTF-8 form, so it becomes "?".
    packer = msgpack.Packer(unicode_errors="replace")
    packed, size = packer.pack(meta), len(stored)
    crc = _uint32(record_crc(kind.encode(), packed, size))
    return b"".join([packer.pack_array_header(4), packer.pack(kind), crc, packer.pack(packed), _bin_header(size)])


def record_crc(kind: bytes, meta: bytes, payload_size: int) -> int:
    """Compute a record's ``crc``."""
    return zlib.crc32(struct.pack(">III", len(kind), len(meta), payload_size) + kind + meta)


def record(kind: str, meta: dict[str, Any], raw: bytes = b"") -> bytes:
    """Return a complete record with a small payload."""
    stored = compress(raw) if raw else b""
    return record_head(kind, meta, stored, len(raw)) + stored


def end_record(counts: Mapping[str, int]) -> bytes:
    """Return the record that closes a file. ``counts``: records of each type since the last ``end`` record, or the beginning."""
    return record(END, {"records": dict(counts)})


def missing(expected: Any, counts: Counter[str]) -> Iterator[str]:
    """Yield the records that an ``end`` record counts but that were not found: '2 steps', '1 trace'."""
    for kind, number in (expected if isinstance(expected, dict) else {}).items():
        if isinstance(number, int) and number > counts[kind]:
            yield f"{number - counts[kind]:,} {str(kind)[:MAX_TYPE]}"


def _uint32(number: int) -> bytes:
    return struct.pack(">BI", 0xCE, number)


def _bin_header(size: int) -> bytes:
    if size < 1 << 8:
        return struct.pack(">BB", 0xC4, size)
    return struct.pack(">BH", 0xC5, size) if size < 1 << 16 else struct.pack(">BI", 0xC6, size)


def is_session(head: bytes) -> bool:
    """Return whether a file with this beginning has this format (any version), even if a few bytes are damaged."""
    same = sum(map(int.__eq__, head[1 : 1 + len(MAGIC)], MAGIC))
    return len(head) > len(MAGIC) and (same == len(MAGIC) or (same >= len(MAGIC) - 2 and 0x80 <= head[0] <= 0x8F))
