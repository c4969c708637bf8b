"""Reads RunMetadata and StepStats in the forms in which users save them: serialized, as protobuf text, or as JSON (one or a
list)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tftracer.errors import FormatError, TruncatedError
from tftracer.importers.cut_imports import check_end, cut_short, is_cut_json, is_cut_text
from tftracer.importers.imported import MAX_TRACES, Imported, imported_traces
from tftracer.trace.decode import protobuf_kinds, wire
from tftracer.trace.decode.descriptors import message_class

_HEAD = 4096  # number of characters that are read to recognize the kind
MAX_FIELDS = 100_000
_FIELDS = frozenset({1, 2, 3, 4, 5})  # step_stats, cost_graph, partition_graphs, function_graphs, session_metadata
_NAMES = "step_stats|cost_graph|partition_graphs|function_graphs|session_metadata"
_JSON_NAMES = "stepStats|costGraph|partitionGraphs|functionGraphs|sessionMetadata"
_TEXT = re.compile(rf"\s*(?:#[^\n]*\n\s*)*({_NAMES}|dev_stats)\s*[:{{]".encode())
_JSON = re.compile(rf'(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{{\s*"(?:{_NAMES}|{_JSON_NAMES}|dev_?[sS]tats)"\s*:'.encode("latin1"))


def looks_like_text(head: bytes) -> bool:
    return _TEXT.match(head) is not None


def looks_like_json(head: bytes) -> bool:
    return _JSON.match(head) is not None


def from_binary(data: bytes) -> Imported | None:
    """Read serialized bytes; None if they are neither a RunMetadata nor a StepStats.

    Raises ``TruncatedError`` if they are cut short.
    """
    kind = protobuf_kinds.kind_of(data)
    if kind == protobuf_kinds.STEP_STATS:
        check_end(data, kind)
        return imported_traces("StepStats", [wrapped(data)])
    if kind != protobuf_kinds.RUN_METADATA:
        return None
    count = 0
    try:
        for field in wire.fields(data, 0, len(data)):
            count += 1
            if field.number not in _FIELDS or field.wire != wire.LEN or count > MAX_FIELDS:
                return None
    except TruncatedError as error:
        raise cut_short(kind) from error
    except FormatError as error:
        raise FormatError(f"this is a RunMetadata that is broken: {error}") from error
    return imported_traces("RunMetadata", [data])


def wrapped(step_stats: bytes) -> bytes:
    """Wrap a serialized StepStats in a RunMetadata."""
    return wire.message_field(1, step_stats)


def from_text(text: str) -> Imported:
    """Read protobuf's text format, ``.pbtxt``; fields that are newer than the shipped descriptors are left out."""
    from google.protobuf import text_format

    first = _TEXT.match(text[:_HEAD].encode())
    kind = "StepStats" if first and first[1] == b"dev_stats" else "RunMetadata"
    message = message_class(kind)()
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except (text_format.ParseError, ValueError, RecursionError, OverflowError) as error:
        if isinstance(error, text_format.ParseError) and is_cut_text(error, text):
            raise cut_short(f"a {kind} in protobuf's text format") from error
        raise FormatError(f"this is no {kind} in protobuf's text format: {str(error)[:200]}") from error
    return imported_traces(f"{kind} text", [_serialized(message, kind)])


def from_json(text: str) -> Imported:
    """Read the output of ``MessageToJson`` for a RunMetadata or a StepStats, a list of these, or several such documents."""
    try:
        values = list(_documents(text.strip("\ufeff \t\r\n")))
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and is_cut_json(error):
            raise cut_short("a RunMetadata as JSON") from error
        raise FormatError(f"this is no RunMetadata as JSON: {str(error)[:200]}") from error
    entries = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
    if len(entries) > MAX_TRACES:
        raise FormatError(f"the JSON holds more than {MAX_TRACES} traces")
    return imported_traces("RunMetadata JSON", [_from_object(entry) for entry in entries])


def _documents(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 0
    while at < len(text) or at == 0:
        value, at = decoder.raw_decode(text, at)
        yield value
        while text[at : at + 1].isspace():
            at += 1


def _from_object(entry: Any) -> bytes:
    from google.protobuf import json_format

    if not isinstance(entry, dict):
        raise FormatError("the JSON's list holds something that is no RunMetadata")
    kind = "StepStats" if "devStats" in entry or "dev_stats" in entry else "RunMetadata"
    message = message_class(kind)()
    try:
        json_format.ParseDict(entry, message, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise FormatError(f"this is no {kind} as JSON: {str(error)[:200]}") from error
    return _serialized(message, kind)


def _serialized(message: Any, kind: str) -> bytes:
    raw = bytes(message.SerializePartialToString())
    return wrapped(raw) if kind == "StepStats" else raw
