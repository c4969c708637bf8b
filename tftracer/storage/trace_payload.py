"""A session's trace on its way to whoever decodes it, which may be another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tftracer.contract.session import TraceRecord
from tftracer.storage.tftrace import decompress
from tftracer.trace.model import TraceContext


class TraceKey(NamedTuple):
    """One trace of one session; differs when a file loaded later brings another trace with the same number."""

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
    """A trace as its session keeps it."""

    data: bytes
    compressed: bool  # data is a zstd frame
    raw_size: int
    context: TraceContext

    def raw(self) -> bytes:
        """FormatError for a frame that is damaged or larger than it says."""
        return decompress(self.data, self.raw_size, "a trace") if self.compressed and self.raw_size else self.data


LoadPayload = Callable[[TraceKey], Payload]


class Loadable(NamedTuple):
    """A trace that this process reads from the session's own file."""

    raw: Callable[[], bytes]
    context: TraceContext
