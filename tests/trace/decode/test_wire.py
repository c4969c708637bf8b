from __future__ import annotations

import numpy as np
import pytest
import wire_messages as messages
from hypothesis import given
from hypothesis import strategies as st

from tftracer.errors import FormatError, TruncatedError
from tftracer.trace.arrays.window import Window
from tftracer.trace.decode import wire

numbers = st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 300), st.integers((1 << 55), (1 << 57)))


@given(st.lists(numbers, min_size=1, max_size=40))
def test_varints_of_all_lengths(values: list[int]) -> None:
    encoded = [messages.varint(value) for value in values]
    raw = b"".join(encoded)
    sizes = [len(part) for part in encoded]
    at = np.cumsum([0, *sizes[:-1]])
    value, size = wire.read_varints(Window(raw, 0, len(raw)), at)
    assert (value.tolist(), size.tolist()) == (values, sizes)
    assert [wire.scalar_varint(raw, place, len(raw))[0] for place in at.tolist()] == values


def test_a_number_that_does_not_end() -> None:
    raw = b"\xff" * 12
    assert wire.read_varints(Window(raw, 0, len(raw)), np.array([0]))[1].tolist() == [11]
    with pytest.raises(FormatError, match="Byte 0: a number that does not end"):
        wire.scalar_varint(raw, 0, len(raw))
    with pytest.raises(TruncatedError, match="Byte 5: "):
        wire.scalar_varint(raw, 0, 5)


@given(st.lists(messages.fields, max_size=12))
def test_many_messages_at_once_read_as_one_by_one(parts: list[messages.Field]) -> None:
    raw = b"".join(data for _, data in parts)
    one = [(f.number, f.wire, f.offset, f.size) for f in wire.fields(raw, 0, len(raw)) if f.wire != wire.GROUP]
    window = Window(b"\n" + raw + raw, 1, 1 + 2 * len(raw))
    start = np.array([0, len(raw)])
    read: list[list[tuple[int, int, int, int]]] = [[], []]
    for fields in wire.walk(window, start, start + len(raw)):
        for row, number, kind, _, offset, size in zip(*(column.tolist() for column in fields)):
            if kind != wire.GROUP:
                read[row].append((number, kind, offset - int(start[row]), size))
    placed = [(n, w, o if w in (wire.VARINT, wire.LEN) else -1, s) for n, w, o, s in one]
    for rows in read:
        assert [(n, w, o if w in (wire.VARINT, wire.LEN) else -1, s) for n, w, o, s in rows] == placed


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"\x00\x01", "Byte 0: no field begins here"),
        (b"\x0a\x05ab", "Byte 0: a field reaches|Byte 1: a field reaches"),
        (b"\x0f", "Byte 1: an unknown wire type"),
        (b"\x0b\x10\x01", "a group that does not end"),
        (b"\x0b\x14", "the end of another group"),
    ],
)
def test_damage_is_named_with_its_byte(raw: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        list(wire.fields(raw, 0, len(raw)))
    with pytest.raises(FormatError, match=r"Byte \d+"):
        list(wire.walk(Window(raw, 0, len(raw)), np.array([0]), np.array([len(raw)])))
