"""Changes that files are fuzzed with: of any bytes, and of the values in a protobuf message, whose lengths stay right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Union

#: A message: (field number, wire type, value) of each field; a value is a number, bytes, or a message in turn.
Value = Union[int, bytes, "list[Field]"]
Field = tuple[int, int, Value]

_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5
_NUMBERS = [0, 1, 2, 1 << 31, (1 << 32) - 1, 1 << 53, (1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 1000]
_TEXTS = [
    b"",
    b"\xff\xfe",
    b"\x1b]0;t\x07\x1b[31m\xe2\x80\xae",
    "٣²".encode(),
    b"x" * 300,
    b"9" * 25,
    b"a/b/c:\xd9\xa1",
    b'"\\\n</script>',
    b"int32[-1,99999999999999999999]",
    b"/job:worker/replica:0/task:0/device:GPU:99999999999",
]


def changed(sample: bytes, chance: random.Random) -> bytes:
    """One to four small changes: bytes flipped, cut, put in, repeated, or a length made huge."""
    data = bytearray(sample)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.randint(1, 30)]
        elif kind == 2:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
        elif kind == 3:
            data[at:at] = data[at : at + chance.randint(1, 200)] * chance.randint(1, 20)
        else:
            data[at : at + 4] = b"\xff" * 4
    return bytes(data)


def changed_values(sample: bytes, chance: random.Random) -> bytes:
    """A protobuf message with some of its numbers and texts replaced, and fields left out, repeated and put elsewhere."""
    message = parsed(sample)
    if not message:
        return changed(sample, chance)
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        holder = chance.choice(list(_messages(message)))
        if holder:
            _change(holder, chance.randrange(len(holder)), chance)
    return written(message)


def _change(holder: list[Field], at: int, chance: random.Random) -> None:
    number, wire, value = holder[at]
    kind = chance.randrange(8)
    if kind == 0:
        del holder[at]
    elif kind == 1:
        holder.insert(chance.randrange(len(holder) + 1), holder[at])
    elif kind == 2:
        other = chance.randrange(len(holder))
        holder[at], holder[other] = (holder[other][0], *holder[at][1:]), (number, *holder[other][1:])
    elif isinstance(value, int):
        near = [value - 1, value + 1, value * 1000, -value]
        holder[at] = (number, wire, chance.choice([*_NUMBERS, *near]) & ((1 << 64) - 1 if wire != _FIXED32 else (1 << 32) - 1))
    elif isinstance(value, bytes):
        text = chance.choice(_TEXTS)
        holder[at] = (number, wire, chance.choice([text, value + text, text + value, changed(value, chance)]))


def parsed(data: bytes, depth: int = 0) -> list[Field] | None:
    """None for bytes that are no message."""
    fields: list[Field] = []
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            number, wire = key >> 3, key & 7
            value: Value
            if wire == _VARINT:
                value, at = _varint(data, at)
            elif wire == _LEN:
                size, at = _varint(data, at)
                inner = data[at : at + size]
                if len(inner) < size:
                    return None
                value, at = _inner(inner, depth), at + size
            elif wire in (_FIXED64, _FIXED32):
                size = 8 if wire == _FIXED64 else 4
                value, at = int.from_bytes(data[at : at + size], "little"), at + size
            else:
                return None
            if not number:
                return None
            fields.append((number, wire, value))
    except IndexError:
        return None
    return fields


def _inner(data: bytes, depth: int) -> Value:
    if depth > 12 or not data or data[:4].isalpha():
        return data
    message = parsed(data, depth + 1)
    return data if message is None else message


def written(message: list[Field]) -> bytes:
    parts = []
    for number, wire, value in message:
        parts.append(_as_varint(number << 3 | wire))
        if isinstance(value, int):
            parts.append(_as_varint(value) if wire == _VARINT else value.to_bytes(8 if wire == _FIXED64 else 4, "little"))
        else:
            inner = value if isinstance(value, bytes) else written(value)
            parts += [_as_varint(len(inner)), inner]
    return b"".join(parts)


def _messages(message: list[Field]) -> Iterator[list[Field]]:
    yield message
    for _, _, value in message:
        if isinstance(value, list):
            yield from _messages(value)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            return value & ((1 << 64) - 1), at


def _as_varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
