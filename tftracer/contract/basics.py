"""The parts of messages: columns, strings, errors and findings."""

from __future__ import annotations

from typing import Literal, TypedDict


class Column(TypedDict):
    """A NumPy array on the wire: little-endian, C order. dtype: u1 u2 u4 i1 i2 i4 f4 f8 (never 64-bit integers)."""

    dtype: Literal["u1", "u2", "u4", "i1", "i2", "i4", "f4", "f8"]
    data: bytes


class Strings(TypedDict):
    """Distinct strings as one UTF-8 blob; string i is at offsets[i] : offsets[i + 1]."""

    data: bytes
    offsets: Column


class ErrorBody(TypedDict):
    code: str
    message: str


class ErrorMessage(TypedDict):
    error: ErrorBody


class Finding(TypedDict):
    """Something that a trace lacks or that makes it doubtful, with its remedy."""

    code: str  # e.g. "truncated", "no_gpu_events", "no_partition_graph", "bad_times", "devices_hidden"
    severity: Literal["info", "warning", "error"]
    message: str
    remedy: str
