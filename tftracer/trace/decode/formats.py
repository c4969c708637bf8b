"""Decodes a trace in either format: RunMetadata of ``session.run``, or the profiler's XSpace."""

from __future__ import annotations

from tftracer.trace.decode.protobuf_kinds import XSPACE, kind_of
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import Trace


def is_xspace(raw: bytes) -> bool:
    return kind_of(raw) == XSPACE


def decode(raw: bytes, communication_ops: str = "") -> Trace:
    """Decode serialized RunMetadata or XSpace. Raises FormatError or TruncatedError for bytes that are neither."""
    return decode_xspace(raw, communication_ops) if is_xspace(raw) else decode_run_metadata(raw, communication_ops)
