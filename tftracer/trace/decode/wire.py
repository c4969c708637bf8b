"""Reads the protobuf wire format with NumPy: many messages at once, one field per round, without a Python object per message.

The readers work on a ``Window``: a range of the raw bytes that can be read slightly past its end, as unaligned 8-byte
little-endian words. A varint's end is found by its continuation bits, and three shifts remove these bits, for all rows together.
NumPy does nearly all of this, and releases the GIL meanwhile. Format: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from tftracer.errors import FormatError, TruncatedError
from tftracer.trace.arrays.types import Bool, Int64, UInt64
from tftracer.trace.arrays.window import Window

Buffer = Union[bytes, memoryview]

VARINT, FIXED64, LEN, GROUP, END_GROUP, FIXED32 = range(6)

#: A message with more fields than this was not written by TensorFlow (an op has at most some thousand outputs).
MAX_FIELDS = 1 << 16

_MAX_GROUP_DEPTH = 100  # the same as protobuf's

_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONES = np.uint64(0x0101010101010101)
_PAIRS = np.uint64(0x7F007F007F007F00)
_QUADS = np.uint64(0x3FFF00003FFF0000)
_OCTETS = np.uint64(0x0FFFFFFF00000000)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_FOUR = np.uint64(4)
_SEVEN = np.uint64(0x7F)
_TOP = np.uint64(0x80)
_NOT_PLAIN = np.uint8(0x85)  # bits that are set in a tag of several bytes, or of a wire type other than VARINT and LEN


def squeeze(value: UInt64, longest: int = 8) -> UInt64:
    """Drop the top bit of each byte, in place: eight groups of 7 bits become 56 bits. ``longest``: number of bytes in use."""
    if longest > 1:
        value -= (value & _PAIRS) >> _ONE
    if longest > 2:
        high = value & _QUADS
        high >>= _TWO
        high *= np.uint64(3)
        value -= high
    if longest > 4:
        high = value & _OCTETS
        high >>= _FOUR
        high *= np.uint64(15)
        value -= high
    return value


def sizes(words: UInt64) -> tuple[UInt64, Int64]:
    """Return (mask of the bytes, length) of the varint at the start of each word; a full mask and 8 for longer varints."""
    stop = ~words
    stop &= _HIGH
    stop &= np.negative(stop)
    mask = stop - _ONE
    mask ^= stop
    length = mask & _ONES
    length *= _ONES
    length >>= np.uint64(56)
    return mask, length.view(np.int64)


def read_varints(window: Window, at: Int64) -> tuple[UInt64, Int64]:
    """Return (value, size in bytes) of the varints at these positions; size 11 for a varint of more than 10 bytes."""
    words = window.words[at]
    if not (words & _TOP).any():  # sizes of texts take one byte
        return words & _SEVEN, np.ones(len(at), np.int64)
    more = words & _HIGH
    mask, size = sizes(words)
    long = np.flatnonzero(more == _HIGH)
    words &= mask
    words &= _LOW
    value = squeeze(words, int(size.max()) if len(size) else 0)
    if len(long):
        tail_value, tail_size = value[long], size[long]
        _lengthen(window, at[long], tail_value, tail_size)
        value[long], size[long] = tail_value, tail_size
    return value, size


def _lengthen(window: Window, at: Int64, value: UInt64, size: Int64) -> None:
    """Add the ninth and tenth bytes of varints that are longer than eight bytes, in place."""
    ninth = window.bytes[at + 8].astype(np.uint64)
    value |= (ninth & _SEVEN) << np.uint64(56)
    size += 1
    rows = np.flatnonzero(ninth > _SEVEN)
    if len(rows):
        tenth = window.bytes[at[rows] + 9]
        value[rows] |= (tenth & np.uint8(1)).astype(np.uint64) << np.uint64(63)
        size[rows] += np.where(tenth > 0x7F, 2, 1)


class Fields(NamedTuple):
    """One field of each of many messages: the value of a number, or offset and size of a LEN field's content."""

    row: Int64  # index of the message
    number: Int64
    wire: Int64
    value: Int64
    offset: Int64  # relative to the window
    size: Int64


def of_kinds(fields: Fields, wanted: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, indices of the fields of this kind) for each wanted kind that occurs.

    Usually all fields are of one kind: messages of one program have the same first field, the same second field, and so on.
    """
    if not len(fields.number):
        return
    first, wire = int(fields.number[0]), int(fields.wire[0])
    if (fields.number == first).all() and (fields.wire == wire).all():
        if (first, wire) in wanted:
            yield first, wire, slice(None)
        return
    for number, wire in wanted:
        which = np.flatnonzero((fields.number == number) & (fields.wire == wire))
        if len(which):
            yield number, wire, which


def walk(window: Window, start: Int64, end: Int64) -> Iterator[Fields]:
    """Yield the fields of the messages at start[i] : end[i]: in each round the next field of every message that has one.

    Raises FormatError with the position of the byte for invalid messages.
    """
    row = np.flatnonzero(start < end)
    at, stop = start[row], end[row]
    for _ in range(MAX_FIELDS):
        if not len(row):
            return
        fields, at = next_fields(window, row, at, stop)
        yield fields
        more = at < stop
        if not more.all():
            row, at, stop = row[more], at[more], stop[more]
    if len(row):
        raise FormatError(f"{_place(window, start[row[0]])}: more than {MAX_FIELDS} fields in one message. {_REMEDY}")


_REMEDY = "The file is damaged, or it is neither a RunMetadata nor a profile; trace the step again."


def _place(window: Window, at: Any) -> str:
    return f"Byte {window.low + int(at)}"


def next_fields(window: Window, row: Int64, at: Int64, stop: Int64) -> tuple[Fields, Int64]:
    """Return (one field of each row, positions of the next fields)."""
    return _plain_fields(window, row, at, stop) or _any_fields(window, row, at, stop)


def _plain_fields(window: Window, row: Int64, at: Int64, stop: Int64) -> tuple[Fields, Int64] | None:
    """Do the same as ``next_fields`` if all fields are VARINT or LEN with a tag of one byte; else return None.

    This is the usual case, and is faster than ``_any_fields``.
    """
    tag = window.bytes[at]
    if (tag & _NOT_PLAIN).any() or (tag < 8).any():
        return None
    key, content = tag.astype(np.int64), at + 1
    number, wire = key >> 3, key & 7
    raw_value, size = read_varints(window, content)
    if (size > 8).any() and ((size > 10) | (wire == LEN)).any():
        return None
    value = raw_value.view(np.int64)
    length = value * (wire >> 1)  # LEN (2) gives value, VARINT (0) gives 0
    offset = content + size
    following = offset + length
    return None if (following > stop).any() else (Fields(row, number, wire, value, offset, length), following)


def _any_fields(window: Window, row: Int64, at: Int64, stop: Int64) -> tuple[Fields, Int64]:
    """Do the same as ``next_fields``, for fields of any wire type."""
    key, size = read_varints(window, at)
    content = at + size
    _refuse(window, at, (content > stop) | (key >> np.uint64(32) != 0) | (key < np.uint64(8)), "no field begins here")
    wire = (key & np.uint64(7)).astype(np.int64)
    number = (key >> np.uint64(3)).astype(np.int64)
    raw_value, size = read_varints(window, content)
    value = raw_value.view(np.int64)
    behind = content + size
    varying = (wire == VARINT) | (wire == LEN)
    _refuse(window, content, varying & ((size > 10) | (behind > stop)), "a number that does not end")
    _refuse(window, content, (wire == LEN) & ((value < 0) | (value > stop - behind)), "a field longer than its message")
    length = np.where(wire == LEN, value, 0)
    offset = np.where(varying, behind, content)
    following = offset + length
    for fixed, width in ((FIXED64, 8), (FIXED32, 4)):
        rows = np.flatnonzero(wire == fixed)
        if len(rows):
            following[rows] += width
            loaded = window.words[content[rows]]
            value[rows] = (loaded & np.uint64(0xFFFFFFFF) if width == 4 else loaded).astype(np.uint64).view(np.int64)
    _refuse(window, at, (wire > FIXED32) | (wire == END_GROUP), "an unknown wire type")
    for i in np.flatnonzero(wire == GROUP).tolist():
        following[i] = _skip_group(window.bytes.data, int(content[i]), int(stop[i]), int(number[i]), window.low)
    _refuse(window, at, following > stop, "a field longer than its message")
    return Fields(row, number, wire, value, offset, length), following


def _refuse(window: Window, at: Int64, wrong: Bool, problem: str) -> None:
    """Raise FormatError with the position of the first wrong row, if there is one."""
    if wrong.any():
        raise FormatError(f"{_place(window, at[int(wrong.argmax())])}: {problem}. {_REMEDY}")


def _skip_group(data: Buffer, at: int, high: int, number: int, base: int, depth: int = 1) -> int:
    """Return the end of a group (TensorFlow writes none). Field number 0 is accepted here, as in protobuf's C parser."""
    if depth > _MAX_GROUP_DEPTH:
        raise FormatError(f"Byte {base + at}: groups within groups, {depth} deep. {_REMEDY}")
    while at < high:
        key, at = scalar_varint(data, at, high, base)
        if key & 7 == END_GROUP:
            if key >> 3 != number:
                raise FormatError(f"Byte {base + at}: the end of another group. {_REMEDY}")
            return at
        if key >> 32:
            raise FormatError(f"Byte {base + at}: no field begins here. {_REMEDY}")
        if key & 7 == GROUP:
            at = _skip_group(data, at, high, key >> 3, base, depth + 1)
        else:
            at = _read_content(data, at, high, key, base)[2]
    raise TruncatedError(f"Byte {base + at}: a group that does not end. {_REMEDY}")


class Field(NamedTuple):
    """One field of one message."""

    number: int
    wire: int
    value: int
    offset: int
    size: int


def fields(raw: bytes, low: int, high: int) -> Iterator[Field]:
    """Yield the fields of the message raw[low:high]. FormatError and TruncatedError give the position of the byte."""
    at = low
    while at < high:
        field, at = next_field(raw, at, high)
        yield field


def next_field(raw: Buffer, at: int, high: int, base: int = 0) -> tuple[Field, int]:
    """Return (the field at ``at``, position of the next one).

    ``base``: the position of ``raw`` in the file; errors name positions in the file.
    """
    key, content = scalar_varint(raw, at, high, base)
    number, wire = key >> 3, key & 7
    if number == 0 or key >> 32:
        raise FormatError(f"Byte {base + at}: no field begins here. {_REMEDY}")
    if wire == GROUP:
        behind = _skip_group(raw, content, high, number, base)
        return Field(number, wire, 0, content, behind - content), behind
    value, offset, behind = _read_content(raw, content, high, key, base)
    return Field(number, wire, value, offset, behind - offset if wire == LEN else 0), behind


def scalar_varint(raw: Buffer, at: int, high: int, base: int = 0) -> tuple[int, int]:
    """Return (value modulo 2^64, position after it)."""
    value = 0
    for i in range(10):
        if at + i >= high:
            raise TruncatedError(f"Byte {base + high}: the message ends within a field. {_REMEDY}")
        byte = raw[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + i + 1
    raise FormatError(f"Byte {base + at}: a number that does not end. {_REMEDY}")


def varint(value: int) -> bytes:
    """Encode a non-negative number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message_field(field: int, *parts: bytes) -> bytes:
    """Serialize a submessage with this field number; its content is the concatenated ``parts``."""
    body = b"".join(parts)
    return varint(field << 3 | LEN) + varint(len(body)) + body


def _read_content(raw: Buffer, at: int, high: int, key: int, base: int) -> tuple[int, int, int]:
    """Return (value, offset of the content, position after it) of a field whose key was read."""
    wire = key & 7
    if wire == VARINT:
        value, behind = scalar_varint(raw, at, high, base)
        return value, behind, behind
    if wire == LEN:
        value, offset = scalar_varint(raw, at, high, base)
        behind = offset + value
    elif wire in (FIXED64, FIXED32):
        offset, behind = at, at + (8 if wire == FIXED64 else 4)
        value = int.from_bytes(raw[offset : min(behind, high)], "little")
    else:
        raise FormatError(f"Byte {base + at}: an unknown wire type. {_REMEDY}")
    if behind > high:
        raise TruncatedError(
            f"Byte {base + at}: a field reaches to byte {base + behind}, but its message ends at byte {base + high}. {_REMEDY}"
        )
    return value, offset, behind
