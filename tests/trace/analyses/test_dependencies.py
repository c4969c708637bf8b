from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import CPU, PS, WORKER, N, make_trace, received

from tftracer.trace.analyses.dependencies import Graph, dependencies
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.labels import parse_input, parse_label
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.model import Content, Span, Trace

DATA = Path(__file__).parents[2] / "data"


def edges(graph: Graph) -> list[tuple[int, int]]:
    return sorted(zip(graph.producer.tolist(), graph.consumer.tolist()))


def obvious_edges(trace: Trace) -> list[tuple[int, int]]:
    """For each execution and each input of its label: the last execution of that name that had ended, or had started."""
    pairs = set()
    for i in range(trace.n):
        for text in set(parse_label(trace.labels[trace.label[i]]).inputs):
            name = parse_input(text).name
            mine = [j for j in range(trace.n) if trace.names[trace.name[j]] == name and trace.device[j] == trace.device[i]]
            mine = [j for j in mine if name != trace.names[trace.name[i]]]
            ended = [j for j in mine if trace.end[j] <= trace.start[i]]
            started = [j for j in mine if trace.start[j] < trace.start[i]]
            if ended:
                pairs.add((max(ended, key=lambda j: (trace.end[j], j)), i))
            elif started:
                pairs.add((max(started, key=lambda j: (trace.start[j], j)), i))
    return sorted(pairs)


node = st.builds(
    lambda name, inputs, start, length, device: N(name, "Op", start, start + length, device, inputs=tuple(inputs)),
    st.sampled_from("abcdef"),
    st.lists(st.sampled_from(["a", "b", "c:1", "^d", "e", "missing"]), max_size=3),
    st.integers(0, 50),
    st.integers(0, 20),
    st.sampled_from([CPU, CPU, PS]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(node, min_size=1, max_size=25))
def test_each_execution_reads_the_latest_one_that_had_ended(nodes: list[N]) -> None:
    labels: dict[tuple[str, str], N] = {}  # a name is one op with one set of inputs, and on one device
    for n in nodes:
        first = labels.setdefault((n.name, ""), n)
        n.inputs, n.device = first.inputs, first.device
    trace = make_trace(nodes)
    here = [(a, b) for a, b in edges(dependencies(trace)) if trace.device[a] == trace.device[b]]
    assert sorted(set(here)) == obvious_edges(trace)


def test_slots_and_control_edges() -> None:
    graph = dependencies(make_trace([N("a", "Split", 0, 5), N("b", "Op", 6, 7, inputs=("a:2", "^a"))]))
    rows = zip(graph.producer.tolist(), graph.consumer.tolist(), graph.slot.tolist(), graph.control.tolist())
    assert sorted(rows) == [(0, 1, -1, True), (0, 1, 2, False)]
    assert (graph.inputs_of(1).tolist(), graph.consumers_of(0).tolist()) == ([0, 0], [1, 1])
    assert (graph.inputs_of(0).tolist(), graph.source) == ([], "labels")


def test_a_loop_has_no_cycle_and_a_merge_reads_one_input() -> None:
    nodes = [N("enter", "Enter", 0, 1)]
    for turn in range(3):
        at = 10 * turn + 2
        nodes += [N("merge", "Merge", at, at + 1, inputs=("enter", "next")), N("body", "Tanh", at + 2, at + 3, inputs=("merge",))]
        nodes += [N("next", "NextIteration", at + 4, at + 5, inputs=("body",))]
    graph = dependencies(make_trace(nodes))
    assert edges(graph) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]


def test_a_loop_within_one_instant_has_no_cycle() -> None:
    nodes = [N("merge", "Merge", 5, 5, inputs=("next",)), N("next", "NextIteration", 5, 5, inputs=("merge",))]
    assert edges(dependencies(make_trace(nodes))) == [(0, 1)]


def test_a_received_tensor_stands_between_producer_and_consumer() -> None:
    nodes = [
        N("w", "ReadVariableOp", 0, 5, PS),
        received("edge_7_w", 6, 20, 64),
        N("y", "MatMul", 21, 30, WORKER, inputs=("x", "w_S283")),
    ]
    graph = dependencies(make_trace(nodes))
    assert edges(graph) == [(0, 1), (1, 2)]
    assert graph.transfer.tolist() == [a == 0 for a in graph.producer.tolist()]


def test_the_sender_tells_which_output_a_received_tensor_is() -> None:
    """As TensorFlow partitions a graph: a control edge between devices is a constant that is sent."""
    tensors = {"edge_7_split": "split:1", "edge_8_split": "split/ctrl_S4", "edge_9_split": "split"}
    sender, receiver = message_class("GraphDef")(), message_class("GraphDef")()
    sender.node.add(name="split", op="Split", device=PS)
    for tensor, sent in tensors.items():
        for graph, op, inputs, device in ((sender, "_Send", [sent], PS), (receiver, "_Recv", [], WORKER)):
            made = graph.node.add(name=f"{tensor}{op}", op=op, device=device, input=inputs)
            for key, value in (("tensor_name", tensor), ("send_device", PS), ("recv_device", WORKER)):
                made.attr[key].s = value.encode()
    receiver.node.add(name="y", op="AddN", device=WORKER, input=["edge_7_split_Recv", "^edge_8_split_Recv", "edge_9_split_Recv"])
    nodes = [N("split", "Split", 0, 5, PS), *(received(tensor, 6, 20, 64) for tensor in tensors), N("y", "AddN", 21, 30, WORKER)]
    trace = make_trace(nodes)
    parts = [graph.SerializeToString() for graph in (sender, receiver)]
    trace.content = Content(b"".join(parts))
    trace.partition_graphs = [Span(0, len(parts[0])), Span(len(parts[0]), len(parts[1]))]
    graph = dependencies(trace)
    rows = zip(graph.producer.tolist(), graph.consumer.tolist(), graph.slot.tolist())
    assert sorted(rows) == [(0, 1, 1), (0, 2, -1), (0, 3, 0), (1, 4, 0), (2, 4, 0), (3, 4, 0)]
    assert graph.source == "partition_graph"


def test_without_a_recorded_transfer_the_devices_are_linked_directly() -> None:
    nodes = [N("w", "Op", 0, 5, CPU), N("y", "MatMul", 21, 30, WORKER, inputs=("w/_3",))]
    graph = dependencies(make_trace(nodes))
    assert (edges(graph), graph.transfer.tolist()) == ([(0, 1)], [True])


def test_no_inputs_no_edges() -> None:
    for nodes in ([], [N("a", "Op", 0, 1), N("b", "Op", 1, 2)]):
        graph = dependencies(make_trace(nodes))
        assert (len(graph), graph.source) == (0, "none")


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.name)
def test_real_traces_have_edges_forward_in_time(path: Path) -> None:
    trace = decode_run_metadata(path.read_bytes())
    graph = dependencies(trace)
    assert len(graph) > trace.n
    assert (trace.start[graph.producer] <= trace.start[graph.consumer]).all()
    assert not (graph.producer == graph.consumer).any()


def test_partition_graph_and_labels_agree_on_data() -> None:
    """Labels leave out control edges into constants; all else they name."""
    trace = decode_run_metadata((DATA / "dense500_tf2.15_cpu.pb").read_bytes())
    whole = dependencies(trace)
    trace.partition_graphs = []
    named = dependencies(trace)
    assert (whole.source, named.source) == ("partition_graph", "labels")

    def data(graph: Graph) -> set[tuple[int, int, int]]:
        rows = np.flatnonzero(~graph.control)
        return set(zip(*(c[rows].tolist() for c in (graph.producer, graph.consumer, graph.slot))))

    assert data(whole) == data(named)
    assert set(edges(named)) <= set(edges(whole))


def test_a_parameter_server_step_is_linked_across_devices() -> None:
    trace = decode_run_metadata((DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes())
    graph = dependencies(trace)
    assert int(graph.transfer.sum()) == 62
    assert {trace.ops[op] for op in trace.op[graph.consumer[graph.transfer]]} == {"RecvTensor"}
    tensors = trace.kind == 1
    assert all(len(graph.consumers_of(i)) and len(graph.inputs_of(i)) for i in np.flatnonzero(tensors).tolist())
