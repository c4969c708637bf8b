from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.export.deflated import Deflated


@given(st.lists(st.tuples(st.binary(max_size=3_000), st.booleans()), max_size=12))
def test_the_parts_are_one_stream(parts: list[tuple[bytes, bool]]) -> None:
    with Deflated() as deflated:
        for part, dense in parts:
            deflated.add(part, dense)
        stream = deflated.stream()
    assert zlib.decompress(stream) == b"".join(part for part, _ in parts)


def test_what_repeats_is_made_short() -> None:
    with Deflated() as deflated:
        deflated.add(b"layer/MatMul" * 10_000)
        assert len(deflated.stream()) < 2_000


def test_an_error_between_the_parts_leaves_no_thread() -> None:
    deflated = Deflated()
    with pytest.raises(RuntimeError, match="between"), deflated:
        deflated.add(b"x")
        raise RuntimeError("between")
    with pytest.raises(RuntimeError, match="shutdown"):
        deflated.add(b"y")
