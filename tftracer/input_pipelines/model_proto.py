"""Reads TensorFlow's model of a running ``tf.data`` iterator from the bytes of a ``ModelProto``
(tensorflow/core/framework/model.proto, of TensorFlow 2.17 and newer)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from tftracer.errors import FormatError
from tftracer.trace.decode.private_messages import BYTES, INT, REAL, UINT, Schema, message_classes

#: Node classes whose elements come from separate threads.
ASYNC_CLASSES = frozenset((2, 4, 6))
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
        return self.node_class in ASYNC_CLASSES


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


#: Parts of model.proto.
_SCHEMA: Schema = {
    "Model": [
        ("nodes", 1, "Entry", True),
        ("output", 2, INT, False),
        ("optimization", 5, "Optimization", False),
        ("gap_times", 6, UINT, True),
    ],
    "Entry": [("node", 2, "Node", False)],
    "Optimization": [("cpu_budget", 2, INT, False)],
    "Node": [
        ("id", 1, INT, False),
        ("name", 2, BYTES, False),
        ("buffered", 5, INT, False),
        ("elements", 8, INT, False),
        ("processing_ns", 9, INT, False),
        ("parameters", 11, "Parameter", True),
        ("inputs", 14, INT, True),
        ("node_class", 15, INT, False),
        ("ratio", 16, REAL, False),
    ],
    "Parameter": [
        ("name", 1, BYTES, False),
        ("value", 2, REAL, False),
        ("state_value", 3, REAL, False),
        ("max", 5, REAL, False),
        ("tunable", 6, INT, False),
    ],
}


@functools.lru_cache(maxsize=1)
def _message() -> Any:
    return message_classes("tftracer.tf_data", _SCHEMA)["Model"]


def read(data: bytes) -> Model:
    """Read a model. Raises FormatError if the bytes are no model."""
    try:
        model = _message().FromString(data)
    except DecodeError as error:
        raise FormatError("This is not a model of a tf.data pipeline, or it is cut.") from error
    nodes = {entry.node.id: _node(entry.node) for entry in model.nodes[:MAX_NODES]}
    if model.output not in nodes:
        raise FormatError("This model of a tf.data pipeline has no root.")
    return Model(nodes, model.output, model.optimization.cpu_budget, tuple(gap * 1e-6 for gap in model.gap_times))


def _node(node: Any) -> Node:
    # Race conditions in TensorFlow may make a count negative.
    counts = (max(count, 0) for count in (node.elements, node.processing_ns, node.buffered, node.node_class))
    elements, processing_ns, buffered, node_class = counts
    parameters = {_text(parameter.name): _parameter(parameter) for parameter in node.parameters}
    ratio = max(0.0, _usual(node.ratio))
    return Node(node.id, _text(node.name), elements, processing_ns, buffered, node_class, ratio, tuple(node.inputs), parameters)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")[:200]


def _parameter(parameter: Any) -> Parameter:
    used = _usual(parameter.state_value) or _usual(parameter.value)
    return Parameter(used, _usual(parameter.max), bool(parameter.tunable))


def _usual(number: float) -> float:
    return number if abs(number) < 1e300 else 0.0
