"""The graph of a profiled step, from the planes that tftracer adds: the partition graphs, or the functions' definitions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.executed_graph import Expansion, merged_partitions
from tftracer.trace.decode.function_graph import inlined, without_numbers
from tftracer.trace.decode.profile_host import TF_DATA
from tftracer.trace.decode.xplane_reader import Plane, decoded
from tftracer.trace.model import DeviceKind, Trace

#: Type of the messages in a plane of definitions.
LIBRARY = "FunctionDefLibrary"


def graph_of_definitions(plane: Plane, trace: Trace) -> bytes:
    """Serialize the GraphDef of the nodes that ran, with the trace's names and devices; b"" if the plane cannot be read."""
    expansion, ran = _expansion_of(plane), executed_ops(trace, without_numbers)
    graphs = [inlined(library, name, ran, expansion).SerializeToString() for name, library in _messages(plane, LIBRARY)]
    return b"".join(graphs)  # concatenated protobuf messages are merged when they are read


def graph_of_partitions(plane: Plane, trace: Trace) -> bytes:
    """Serialize the GraphDef of the nodes that ran, from the partition graphs."""
    return bytes(merged_partitions(partition_graphs(plane), executed_ops(trace, str), _expansion_of(plane)).SerializeToString())


def _expansion_of(plane: Plane) -> Expansion:
    return Expansion(sum(len(metadata.content) for metadata in plane.metadata.values()))


def partition_graphs(plane: Plane) -> list[Any]:
    """Return the GraphDefs that can be read."""
    return [graph for _, run in _messages(plane, "RunMetadata") for graph in run.partition_graphs]


def _messages(plane: Plane, kind: str) -> list[tuple[str, Any]]:
    """Return (name, message) of those in a plane that can be read. ``kind``: the type of the messages."""
    messages = []
    for metadata in plane.metadata.values():
        with suppress(DecodeError):
            messages.append((decoded(metadata.name), message_class(kind).FromString(metadata.content)))
    return messages


def names_of_ops(partitions: Plane | None, definitions: Plane | None) -> frozenset[str]:
    """Return the names of all ops that the step may run; none if not known. Ops of functions that it calls have their names in
    these functions."""
    if partitions is not None:
        nodes = [node for graph in partition_graphs(partitions) for node in graph.node]
        values = (value for node in nodes for value in node.attr.values())
        if any(value.HasField("func") or value.list.func for value in values):
            return frozenset()  # partition graphs lack the ops of called functions
        return frozenset(node.name for node in nodes)
    libraries = [library for _, library in _messages(definitions, LIBRARY)] if definitions is not None else []
    return frozenset(node.name for library in libraries for function in library.function for node in function.node_def)


def executed_ops(trace: Trace, key_of: Callable[[str], str]) -> dict[str, tuple[str, str]]:
    """Return ``key_of(name)`` -> (name, device) of the host's ops and launches."""
    kinds = (DeviceKind.CPU, DeviceKind.GPU)
    on_host = trace.on_devices_where(lambda device: device.kind in kinds and device.name != TF_DATA)
    rows = np.flatnonzero(on_host & trace.counted)
    pairs = distinct(trace.device[rows].astype(np.int64) << 32 | trace.name[rows])
    op_by_key: dict[str, tuple[str, str]] = {}
    for pair in pairs.tolist():
        name = trace.names[pair & 0xFFFFFFFF]
        op_by_key.setdefault(key_of(name), (name, trace.devices[pair >> 32].name))
    return op_by_key
