"""The leading fields of many protobuf messages, read together."""

from __future__ import annotations

import numpy as np
import wire_messages as messages
from hypothesis import given
from hypothesis import strategies as st

from tftracer.trace.arrays.window import Window
from tftracer.trace.decode import wire
from tftracer.trace.decode.graphdef import leading_fields


def texts(sizes: list[tuple[int, int]]) -> bytes:
    """A message of strings: (number, length) of each."""
    return b"".join(messages.varint(number << 3 | wire.LEN) + messages.varint(size) + b"x" * size for number, size in sizes)


@given(st.lists(st.lists(st.tuples(st.sampled_from([1, 2, 3, 3, 3, 4, 5, 20]), st.sampled_from([0, 1, 9, 127, 128, 300])))))
def test_the_leading_fields_of_many_messages_are_those_of_each(sizes: list[list[tuple[int, int]]]) -> None:
    """Whether they are read all together (short texts, longer ones) or, the last few, one by one."""
    encoded = [texts(one) for one in sizes]
    raw = b"".join(encoded)
    end = np.cumsum([len(part) for part in encoded], dtype=np.int64)
    start = np.concatenate([np.zeros(1, np.int64), end])[: len(end)]
    read: list[list[tuple[int, ...]]] = [[] for _ in sizes]
    for columns in leading_fields(Window(raw, 0, len(raw)), start, end):
        for row, *rest in zip(*(column.tolist() for column in columns)):
            read[row].append(tuple(rest))
    for row, one in enumerate(read):
        every = list(wire.fields(raw, int(start[row]), int(end[row])))
        leading = next((i for i, field in enumerate(every) if field.number > 4), len(every))
        assert one == [(f.number, f.wire, f.value, f.offset, f.size) for f in every[:leading]]
