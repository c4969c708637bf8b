from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wire_messages as wire
from hypothesis import given, settings
from traces import N, make_trace

from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.outputs_and_memory import decode_resources
from tftracer.trace.decode.run_metadata import decode_run_metadata

DATA = Path(__file__).parents[2] / "data"
REAL = pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.name)


def nodes_of(raw: bytes) -> list[Any]:
    step = message_class("RunMetadata").FromString(raw).step_stats
    return [node for entry in step.dev_stats for node in entry.node_stats]


def texts(codes: Any, table: StringTable) -> list[str]:
    return [table[code] for code in codes]


@REAL
def test_outputs_read_as_protobuf_reads_them(path: Path) -> None:
    raw = path.read_bytes()
    outputs = decode_resources(decode_run_metadata(raw))[0]
    columns = (outputs.node, outputs.slot, outputs.requested_bytes, outputs.allocated_bytes, outputs.ptr)
    rows = list(zip(*(c.tolist() for c in columns), texts(outputs.allocator, outputs.allocators), outputs.dtype.tolist()))
    want = []
    for i, node in enumerate(nodes_of(raw)):
        for output in node.output:
            tensor, memory = output.tensor_description, output.tensor_description.allocation_description
            sizes = (memory.requested_bytes, memory.allocated_bytes, memory.ptr)
            want.append((i, output.slot, *sizes, memory.allocator_name, tensor.dtype))
    assert rows == want


@REAL
def test_memory_reads_as_protobuf_reads_it(path: Path) -> None:
    raw = path.read_bytes()
    trace = decode_run_metadata(raw)
    memory, nodes = decode_resources(trace)[1], nodes_of(raw)
    assert memory.temp_bytes.tolist() == [node.memory_stats.temp_memory_size for node in nodes]
    assert memory.persistent_bytes.tolist() == [node.memory_stats.persistent_memory_size for node in nodes]


def test_shapes_and_types() -> None:
    raw = (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()
    trace = decode_run_metadata(raw)
    outputs = decode_resources(trace)[0]
    node = next(i for i in range(trace.n) if trace.names[trace.name[i]] == "MatMul_17")
    output = int(np.flatnonzero(outputs.node == node)[0])
    assert (outputs.shapes.texts[outputs.shape[output]], outputs.dtype_of(output)) == ("[8, 64]", "float32")
    received = int(np.flatnonzero(trace.op[outputs.node] == list(trace.ops).index("RecvTensor"))[0])
    assert (outputs.shapes.texts[outputs.shape[received]], outputs.dtype_of(received)) == ("", "")
    want = [shape_text(output.tensor_description) for node in nodes_of(raw) for output in node.output]
    assert [outputs.shapes.texts[outputs.shape[each]] for each in range(len(outputs.node))] == want


def shape_text(tensor: Any) -> str:
    if not tensor.HasField("shape") or tensor.shape.unknown_rank:
        return ""
    return f"[{', '.join('?' if dim.size < 0 else str(dim.size) for dim in tensor.shape.dim)}]"


@settings(max_examples=50, deadline=None)
@given(wire.run_metadatas)
def test_any_message_has_as_many_outputs_as_protobuf_finds(raw: bytes) -> None:
    trace = decode_run_metadata(raw)
    want = [i for i, node in enumerate(nodes_of(raw)) for _ in node.output]
    assert decode_resources(trace)[0].node.tolist() == want
    assert len(decode_resources(trace)[1].temp_bytes) == trace.n


def test_a_trace_without_raw_bytes_has_none() -> None:
    trace = make_trace([N("a", "Op", 0, 1)])
    assert len(decode_resources(trace)[0].node) == 0
    assert decode_resources(trace)[1].temp_bytes.tolist() == [0]
