"""Reads TensorFlow's model of a running ``tf.data`` iterator from the bytes of a ``ModelProto``
(tensorflow/core/framework/model.proto, of TensorFlow 2.17 and newer)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tftracer.errors import FormatError

#: Node classes whose elements come from separate threads.
ASYNC = frozenset((2, 4, 6))
MAX_NODES = 2000


class Parameter(NamedTuple):
    value: float  # the current one
    max: float
    tunable: bool  # AUTOTUNE chooses it


@dataclass(frozen=True)
class Node:
    """A stage. ``processing_ns``: its own work since its creation, in all threads, without the overhead of calling a function."""

    id: int
    name: str
    elements: int  # produced so far
    processing_ns: int
    buffered: int  # elements in its buffer now
    node_class: int
    ratio: float  # elements of its input for one output element; 0: not known
    inputs: tuple[int, ...]
    parameters: Mapping[str, Parameter]

    @property
    def is_async(self) -> bool:
        return self.node_class in ASYNC


@dataclass(frozen=True)
class Model:
    nodes: Mapping[int, Node]
    root: int
    cores: int  # number of cores that AUTOTUNE may use
    gaps_s: tuple[float, ...]  # the last 100 times between two calls of ``next``, the newest last

    @property
    def elements(self) -> int:
        return self.nodes[self.root].elements

    def progress(self) -> tuple[int, ...]:
        """Return numbers that differ between two readings of the model if the pipeline worked in between."""
        return tuple(number for node in self.nodes.values() for number in (node.elements, node.buffered))


def read(data: bytes) -> Model:
    """Read a model. Raises FormatError if the bytes are no model."""
    try:
        return _model(data)
    except (IndexError, struct.error, TypeError, ValueError, AttributeError) as error:
        raise FormatError("This is not a model of a tf.data pipeline, or it is cut.") from error


def _model(data: bytes) -> Model:
    nodes: dict[int, Node] = {}
    root = cores = 0
    gaps: list[int] = []
    for number, value in _fields(data):
        if number == 1 and len(nodes) < MAX_NODES:
            node = _node(dict(_fields(value))[2])
            nodes[node.id] = node
        elif number == 2:
            root = value
        elif number == 5:
            cores = dict(_fields(value)).get(2, 0)
        elif number == 6:
            gaps += _numbers(value)
    if root not in nodes:
        raise FormatError("This model of a tf.data pipeline has no root.")
    return Model(nodes, root, cores, tuple(gap * 1e-6 for gap in gaps))


def _node(data: bytes) -> Node:
    single_fields: dict[int, Any] = {}
    inputs: list[int] = []
    parameters: dict[str, Parameter] = {}
    for number, value in _fields(data):
        if number == 14:
            inputs += _numbers(value)
        elif number == 11:
            fields = dict(_fields(value))
            used = _double(fields.get(3)) or _double(fields.get(2))
            parameters[fields.get(1, b"").decode()] = Parameter(used, _double(fields.get(5)), bool(fields.get(6, 0)))
        else:
            single_fields[number] = value
    counts = (single_fields.get(number, 0) for number in (8, 9, 5, 15))
    elements, processing_ns, buffered, node_class = (_count(value) for value in counts)
    ratio = max(0.0, _double(single_fields.get(16)))
    name = single_fields.get(2, b"").decode()[:200]
    return Node(single_fields.get(1, 0), name, elements, processing_ns, buffered, node_class, ratio, tuple(inputs), parameters)


def _count(value: int) -> int:
    """Return the count; 0 if it is negative, which race conditions in TensorFlow may cause."""
    return 0 if value >> 63 else value


def _double(value: Any) -> float:
    number = float(struct.unpack("<d", value)[0]) if value is not None else 0.0
    return number if abs(number) < 1e300 else 0.0


def _numbers(value: Any) -> list[int]:
    """Return the numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(number)
    return numbers


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of each field: an int, or the bytes of any other type."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind, end + 1)
        if at + size > end:
            raise FormatError("This model of a tf.data pipeline is cut.")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise FormatError("This model of a tf.data pipeline holds a number that is too large.")
