from __future__ import annotations

import numpy as np
import pytest
import wire_messages as messages
from hypothesis import given, settings
from hypothesis import strategies as st

from tftracer.errors import FormatError
from tftracer.trace.decode import node_spans, wire

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
        patch.setattr(node_spans, "SMALL", 0)
        patch.setattr(node_spans, "BLOCK", 64)
        spans_read = node_spans.node_spans(raw, low, high)
    spans = list(zip(np.concatenate([[], *spans_read.starts]).tolist(), np.concatenate([[], *spans_read.ends]).tolist()))
    assert spans == wanted
    assert spans_read.others == [field for field in fields if field.number != 2]
    assert spans_read.nodes == len(wanted)


def test_more_nodes_than_bytes_can_hold_are_refused() -> None:
    raw = messages.message(2, b"") * 70_000
    with pytest.raises(FormatError, match="more than 65536 nodes"):
        node_spans.node_spans(raw, 0, len(raw))
