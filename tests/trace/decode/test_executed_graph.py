"""Partition graphs of a function, of which only some nodes were recorded."""

from __future__ import annotations

from typing import Any

import plain_protobuf

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.executed_graph import MAX_SKIPPED, Expansion, merged_partitions, ran_and_left_out
from tftracer.trace.decode.formats import decode
from tftracer.trace.decode.static_graph import static_graph
from tftracer.trace.decode.xplane_reader import HOST, PARTITIONS_PLANE, with_plane
from tftracer.trace.model import Device, DeviceKind


def graph(*nodes: tuple[str, str, list[str]], channel: str = "") -> Any:
    made = message_class("GraphDef")()
    for name, op, inputs in nodes:
        node = made.node.add(name=name, op=op, input=inputs)
        if op in ("_Send", "_Recv"):
            node.attr["tensor_name"].s = channel.encode()
    return made


def edges(graphs: list[Any], *executed: str) -> dict[str, list[str]]:
    made = merged_partitions(graphs, {name: (name, HOST) for name in executed}, Expansion(0))
    return {node.name: list(node.input) for node in made.node}


def test_what_was_not_recorded_is_passed_over() -> None:
    given = graph(
        ("a", "MatMul", []),
        ("b", "Identity", ["a:1"]),
        ("c", "NoOp", ["^a"]),
        ("d", "Add", ["b", "^c"]),
        ("e", "Neg", ["d"]),
    )
    assert edges([given], "a", "d", "e") == {"a": [], "d": ["a:1", "^a"], "e": ["d"]}


def test_a_receive_reads_the_send_of_its_tensor() -> None:
    there = graph(("a", "MatMul", []), ("send", "_Send", ["a"]), channel="edge_1")
    other = graph(("other", "_Send", ["a"]), channel="edge_2")
    here = graph(("receive", "_Recv", []), ("b", "Add", ["receive"]), channel="edge_1")
    assert edges([there, other, here], "a", "send", "receive", "b") == {
        "a": [],
        "send": ["a"],
        "receive": ["send"],
        "b": ["receive"],
    }
    assert edges([there, other, here], "a", "b") == {"a": [], "b": ["a"]}  # neither was recorded


def test_a_result_runs_under_a_name_of_its_own() -> None:
    given = graph(("a", "Add", []), ("identity_RetVal", "_Retval", ["a"]))
    assert edges([given], "a", "identity_retval_RetVal") == {"a": [], "identity_retval_RetVal": ["a"]}


def test_a_loop_ends_and_so_does_a_long_chain() -> None:
    loop = graph(("merge", "Merge", ["enter", "next"]), ("next", "NextIteration", ["merge"]), ("b", "Add", ["merge"]))
    assert edges([loop], "b") == {"b": []}
    chain = [(str(i), "Identity", [str(i - 1)]) for i in range(1, MAX_SKIPPED + 10)]
    assert edges([graph(("0", "Add", []), *chain)], "0", chain[-1][0])[chain[-1][0]] == []


def test_graphs_that_make_no_sense_are_none() -> None:
    raw = plain_protobuf.content("convnet_tf2.21.xplane.pb")
    for content in (b"", b"\xff", message_class("RunMetadata")(partition_graphs=[{}]).SerializeToString()):
        trace = decode(with_plane(raw, PARTITIONS_PLANE, "f", content))
        assert trace.n and static_graph(trace).source == "none"


def test_an_op_of_another_device_is_found_there() -> None:
    """Of a profile the graphs of all devices are one."""
    trace = decode(plain_protobuf.content("partitioned_tf2.21.xplane.pb.xz"))
    product = next(i for i in range(trace.n) if trace.ops[trace.op[i]] == "Exp")
    before = static_graph(trace)
    trace.devices.append(Device("/device:GPU:0", "GPU 0", DeviceKind.GPU))
    trace.device[product] = len(trace.devices) - 1
    after = static_graph(trace)
    reads = [graph.producer[graph.consumer == graph.entity[product]] for graph in (before, after)]
    assert len(reads[0]) == len(reads[1]) > 0


def test_constants_and_what_depends_on_them_alone_are_not_left_out_nor_is_the_second_of_two_alike() -> None:
    given = graph(
        ("c", "Const", []),
        ("folded", "Fill", ["c", "c:0", "^a"]),
        ("a", "MatMul", ["x", "y"]),
        ("b", "MatMul", ["x", "y"]),
        ("done", "NoOp", ["^a"]),
        ("cheap", "Neg", ["a"]),
    )
    assert ran_and_left_out([given], {"a", "elsewhere"}) == ({"a"}, {"cheap"})
    assert ran_and_left_out([given], set()) == (set(), {"a", "b", "cheap"})
