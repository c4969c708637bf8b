"""Reads RunMetadata from TensorBoard's event files, where ``FileWriter.add_run_metadata`` and ``ProfilerHook`` write it.

A file is a sequence of TFRecords (length, its checksum, payload, the payload's checksum), each an ``Event``; events without
RunMetadata are skipped. If a file ends within a record, for example that of a running job, it is read up to this record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tftracer.contract.basics import Finding
from tftracer.errors import FormatError, TruncatedError
from tftracer.importers.imported import MAX_TRACES, Imported, ImportedRun, ImportedTrace
from tftracer.trace.decode.wire import FIXED64, LEN, VARINT, Field, fields

_HEADER, _FOOTER = 12, 4
_WALL_TIME, _STEP, _TAGGED_RUN_METADATA = 1, 2, 8
_TAG, _RUN_METADATA = 1, 2


def looks_like_events(head: bytes, size: int) -> bool:
    """Return whether the checksum of the first record's length is right: other files do not pass this by chance."""
    if len(head) < _HEADER:
        return False
    length, checksum = struct.unpack_from("<QI", head)
    return bool(0 < length <= size and checksum == masked_crc(head[:8]))


def read(data: bytes) -> Imported:
    """Read all RunMetadata. Each tag (without its step number) is a run.

    Raises FormatError if the file has no RunMetadata, or a damaged one.
    """
    runs: dict[str, ImportedRun] = {}
    findings: list[Finding] = []
    at, records, traces = 0, 0, 0
    while at < len(data):
        span = _record(data, at)
        if span is None:
            findings.append(_cut(len(data) - at))
            break
        event = _event(data, *span)
        records += 1
        at = span[1] + _FOOTER
        if event is None:
            continue
        traces += 1
        tag, trace = event
        if traces > MAX_TRACES:
            raise FormatError(f"more than {MAX_TRACES} traces in one event file")
        runs.setdefault(_run_of_tag(tag), ImportedRun(_run_of_tag(tag))).traces.append(trace)
    if not runs and findings:
        raise TruncatedError(f"the event file is cut short, after {records} records without a RunMetadata: copy it again")
    if not runs:
        raise FormatError(
            f"this event file holds no RunMetadata in its {records} records. FileWriter.add_run_metadata and ProfilerHook "
            "(with an output that TensorBoard reads) write RunMetadata; files with only summaries cannot be shown"
        )
    for run in runs.values():
        starts = [trace.started_at for trace in run.traces if trace.started_at is not None]
        run.first_run_at, run.last_run_at = min(starts, default=None), max(starts, default=None)
    return Imported("event file", list(runs.values()), findings, " ".join(finding["message"] for finding in findings))


def _record(data: bytes, at: int) -> tuple[int, int] | None:
    """Return (start, end) of the payload of the record at ``at``; None if the file ends within the record."""
    if at + _HEADER > len(data):
        return None
    (length,) = struct.unpack_from("<Q", data, at)
    start = at + _HEADER
    (checksum,) = struct.unpack_from("<I", data, at + 8)
    if length > len(data) and checksum != masked_crc(data[at : at + 8]):
        raise FormatError(f"the event file is broken: a record of {length} bytes at byte {at}")
    return (start, start + length) if start + length + _FOOTER <= len(data) else None


def _event(data: bytes, start: int, end: int) -> tuple[str, ImportedTrace] | None:
    """Return (tag, trace) of an event with a RunMetadata; None for other events."""
    wall, step, tagged = None, 0, None
    for field in _fields(data, start, end):
        if field.number == _WALL_TIME and field.wire == FIXED64:
            wall = struct.unpack("<d", struct.pack("<Q", field.value))[0]
        elif field.number == _STEP and field.wire == VARINT:
            step = field.value
        elif field.number == _TAGGED_RUN_METADATA and field.wire == LEN:
            tagged = field
    if tagged is None:
        return None
    _verify(data, start, end)
    return _trace(data, tagged, wall, step)


def _trace(data: bytes, tagged: Field, wall: float | None, step: int) -> tuple[str, ImportedTrace]:
    tag, raw = "", b""
    for field in _fields(data, tagged.offset, tagged.offset + tagged.size):
        if field.number == _TAG and field.wire == LEN:
            tag = data[field.offset : field.offset + min(field.size, 1000)].decode("utf-8", "replace")
        elif field.number == _RUN_METADATA and field.wire == LEN:
            raw = data[field.offset : field.offset + field.size]
    plausible = wall is not None and 0 < wall < 1e11
    return tag, ImportedTrace(raw, title=tag, step=step if step < 1 << 53 else 0, started_at=wall if plausible else None)


def _fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    try:
        yield from fields(data, start, end)
    except FormatError as error:
        raise FormatError(f"the event file is broken: {error}") from error


def _run_of_tag(tag: str) -> str:
    """Return the run of a tag: ProfilerHook's tags ``step_123`` are steps of one run."""
    return "Run metadata" if tag.startswith("step") and tag.strip("step_ -").isdigit() else tag or "Run metadata"


def _cut(rest: int) -> Finding:
    return {
        "code": "file_cut",
        "severity": "warning",
        "message": f"The event file ends in the middle of a record: its last {rest} bytes were left out.",
        "remedy": "Wait until the job has closed its writer, or copy the file again.",
    }


def masked_crc(data: bytes) -> int:
    """Compute TFRecord's checksum: CRC-32C, rotated and offset."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Compute CRC-32C (Castagnoli). Long data is cut into lanes that are computed together and then joined: 100 MB/s."""
    if len(data) < 4096:
        return _advance(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    lanes = min(len(data) // 64, 4096)
    steps = -(-len(data) // lanes)
    cells = np.zeros(lanes * steps, np.uint8)  # zeros before the data do not change the checksum
    cells[len(cells) - len(data) :] = np.frombuffer(data, np.uint8)
    cells[len(cells) - len(data) :][:4] ^= 0xFF  # equals a start value of all ones
    states = np.zeros(lanes, np.uint32)
    for column in np.ascontiguousarray(cells.reshape(lanes, steps).T):
        states = _TABLE[(states ^ column) & 0xFF] ^ (states >> 8)
    crc = 0
    skip = _skipper(steps)
    for state in states.tolist():
        crc = skip[0][crc & 0xFF] ^ skip[1][crc >> 8 & 0xFF] ^ skip[2][crc >> 16 & 0xFF] ^ skip[3][crc >> 24] ^ state
    return crc ^ 0xFFFFFFFF


def _advance(crc: int, data: bytes) -> int:
    for byte in data:
        crc = _TABLE_AS_LIST[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def _skipper(steps: int) -> list[list[int]]:
    """Return four tables, one for each byte of the state: value of the byte -> its part of the state after ``steps`` zero bytes.

    The effect of zero bytes is linear, so the parts are joined by XOR.
    """
    states = (np.arange(256, dtype=np.uint32)[None, :] << np.array([0, 8, 16, 24], np.uint32)[:, None]).ravel()
    for _ in range(steps):
        states = _TABLE[states & 0xFF] ^ (states >> 8)
    return [row.tolist() for row in states.reshape(4, 256)]


def _table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


_TABLE = _table()
_TABLE_AS_LIST: list[int] = _TABLE.tolist()


def _verify(data: bytes, start: int, end: int) -> None:
    (expected,) = struct.unpack_from("<I", data, end)
    if masked_crc(data[start:end]) != expected:
        raise FormatError(f"the event file is damaged: the checksum of its record at byte {start - _HEADER} is wrong")
