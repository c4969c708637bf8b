from __future__ import annotations

import numpy as np
import pytest
import wire_messages as messages
from hypothesis import given, settings
from hypothesis import strategies as st

from tftracer.errors import FormatError
from tftracer.trace.decode import message_spans, wire

noise = st.one_of(
    messages.nodes,
    st.binary(max_size=200).map(lambda data: messages.message(1, data)),  # a name that holds anything
    st.sampled_from([b"\x12\x02\x0a\x00", b"\x12\x80\x01\x0a" * 9, b"\x12\x04\x0a\x02\x12\x02"]).map(
        lambda d: messages.message(1, d)
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(noise, messages.others), max_size=30))
def test_the_chain_is_what_reading_field_by_field_gives(parts: list[tuple[bytes, bytes]]) -> None:
    raw = b"xyz" + b"".join(messages.message(2, node) + other for node, other in parts) + b"tail"
    low, high = 3, len(raw) - 4
    fields = list(wire.fields(raw, low, high))
    wanted = [(field.offset, field.offset + field.size) for field in fields if field.number == 2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_spans, "SMALL", 0)
        patch.setattr(message_spans, "BLOCK", 64)
        spans_read = message_spans.node_spans(raw, low, high)
    spans = list(zip(np.concatenate([[], *spans_read.starts]).tolist(), np.concatenate([[], *spans_read.ends]).tolist()))
    assert spans == wanted
    assert spans_read.others == [field for field in fields if field.number != 2]
    assert spans_read.nodes == len(wanted)


stats = st.one_of(
    st.builds(lambda key, value: messages.number(1, key) + messages.number(4, value), st.integers(0, 300), st.integers(0, 40)),
    st.builds(lambda data: messages.number(1, 5) + messages.message(5, data), st.binary(max_size=20)),
    st.sampled_from([b"\x08\x81\x10\x10", b"\x22\x05\x08\x01\x10\x02\x18"]),  # as an event begins
)
profile_events = st.builds(
    lambda kind, start, with_start, length, told: (
        messages.number(1, kind)
        + (messages.number(2, start) if with_start else b"")
        + messages.number(3, length)
        + b"".join(messages.message(4, stat) for stat in told)
    ),
    st.integers(0, 1 << 22),
    st.integers(0, 1 << 40),
    st.booleans(),
    st.integers(0, 1 << 20),
    st.lists(stats, max_size=5),
)
line_fields = st.one_of(
    st.just(b""), st.builds(messages.number, st.just(3), st.integers(0, 99)), st.builds(messages.message, st.just(2), st.binary())
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.one_of(profile_events, st.binary(max_size=9)), line_fields), max_size=30))
def test_events_are_what_reading_field_by_field_gives(parts: list[tuple[bytes, bytes]]) -> None:
    raw = b"xyz" + b"".join(messages.message(4, event) + other for event, other in parts) + b"tail"
    low, high = 3, len(raw) - 4
    fields = list(wire.fields(raw, low, high))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_spans, "SMALL", 0)
        patch.setattr(message_spans, "BLOCK", 64)
        events = message_spans.event_spans(raw, low, high)
    spans = list(zip(np.concatenate([[], *events.starts]).tolist(), np.concatenate([[], *events.ends]).tolist()))
    assert spans == [(field.offset, field.offset + field.size) for field in fields if field.number == 4]
    assert events.others == [field for field in fields if field.number != 4]


def test_more_nodes_than_bytes_can_hold_are_refused() -> None:
    raw = messages.message(2, b"") * 70_000
    with pytest.raises(FormatError, match="more than 65536 nodes"):
        message_spans.node_spans(raw, 0, len(raw))
