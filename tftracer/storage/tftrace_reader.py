"""Reads a .tftrace file: the records in order, and a text about unreadable parts."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgpack

from tftracer.errors import FormatError, TruncatedError
from tftracer.storage import tftrace_format
from tftracer.storage.file_bytes import Bytes
from tftracer.storage.tftrace_format import Record, StoredPayload, is_session, missing, record_crc

#: Number of bytes that are read at a time: few while payloads are skipped, more and more if many small records follow each other.
_MIN_WINDOW = 8 << 10
_WINDOW = 256 << 10
_MAX_WINDOW = tftrace_format.MAX_META + _WINDOW  # holds the head of any record
#: Matches a possible head of a record: an array of four, a short string, an integer.
_HEAD = re.compile(rb"\x94[\xa0-\xbf][\x20-\x7e]{0,31}[\xcc-\xce]")
_HEAD_SIZE = 2 + tftrace_format.MAX_TYPE + 1
_MIN_SEARCH_WINDOW, _MAX_SEARCH_WINDOW = 4 << 10, 1 << 20
#: A search stops after it has checked this many bytes of metas: its time would otherwise be quadratic in a file of false heads.
_MAX_TRIED = 256 << 20


class _Short(Exception):
    """The window ends before the object does."""


class Reader:
    """The records of one file. ``cut`` and ``damage`` are complete when the last record has been read.

    ``header``: the file's header. ``cut``: how the file ends early, or "". ``damage``: what is damaged or missing, or "".
    Raises ``FormatError`` if the file is not a session or has a later version; ``TruncatedError`` if it ends within its header.
    """

    def __init__(self, source: Bytes) -> None:
        self.source = source
        self.size = source.length()
        self.cut = ""
        self._parts: list[int] = []  # sizes of the damaged parts
        self._notes: list[str] = []
        self._tried = 0  # bytes of metas that have been checked
        self._window, self._window_at, self._requested = b"", 0, 0
        self.header, self.first = self._read_header()

    @property
    def damage(self) -> str:
        parts = []
        if self._parts:
            damaged_parts = "1 part of the file is" if len(self._parts) == 1 else f"{len(self._parts):,} parts of the file are"
            parts.append(f"{damaged_parts} damaged: {sum(self._parts):,} bytes could not be read.")
        return " ".join([*parts, *self._notes])

    def _read_header(self) -> tuple[dict[str, Any], int]:
        """Return (header, position of the first record)."""
        head = self.source.read_at(0, tftrace_format.MAX_HEADER)
        if not is_session(head):
            raise FormatError(f"{self.source.name}: not a tftracer session.")
        fields, end = _unpacked(head)
        version, crc, right_crc = fields.get("version"), fields.get("crc"), zlib.crc32(head[: end - 5])
        is_later = isinstance(version, int) and version > tftrace_format.VERSION and crc in (None, right_crc)
        if not is_later and (version != tftrace_format.VERSION or crc != right_crc):
            return self._damaged_header(fields)
        if is_later:
            raise FormatError(
                f"{self.source.name}: was written by a later tftracer (format {version}, known here up to "
                f"{tftrace_format.VERSION}). Upgrade: pip install -U tftracer."
            )
        return fields, end

    def _damaged_header(self, fields: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Return (what can be read of the header, position of the first valid record). Raises an error if there is no record."""
        first = self._search(len(tftrace_format.MAGIC))
        if first is None and fields:
            raise FormatError(f"{self.source.name}: its header is damaged or has no version, and no whole record follows it.")
        if first is None:
            raise TruncatedError(f"{self.source.name}: ends within its header, so that there is nothing to read. Copy it again.")
        self._notes.append("The file's header is damaged.")
        return fields, first

    def __iter__(self) -> Iterator[Record]:
        position, counts, closed = self.first, Counter[str](), False
        while position < self.size:
            record, why = self._attempt(position)
            if record is None or record.end > self.size:
                following = self._search(position + 1) if record is None else None
                if following is None:
                    self._note_rest(position, why)
                    return
                self._parts.append(following - position)
                position, closed = following, False
                continue
            position = record.end
            closed = record.type == tftrace_format.END
            if closed:
                self._note_missing_records(record.meta, counts)
                continue
            counts[record.type] += 1
            yield record
        if not closed:
            self._note_early_end()

    def _note_missing_records(self, meta: dict[str, Any], counts: Counter[str]) -> None:
        lost = ", ".join(missing(meta.get("records"), counts))
        if lost:
            self._notes.append(f"Missing records: {lost}.")
        counts.clear()

    def _attempt(self, position: int) -> tuple[Record | None, str]:
        """Return (the record at ``position``, ""), or (None, the problem; "" if the file ends first)."""
        try:
            return self._record_at(position), ""
        except FormatError as error:
            return None, str(error)

    def _note_rest(self, position: int, why: str) -> None:
        """Note that nothing after ``position`` can be read."""
        rest = self.size - position
        if why:
            self._parts.append(rest)
        else:
            self.cut = f"The file ends inside a record: its last {rest:,} bytes could not be read."

    def _note_early_end(self) -> None:
        if self.header.get("spool") is True:
            self.cut = (
                "The job ended without closing this file, or is still running. All that it had written is here; "
                "step times are written every two seconds."
            )
        else:
            self.cut = "The file ends early: its last record is missing, and others may be."

    def _record_at(self, position: int) -> Record | None:
        """Return the record at a position; None if the file ends before its payload. Raises ``FormatError`` if it is invalid."""
        if not self._window_at <= position < self._window_at + len(self._window):
            self._load(position, _MIN_WINDOW)
        while True:
            try:
                return self._parsed(position)
            except _Short:
                wider = _wider(self._requested, self._window_at == position)
                if not wider or len(self._window) < self._requested:
                    return None
                self._load(position, wider)

    def _load(self, position: int, size: int) -> None:
        self._window, self._window_at, self._requested = self.source.read_at(position, size), position, size

    def _parsed(self, position: int) -> Record:
        window, at = self._window, position - self._window_at
        if window[at] != 0x94:
            raise FormatError("A record does not begin where it should; the file is damaged.")
        kind, at = _text(window, at + 1)
        crc, at = _uint(window, at)
        size, at = _number(window, at, _BINS)
        if size > tftrace_format.MAX_META:
            raise FormatError("A record is larger than any that tftracer writes; the file is damaged.")
        packed = _take(window, at, size)
        self._tried += size
        payload_size, offset = _number(window, at + size, _BINS)
        if crc != record_crc(kind, packed, payload_size):
            raise FormatError("A record's checksum is wrong; the file is damaged.")
        meta = unpack_map(packed)
        payload = self._payload(meta, self._window_at + offset, payload_size)
        return Record(kind.decode("utf-8", "replace"), meta, payload, position, payload.offset + payload_size)

    def _payload(self, meta: dict[str, Any], offset: int, size: int) -> StoredPayload:
        raw_size, crc = meta.pop("raw_size", 0), meta.pop("payload_crc", 0)
        if not isinstance(raw_size, int) or not isinstance(crc, int) or not 0 <= raw_size <= tftrace_format.MAX_RAW:
            raise FormatError("A record claims an impossible size; the file is damaged.")
        return StoredPayload(self.source, offset, size, raw_size, crc)

    def _search(self, position: int) -> int | None:
        """Return the position of the next record with a valid head, at ``position`` or later; None if none is found."""
        size, until = _MIN_SEARCH_WINDOW, self._tried + _MAX_TRIED
        while position < self.size:
            window = self.source.read_at(position, size + _HEAD_SIZE)
            for match in _HEAD.finditer(window):
                if match.start() < size and self._attempt(position + match.start())[0]:
                    return position + match.start()
                if self._tried > until:
                    return None
            position, size = position + size, min(2 * size, _MAX_SEARCH_WINDOW)
        return None


def _unpacked(head: bytes) -> tuple[dict[str, Any], int]:
    """Return (the header, its end); ({}, 0) if it cannot be read."""
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=tftrace_format.MAX_HEADER)
    unpacker.feed(head)
    try:
        fields, end = unpacker.unpack(), unpacker.tell()
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return {}, 0
    return (fields, end) if isinstance(fields, dict) else ({}, 0)


def _wider(size: int, starts_at_record: bool) -> int:
    """Return the size of the next window if one of ``size`` bytes ended inside a record; 0 if no valid record is that large."""
    if starts_at_record:
        return min(size * 8, _MAX_WINDOW) if size < _MAX_WINDOW else 0
    return min(size * 2, _WINDOW)


def unpack_map(packed: bytes) -> dict[str, Any]:
    """Parse a msgpack map with string keys. Raises ``FormatError`` for anything else."""
    try:
        fields = msgpack.unpackb(packed, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise FormatError(f"A record cannot be read ({error}); the file is damaged.") from error
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise FormatError("A record is not a map; the file is damaged.")
    return fields


def _take(window: bytes, at: int, size: int) -> bytes:
    """Return ``size`` bytes from ``at`` on. Raises ``_Short`` if the window has fewer."""
    part = window[at : at + size]
    if len(part) < size:
        raise _Short
    return part


def _text(window: bytes, at: int) -> tuple[bytes, int]:
    """Return (the msgpack string at ``at``, the position after it)."""
    first = _take(window, at, 1)[0]
    if not 0xA0 <= first <= 0xA0 + tftrace_format.MAX_TYPE:
        raise FormatError("A record has no type; the file is damaged.")
    size = first - 0xA0
    return _take(window, at + 1, size), at + 1 + size


_UINTS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I"}
_BINS = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}


def _number(window: bytes, at: int, formats: dict[int, str]) -> tuple[int, int]:
    form = formats.get(_take(window, at, 1)[0])
    if form is None:
        raise FormatError("A record is not built as it should be; the file is damaged.")
    size = struct.calcsize(form)
    return int(struct.unpack(form, _take(window, at + 1, size))[0]), at + 1 + size


def _uint(window: bytes, at: int) -> tuple[int, int]:
    first = _take(window, at, 1)[0]
    return (first, at + 1) if first < 0x80 else _number(window, at, _UINTS)
