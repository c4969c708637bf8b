"""How many ops of real steps find their places in the graph that goes with them."""

from __future__ import annotations

import plain_protobuf
import pytest

from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.formats import decode
from tftracer.trace.decode.xplane_reader import DEFINITIONS_PLANE, with_plane
from tftracer.trace.model import Trace, TraceContext

#: case -> (profile, function, FunctionDefLibrary)
ATTACHED = {
    "convnet 2.15": ("convnet_tf2.15.xplane.pb", "train_function_1014", "function_library_convnet_tf2.15.pb"),
    "convnet 2.21": ("convnet_tf2.21.xplane.pb", "multi_step_on_iterator_1363", "function_library_convnet_tf2.21.pb"),
    "transformer": (
        "transformer_tf2.21.xplane.pb.xz",
        "multi_step_on_iterator_35555",
        "function_library_transformer_tf2.21.pb.xz",
    ),
}
CONTROL_FLOW = ["control_flow_tf2.15.xplane.pb.xz", "control_flow_tf2.21.xplane.pb.xz"]
#: The same step with the partition graphs that ran.
PARTITIONED = ["partitioned_tf2.15.xplane.pb.xz", "partitioned_tf2.21.xplane.pb.xz"]


def attached(case: str) -> bytes:
    profile, root, library = ATTACHED[case]
    return with_plane(plain_protobuf.content(profile), DEFINITIONS_PLANE, f"__inference_{root}", plain_protobuf.content(library))


def ops_in_graph(trace: Trace) -> tuple[int, int]:
    """(ops of the step whose name is a node's of the graph, all ops of the step); neither input pipeline nor what XLA ran."""
    assert trace.load_graph is not None
    graph = {node.name for node in message_class("GraphDef").FromString(trace.load_graph()).node}
    names = [
        trace.names[trace.name[i]] for i in range(trace.n) if trace.counted[i] and trace.devices[trace.device[i]].title == "CPU"
    ]
    return sum(name in graph for name in names), len(names)


@pytest.mark.parametrize(
    ("case", "expected"), [("convnet 2.15", (212, 213)), ("convnet 2.21", (237, 237)), ("transformer", (7016, 7016))]
)
def test_ops_are_joined_to_the_functions_definition(case: str, expected: tuple[int, int]) -> None:
    assert ops_in_graph(decode(attached(case))) == expected


@pytest.mark.parametrize(
    ("name", "ops"), [(CONTROL_FLOW[0], 117), (CONTROL_FLOW[1], 28), (PARTITIONED[0], 117), (PARTITIONED[1], 28)]
)
def test_ops_of_branches_and_loops_are_joined(name: str, ops: int) -> None:
    """2.15 records the nodes that stand for a branch or a loop while it runs, too."""
    assert ops_in_graph(decode(plain_protobuf.content(name))) == (ops, ops)


def behind(answers: Answers, node: int, name: str) -> set[int]:
    """What a node reads; where the nodes of the branch and the loop themselves ran, what these read in their turn, too."""
    read = {ref["node"] for ref in answers.node(node)["inputs"]}
    if name != PARTITIONED[0]:
        return read
    passed = ("Switch", "Merge", "NextIteration", "Enter", "Exit", "Identity", "NoOp", "LoopCond")
    left = list(read)
    for one in left:  # grows
        if answers.trace.ops[answers.trace.op[one]] in passed:
            more = {ref["node"] for ref in answers.node(one)["inputs"]} - read
            read |= more
            left += more
    return read


@pytest.mark.parametrize("name", [*CONTROL_FLOW, *PARTITIONED])
def test_each_turn_of_a_loop_reads_the_turn_before(name: str) -> None:
    answers = Answers(plain_protobuf.content(name), TraceContext())
    trace = answers.trace
    assert answers.graph.source == ("partition_graph" if name in PARTITIONED else "function_graph")
    assert ("function_graph" in {finding["code"] for finding in answers.findings()}) == (name not in PARTITIONED)
    turns = sorted((int(trace.start[i]), i) for i in range(trace.n) if trace.ops[trace.op[i]] == "_MklMatMul")
    tanhs = sorted((int(trace.start[i]), i) for i in range(trace.n) if trace.ops[trace.op[i]] == "Tanh")
    assert len(turns) == len(tanhs) == 3
    for (_, product), (_, before) in zip(turns[1:], tanhs):
        assert before in behind(answers, product, name)
    (exp,) = [i for i in range(trace.n) if trace.ops[trace.op[i]] == "Exp"]
    assert tanhs[-1][1] in behind(answers, exp, name)
    (sine,) = [i for i in range(trace.n) if trace.ops[trace.op[i]] == "Sin"]
    assert sine in behind(answers, turns[0][1], name)


def test_the_optimizers_ops_have_inputs() -> None:
    answers = Answers(attached("transformer"), TraceContext())
    trace = answers.trace
    rewritten = [i for i in range(trace.n) if "AddOpsRewrite_add" in trace.names[trace.name[i]]]
    assert len(rewritten) == 24
    assert all(answers.node(i)["inputs"] and answers.node(i)["consumers"] for i in rewritten[:3])
