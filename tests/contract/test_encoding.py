"""Bodies: what is encoded in pieces is what would have been encoded at once."""

from __future__ import annotations

import json
import zlib
from typing import Any

import msgpack
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tftracer.contract.encoding import (
    COMPRESS_FROM,
    PIECE_BYTES,
    ROWS,
    WRITE_BYTES,
    accepted_encoding,
    encode,
    joined,
    json_pieces,
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=10
)
LONG = st.builds(lambda value, n: [value] * n, VALUES, st.integers(ROWS - 1, 3 * ROWS + 1))
MESSAGES = st.dictionaries(st.text(), VALUES | LONG, max_size=5)


@given(MESSAGES)
def test_json_is_what_went_in(message: dict[str, Any]) -> None:
    assert json.loads(b"".join(encode(message, False, "").chunks)) == message


@given(MESSAGES)
def test_msgpack_is_what_went_in(message: dict[str, Any]) -> None:
    assert msgpack.unpackb(b"".join(encode(message, True, "").chunks), strict_map_key=False) == message


def test_json_has_null_for_what_it_cannot_say() -> None:
    message = {"a": float("nan"), "b": [float("inf"), 1.0], "c": {"dtype": "f4", "data": b"\0\0\0\0"}}
    assert json.loads(b"".join(encode(message, False, "").chunks)) == {"a": None, "b": [None, 1.0], "c": None}


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_a_large_body_is_compressed_and_comes_back(encoding: str) -> None:
    message = {"data": bytes(range(256)) * (COMPRESS_FROM // 64)}
    body = encode(message, True, encoding)
    packed = b"".join(body.chunks)
    assert body.encoding == encoding
    assert body.size == len(packed) < COMPRESS_FROM
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(packed) if encoding == "zstd" else zlib.decompress(packed, 31)
    assert msgpack.unpackb(plain) == message


def test_a_small_body_is_sent_as_it_is() -> None:
    assert encode({"a": 1}, True, "zstd").encoding == ""


@given(st.lists(st.binary(max_size=50)), st.integers(1, 40))
def test_chunks_hold_the_same_bytes(pieces: list[bytes], size: int) -> None:
    chunks = list(joined(pieces, size))
    assert b"".join(chunks) == b"".join(pieces)
    assert all(0 < len(chunk) < 2 * size for chunk in chunks)


def test_a_list_of_large_rows_is_encoded_in_small_pieces() -> None:
    message = {"stalls": [{"text": "x" * 2000, "number": number} for number in range(600)]}
    pieces = list(json_pieces(message))
    assert (
        json.loads(b"".join(pieces)) == message and max(map(len, pieces)) <= PIECE_BYTES + 2100
    )  # a comma, and a row that is a little longer


def test_chunks_are_small_enough_to_be_sent_one_by_one() -> None:
    body = encode({"data": b"x" * (5 * WRITE_BYTES)}, True, "")
    assert max(map(len, body.chunks)) <= 2 * WRITE_BYTES


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate", "gzip"),
        ("gzip;q=1.0, zstd;q=0", "gzip"),
        ("GZIP", "gzip"),
        ("br", ""),
        ("", ""),
        ("identity;q=0,*;q=0", ""),
    ],
)
def test_the_encoding_is_one_that_the_client_names(header: str, expected: str) -> None:
    assert accepted_encoding(header) == expected
