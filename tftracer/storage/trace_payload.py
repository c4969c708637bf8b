"""A session's trace as it is passed to its decoder, which may be in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tftracer.contract.session import TraceRecord
from tftracer.storage.tftrace_format import decompress
from tftracer.trace.model import TraceContext


class TraceKey(NamedTuple):
    """Identifies a trace of a session. If a file loaded later has a trace with the same number, that trace has another key."""

    session: str
    id: int
    started_at: float
    bytes: int

    @classmethod
    def of(cls, session: str, record: TraceRecord) -> TraceKey:
        return cls(session, record["id"], record["started_at"], record["bytes"])

    @property
    def tag(self) -> str:
        return f"{self.session}-{self.id}-{self.started_at:.6f}-{self.bytes}"


class Payload(NamedTuple):
    """A trace as its session stores it."""

    data: bytes  # a zstd frame
    raw_size: int
    context: TraceContext

    def raw(self) -> bytes:
        """Return the uncompressed bytes. Raises FormatError if the frame is damaged or larger than it says."""
        return decompress(self.data, self.raw_size, "a trace") if self.raw_size else b""


LoadPayload = Callable[[TraceKey], Payload]


class Loadable(NamedTuple):
    """A trace that this process reads from the session's file."""

    raw: Callable[[], bytes]
    context: TraceContext
