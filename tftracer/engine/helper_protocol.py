"""The protocol between a training process and its helper: frames on a socket pair.

A frame is a kind (one byte), a length (eight bytes, big-endian) and a payload of that length: a message (msgpack) or raw data.
A request is one message, followed by one data frame for each attached trace. A reply is any number of data frames, followed by
one message. Data is never copied into a message, because that would hold the interpreter's lock.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

import msgpack

HEAD = struct.Struct(">cQ")
MESSAGE, DATA = b"m", b"d"
#: Maximum length of a frame; longer frames are rejected.
MAX_BYTES = 16 << 30
#: A payload that is skipped is read in parts of this size.
SKIP_BYTES = 1 << 16
#: A training script may have restored the default action of SIGPIPE. Writing to a helper that has ended must not end the
#: training.
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)


def send(connection: socket.socket, kind: bytes, payload: Any, deadline: float | None = None) -> None:
    """Send a frame. ``deadline``: a time of the monotonic clock, after which TimeoutError is raised."""
    data = msgpack.packb(payload, use_bin_type=True) if kind == MESSAGE else payload
    for part in (HEAD.pack(kind, len(data)), data):
        _set_timeout(connection, deadline)
        connection.sendall(part, NO_SIGNAL)


def receive(connection: socket.socket, deadline: float | None = None) -> tuple[bytes, Any]:
    """Return (kind, payload) of the next frame.

    Raises EOFError if the connection is closed or the frame is invalid, and MemoryError if there is not enough memory for the
    payload, which is then skipped.
    """
    kind, size = HEAD.unpack(_receive_exactly(connection, HEAD.size, deadline))
    if kind not in (MESSAGE, DATA) or size > MAX_BYTES:
        raise EOFError("invalid frame")
    data = _receive_exactly(connection, size, deadline)
    return kind, msgpack.unpackb(data, strict_map_key=False) if kind == MESSAGE else data


def _receive_exactly(connection: socket.socket, size: int, deadline: float | None) -> bytearray:
    try:
        data = bytearray(size)
    except MemoryError:
        _skip(connection, size, deadline)
        raise
    view = memoryview(data)
    while len(view):
        _set_timeout(connection, deadline)
        received = connection.recv_into(view)
        if not received:
            raise EOFError("the connection is closed")
        view = view[received:]
    return data


def _skip(connection: socket.socket, size: int, deadline: float | None) -> None:
    """Skip a payload, so that the next frame can be read."""
    while size:
        size -= len(_receive_exactly(connection, min(size, SKIP_BYTES), deadline))


def _set_timeout(connection: socket.socket, deadline: float | None) -> None:
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise socket.timeout("timed out")
    connection.settimeout(left)
