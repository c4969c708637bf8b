"""Encodes answers as JSON or msgpack, compressed or not, in pieces.

A piece is small, so that no call holds the GIL for long: ``json.dumps`` of 10,000 rows takes 40 ms, and a training thread would
wait for it. Runs on worker threads.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack
import zstandard

ROWS, PIECE_BYTES = 200, 1 << 16  # one piece has at most ROWS rows of a list, and as JSON about PIECE_BYTES at most
WRITE_BYTES = 1 << 18  # size of one write to the socket
#: Smaller bodies are not compressed: through a tunnel of 10 MB/s they take less than 7 ms.
COMPRESS_FROM = 1 << 16

JSON = "application/json; charset=utf-8"
MSGPACK = "application/msgpack"
ZSTD_FRAME = b"\x28\xb5\x2f\xfd"  # the first bytes of a frame; no msgpack message begins with these


@dataclass(frozen=True)
class Body:
    content_type: str
    encoding: str  # "zstd", "gzip", ""
    chunks: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.chunks))


def non_finite_to_none(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: non_finite_to_none(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [non_finite_to_none(inner) for inner in value]
    return value


def dumps(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(non_finite_to_none(value), separators=(",", ":"))


def is_column(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("data"), (bytes, memoryview))


def json_pieces(message: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield JSON. Columns are null, because only msgpack can carry them."""
    yield b"{"
    for position, (key, value) in enumerate(message.items()):
        yield ("," if position else "").encode() + dumps(key).encode() + b":"
        if isinstance(value, list) and len(value) > ROWS:
            yield from _json_rows(value)
        else:
            yield dumps(None if is_column(value) else value).encode()
    yield b"}"


def _json_rows(rows: list[Any]) -> Iterator[bytes]:
    count = max(1, min(ROWS, PIECE_BYTES // len(dumps(rows[0]))))
    for first in range(0, len(rows), count):
        yield (("," if first else "[") + dumps(rows[first : first + count])[1:-1]).encode()
    yield b"]"


def msgpack_pieces(message: Mapping[str, Any]) -> Iterator[bytes]:
    packer = msgpack.Packer()
    yield packer.pack_map_header(len(message))
    for key, value in message.items():
        yield packer.pack(key)
        if isinstance(value, list) and len(value) > ROWS:
            yield packer.pack_array_header(len(value))
            for first in range(0, len(value), ROWS):
                yield b"".join([packer.pack(row) for row in value[first : first + ROWS]])
        else:
            yield packer.pack(value)


def joined(pieces: Iterable[bytes], size: int = WRITE_BYTES) -> Iterator[bytes]:
    """Join small pieces and cut large ones, into chunks of about ``size`` bytes."""
    waiting = bytearray()
    for piece in pieces:
        for at in range(0, len(piece), size):
            waiting += piece[at : at + size]
            if len(waiting) >= size:
                yield bytes(waiting)
                waiting.clear()
    if waiting:
        yield bytes(waiting)


def accepted_encoding(accept: str) -> str:
    """Return the best supported encoding in an Accept-Encoding header; "" for none."""
    names = set()
    for entry in accept.lower().split(","):
        name, _, parameters = entry.partition(";")
        if parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}:
            names.add(name.strip())
    return "zstd" if "zstd" in names else "gzip" if "gzip" in names else ""


def compressed(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Compress without holding the GIL. The level is 1, because higher levels save little and take much longer (measured with a
    trace of 96,108 nodes)."""
    if encoding == "zstd":
        compressor: Any = zstandard.ZstdCompressor(level=1).compressobj()
    else:
        compressor = zlib.compressobj(1, wbits=31)
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()


def encode(message: Mapping[str, Any], packed: bool, encoding: str) -> Body:
    """Encode a message.

    ``packed``: as msgpack, else JSON. ``encoding``: one that the client accepts; used if the body is large enough.
    """
    chunks = tuple(joined(msgpack_pieces(message) if packed else json_pieces(message)))
    if sum(map(len, chunks)) < COMPRESS_FROM:
        encoding = ""
    if encoding:
        chunks = tuple(joined(compressed(chunks, encoding)))
    return Body(MSGPACK if packed else JSON, encoding, chunks)


def unpacked(data: bytes) -> Any:
    """Decode msgpack from ``encode``, compressed with zstd or not. Not for untrusted data, because the size is not limited."""
    if data.startswith(ZSTD_FRAME):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return msgpack.unpackb(data)
