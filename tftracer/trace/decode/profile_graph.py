"""The graph of a profiled step, from the planes that tftracer adds: the partition graphs, or the functions' definitions."""

from __future__ import annotations

from collections.abc import Callable
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


def graph_of_definitions(plane: Plane, trace: Trace) -> bytes:
    """Serialize the GraphDef of the nodes that ran, with the trace's names and devices; b"" if the plane cannot be read."""
    expansion = _expansion_of(plane)
    ran, graphs = executed_ops(trace, without_numbers), []
    for metadata in plane.metadata.values():
        try:
            library = message_class("FunctionDefLibrary").FromString(metadata.content)
        except DecodeError:
            continue
        graphs.append(inlined(library, decoded(metadata.name), ran, expansion).SerializeToString())
    return b"".join(graphs)  # concatenated protobuf messages are merged when they are read


def graph_of_partitions(plane: Plane, trace: Trace) -> bytes:
    """Serialize the GraphDef of the nodes that ran, from the partition graphs."""
    return bytes(merged_partitions(partition_graphs(plane), executed_ops(trace, str), _expansion_of(plane)).SerializeToString())


def _expansion_of(plane: Plane) -> Expansion:
    return Expansion(sum(len(metadata.content) for metadata in plane.metadata.values()))


def partition_graphs(plane: Plane) -> list[Any]:
    """Return the GraphDefs that can be read."""
    graphs: list[Any] = []
    for metadata in plane.metadata.values():
        try:
            graphs += message_class("RunMetadata").FromString(metadata.content).partition_graphs
        except DecodeError:
            continue
    return graphs


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
