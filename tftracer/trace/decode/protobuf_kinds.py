"""Recognizes the message type of a protobuf file. The bytes do not name it, and many types look like an empty RunMetadata.

Only the first fields of a message, and of its first submessage, are checked.
"""

from __future__ import annotations

import contextlib
from itertools import islice

from tftracer.errors import FormatError
from tftracer.trace.decode import wire
from tftracer.trace.decode.wire import LEN, VARINT, Field

RUN_METADATA, STEP_STATS = "a RunMetadata", "a StepStats"
XSPACE = "an XSpace of TensorFlow's profiler (.xplane.pb)"
SAVED_MODEL = "a SavedModel"
META_GRAPH = "a MetaGraphDef (the .meta file of a checkpoint)"
GRAPH = "a GraphDef"
TFPROF_PROFILE = "a profile of tfprof"
TFPROF_LOG = "tfprof's op log"
TFPROF_VIEW = "a view of tfprof (scopes, operations or code)"
PERFETTO = "a Perfetto trace"

#: What the error message says about each kind of file.
ADVICE = {
    SAVED_MODEL: "it holds a model and no times",
    META_GRAPH: "it holds a graph and no times",
    GRAPH: "it holds a graph and no times",
    TFPROF_PROFILE: "it holds sums of times; open the RunMetadata that it was made of",
    TFPROF_LOG: "it holds the ops' shapes and no times; open the RunMetadata next to it",
    TFPROF_VIEW: "it holds sums of times; open the RunMetadata that it was made of",
    PERFETTO: "ui.perfetto.dev shows it; open the session or the RunMetadata that it was made of",
}

#: Limits: fields that are checked per message; bytes of a text.
_MAX_FIELDS, _MAX_TEXT = 40, 2000


def kind_of(data: bytes) -> str:
    """Return one of the kinds above, "" for anything else."""
    top = _fields(data, 0, len(data))
    if not top:
        return ""
    if top[0].number == 1 and top[0].wire == VARINT:
        return SAVED_MODEL if any(field.number == 2 and field.wire == LEN for field in top) else ""
    messages = [field for field in top if field.number == 1 and field.wire == LEN]
    first = next((field for field in messages if field.size), next(iter(messages), None))
    if first is None:  # a RunMetadata of a step that was not traced
        return RUN_METADATA if all(2 <= field.number <= 5 and field.wire == LEN for field in top) else ""
    if _is_text(data, first):
        return TFPROF_VIEW
    return _kind_by_part(data, _fields(data, first.offset, first.offset + first.size), top)


def cut_kind_of(data: bytes) -> str:
    """Return RUN_METADATA, STEP_STATS or XSPACE for a file that ends within its first field, "" for anything else."""
    first = _first_part(data, 0)
    if first is None or first.offset + first.size <= len(data):
        return ""
    part = _fields(data, first.offset, len(data))
    texts = {field.number for field in part if _is_text(data, field)}
    if texts and _is_plane(part, texts):  # the file may end anywhere after the plane's name
        return XSPACE
    if _is_device(data, part):
        return STEP_STATS if any(field.number == 2 for field in part) else ""
    device = _first_part(data, first.offset)
    if device is None:
        return ""
    fields = _fields(data, device.offset, min(device.offset + device.size, len(data)))
    return RUN_METADATA if _is_device(data, fields) else ""


def _first_part(data: bytes, at: int) -> Field | None:
    """Return the field at ``at`` if it is a message with the number 1. The data may end before the field does."""
    if data[at : at + 1] != b"\n":
        return None
    try:
        size, offset = wire.scalar_varint(data, at + 1, len(data))
    except FormatError:
        return None
    return Field(1, LEN, size, offset, size)


def _kind_by_part(data: bytes, part: list[Field], top: list[Field]) -> str:
    """Return the kind by the fields of the first submessage (``part``) and of the message itself (``top``)."""
    if _is_device(data, part):
        return STEP_STATS
    if _is_step_stats(data, part):
        return RUN_METADATA if all(field.wire == LEN for field in top) else ""
    texts = {field.number for field in part if _is_text(data, field)}
    kinds = {(field.number, field.wire) for field in part}
    if any(field.number >= 8 for field in part):
        return PERFETTO
    if _is_plane(part, texts):
        return XSPACE
    if (1, VARINT) in kinds and 2 not in texts:
        return TFPROF_PROFILE
    if {1, 2} <= texts:
        return GRAPH
    if 1 in texts and 5 not in texts:
        return TFPROF_LOG
    return META_GRAPH if texts & {4, 5} else ""


def _is_plane(part: list[Field], texts: set[int]) -> bool:
    """Return whether the fields are those of an XPlane: an id, a name (missing if empty), and messages."""
    others = [field for field in part if field.number != 1]
    named = any(field.number == 2 for field in others)
    is_id = all(field.wire == VARINT for field in part if field.number == 1)
    return is_id and bool(others) and all(field.wire == LEN for field in others) and texts == ({2} if named else set())


def _is_step_stats(data: bytes, part: list[Field]) -> bool:
    """Return whether the fields are those of a StepStats: only a list of devices, which may be empty."""
    if not all(field.number == 1 and field.wire == LEN for field in part):
        return False
    return not part or part[0].size == 0 or _is_device(data, _fields(data, part[0].offset, part[0].offset + part[0].size))


def _is_device(data: bytes, part: list[Field]) -> bool:
    """Return whether the fields are those of a DeviceStepStats: the device's name, its nodes, and names of threads."""
    if not part or not all(field.number <= 3 and field.wire == LEN for field in part):
        return False
    if part[0].number == 1:
        one_name = all(field.number != 1 for field in part[1:])
        return one_name and _is_text(data, part[0]) and not any(_is_text(data, field) for field in part if field.number == 2)
    node = _fields(data, part[0].offset, part[0].offset + part[0].size)
    return part[0].number == 2 and bool(node) and node[0].number == 1 and _is_text(data, node[0])


def _fields(data: bytes, start: int, end: int) -> list[Field]:
    """Return the first fields of a message, up to the first invalid one."""
    fields: list[Field] = []
    with contextlib.suppress(FormatError):
        for field in islice(wire.fields(data, start, end), _MAX_FIELDS):
            fields.append(field)
    return fields


def _is_text(data: bytes, field: Field) -> bool:
    """Return whether a field holds printable text. A message does not: its first byte is a tag, a control character."""
    if field.wire != LEN or not 0 < field.size <= _MAX_TEXT:
        return False
    try:
        return data[field.offset : field.offset + field.size].decode().isprintable()
    except UnicodeDecodeError:
        return False
