"""Critical path and slack: against recursive versions on random graphs, and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import wire_messages as wire
from hypothesis import assume, given
from hypothesis import strategies as st
from traces import CPU, GPU, PS, STREAM, STREAM_ALL, N, make_graph, make_trace

from tftracer.contract.trace import CriticalPath
from tftracer.trace.analyses.critical_path import critical_path, edges_of, path_of, slack_of
from tftracer.trace.analyses.waits_for_threads import NEXT_OP_NS, waits_for_threads
from tftracer.trace.answers import Answers
from tftracer.trace.model import UNKNOWN_TIME, NodeKind, Trace, TraceContext


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[N], list[tuple[int, int]]]:
    """Nodes at random times, and edges of which some lead back in time or in a circle."""
    nodes = []
    for i in range(draw(st.integers(1, 10))):
        start = draw(st.integers(0, 20)) if i else 0
        op = draw(st.sampled_from(["A", "B", "IteratorGetNext"]))
        scheduled = draw(st.sampled_from([UNKNOWN_TIME, *range(start + 1)]))
        device = draw(st.sampled_from([CPU, CPU, PS]))
        nodes.append(N(f"n{i}", op, start, start + draw(st.integers(0, 8)), device, scheduled=scheduled))
    index = st.integers(0, len(nodes) - 1)
    return nodes, draw(st.lists(st.tuples(index, index), max_size=20))


def before(nodes: list[N], p: int, c: int) -> bool:
    return (nodes[p].end, nodes[p].start, p) < (nodes[c].end, nodes[c].start, c)


def thread_edges(nodes: list[N]) -> list[tuple[int, int]]:
    waited, previous = waits_for_threads(make_trace(nodes))
    return list(zip(previous.tolist(), waited.tolist()))


def naive_path(nodes: list[N], edges: list[tuple[int, int]]) -> list[int]:
    key = lambda i: (nodes[i].end, nodes[i].start, i)  # noqa: E731
    path = [max(range(len(nodes)), key=key)]
    while True:
        c = path[0]
        predecessors = [p for p, to in edges if to == c and before(nodes, p, c)]
        predecessors = predecessors or naive_ended_before(nodes, c)
        if not predecessors:
            return path
        path.insert(0, max(predecessors, key=key))


def naive_ended_before(nodes: list[N], c: int) -> list[int]:
    """The op that ended last on the device before c was scheduled, else anywhere, else anywhere before it started."""
    start, scheduled = nodes[c].start, nodes[c].scheduled
    ready = start if scheduled == UNKNOWN_TIME or start - scheduled > NEXT_OP_NS else scheduled
    for same, moment in ((True, ready), (False, ready), (False, start)):
        ended = [p for p, n in enumerate(nodes) if n.end <= moment and (n.device == nodes[c].device or not same)]
        last = max(ended, key=lambda p: (nodes[p].end, nodes[p].start, p), default=c)
        if before(nodes, last, c):
            return [last]
    return []


def naive_slack(nodes: list[N], edges: list[tuple[int, int]]) -> list[int]:
    step = max(n.end for n in nodes)

    def latest(i: int) -> int:
        consumers = [c for p, c in edges if p == i and before(nodes, p, c)]
        return min([latest(c) - (nodes[c].end - nodes[c].start) for c in consumers], default=step)

    return [max(0, min(latest(i), step) - nodes[i].end) for i in range(len(nodes))]


@given(graphs())
def test_equal_to_the_recursive_definition(case: tuple[list[N], list[tuple[int, int]]]) -> None:
    nodes, pairs = case
    trace = make_trace(nodes)
    edges = edges_of(trace, make_graph(pairs))  # type: ignore[arg-type]
    pairs = pairs + thread_edges(nodes)
    assert path_of(trace, edges).node.tolist() == naive_path(nodes, pairs)
    assert slack_of(trace, edges).tolist() == naive_slack(nodes, pairs)


def check_path(trace: Trace, answer: CriticalPath, edges: dict[str, set[tuple[int, int]]]) -> None:
    """In time order, each step after one that its reason names, from the first op to the last, without a moment unaccounted."""
    steps = answer["steps"]
    assert [step["reason"] == "start" for step in steps] == [True] + [False] * (len(steps) - 1)
    ends = [0.0, *(step["end_ns"] for step in steps)]
    assert ends == sorted(ends) and ends[-1] == trace.duration_ns == answer["length_ns"]
    for earlier, later in zip(steps, steps[1:]):
        pair = (earlier["node"], later["node"])
        if later["reason"] == "time":
            assert earlier["end_ns"] <= later["start_ns"]
            assert not any(pair in kind for kind in edges.values())
        else:
            assert pair in edges[later["reason"]]
    assert not np.any(trace.counted & (trace.end <= steps[0]["start_ns"]) & (np.arange(trace.n) != steps[0]["node"]))
    gaps = sum(step["wait_ns"] for step in steps)
    assert answer["busy_ns"] + gaps == trace.duration_ns
    assert sum(row["self_ns"] for row in answer["by_op"]) == answer["busy_ns"]


@given(graphs())
def test_the_path_is_connected_and_accounts_for_every_moment(case: tuple[list[N], list[tuple[int, int]]]) -> None:
    nodes, pairs = case
    assume(all(n.end > n.start for n in nodes))
    trace = make_trace(nodes)
    answer = critical_path(trace, make_graph(pairs), [])  # type: ignore[arg-type]
    check_path(trace, answer, {"op": set(pairs), "thread": set(thread_edges(nodes))})


DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("path", [*sorted(DATA.glob("*.pb")), DATA / "foreign" / "step.pb"], ids=lambda path: path.name)
def test_the_path_of_every_real_trace_goes_from_its_first_op_to_its_last(path: Path) -> None:
    answers = Answers(path.read_bytes(), TraceContext())
    trace, graph = answers.trace, answers.graph
    answer, waited = answers.critical_path(), waits_for_threads(trace)
    pairs = list(zip(graph.producer.tolist(), graph.consumer.tolist()))
    edges = {
        "op": {pair for pair, moved in zip(pairs, graph.transfer.tolist()) if not moved},
        "transfer": {pair for pair, moved in zip(pairs, graph.transfer.tolist()) if moved},
        "thread": set(zip(waited[1].tolist(), waited[0].tolist())),
    }
    check_path(trace, answer, edges)
    assert answer["steps"][0]["start_ns"] == 0 and answer["steps"][0]["name"] == "_SOURCE"
    assert answer["left_out"] == 0


def test_a_source_op_that_ran_late_is_not_where_the_path_begins() -> None:
    """The last op's later input is a Const that waited for the thread of a long MatMul."""
    nodes = [
        N("_SOURCE", "NoOp", 0, 2, scheduled=0),
        N("long", "MatMul", 3, 290, scheduled=2),
        N("late", "Const", 291, 294, scheduled=2),
        N("last", "Mul", 295, 300, scheduled=294),
    ]
    answer = critical_path(make_trace(nodes), make_graph([(0, 1), (2, 3)]), [])  # type: ignore[arg-type]
    assert [(s["name"], s["reason"]) for s in answer["steps"]] == [
        ("_SOURCE", "start"),
        ("long", "op"),
        ("late", "thread"),
        ("last", "op"),
    ]
    assert answer["busy_ns"] == 297


def test_the_wait_for_a_batch_is_on_the_path() -> None:
    """An IteratorGetNext takes two thirds of the step; the ops after it wait for threads that are busy with late Consts."""
    nodes = [
        N("_SOURCE", "NoOp", 0, 2_000, scheduled=0),
        N("next", "IteratorGetNext", 3_000, 203_000, scheduled=2_000, kind=NodeKind.INPUT),
        N("rate", "Const", 204_000, 205_000, scheduled=2_000),
        N("Cast", "Cast", 206_000, 250_000, scheduled=203_000),
        N("apply", "ApplyAdam", 251_000, 300_000, scheduled=250_000),
    ]
    answer = critical_path(make_trace(nodes), make_graph([(1, 3), (2, 4), (3, 4)]), [])  # type: ignore[arg-type]
    assert [s["name"] for s in answer["steps"]] == ["_SOURCE", "next", "rate", "Cast", "apply"]


def test_a_tensor_received_on_the_same_device_is_its_producers() -> None:
    """From labels: the partitioner's receive of Cast is named Cast/_245, and is not recorded."""
    labels = ["Cast = Cast(x)", "product = MatMul(Cast/_245, Cast/_245)"]
    times = [{"t13": wire.EPOCH_US * 1000 + i * 10, "t16": 9} for i in range(2)]
    nodes = [wire.node(label.split(" ")[0], label, **time) for label, time in zip(labels, times)]
    answers = Answers(wire.run_metadata([(CPU, nodes)]), TraceContext())
    assert [(s["name"], s["reason"]) for s in answers.critical_path()["steps"]] == [("Cast", "start"), ("product", "op")]


def test_a_path_by_hand() -> None:
    trace = make_trace([N("a", "A", 0, 10), N("b", "B", 12, 40), N("c", "A", 12, 20), N("d", "D", 45, 60)])
    answer = critical_path(trace, make_graph([(0, 1), (0, 2), (2, 3)], [(1, 3)]), [])  # type: ignore[arg-type]
    assert [(s["name"], s["wait_ns"], s["reason"]) for s in answer["steps"]] == [
        ("a", 0, "start"),
        ("b", 2, "op"),
        ("d", 5, "transfer"),
    ]
    assert (answer["length_ns"], answer["busy_ns"], answer["left_out"]) == (60, 53, 0)
    assert [(r["key"], r["self_ns"], r["share"]) for r in answer["by_op"]] == [
        ("B", 28, 28 / 60),
        ("D", 15, 0.25),
        ("A", 10, 10 / 60),
    ]
    edges = edges_of(trace, make_graph([(0, 1), (0, 2), (2, 3)], [(1, 3)]))  # type: ignore[arg-type]
    assert slack_of(trace, edges).tolist() == [7, 5, 25, 0]  # a: b must start by 17


def test_a_path_goes_from_a_kernel_to_its_launch_and_along_its_stream() -> None:
    nodes = [
        N("x", "Const", 0, 3, CPU),
        N("m", "MatMul", 5, 9, GPU, NodeKind.LAUNCH),
        N("r", "Relu", 10, 12, GPU, NodeKind.LAUNCH),
        N("m", "", 8, 50, STREAM),
        N("r", "", 50, 70, STREAM),
        N("r", "", 50, 80, STREAM_ALL, NodeKind.REPEAT),
    ]
    answer = critical_path(make_trace(nodes), make_graph([(0, 1), (1, 2)]), [])  # type: ignore[arg-type]
    assert [(s["node"], s["reason"]) for s in answer["steps"]] == [(0, "start"), (1, "op"), (3, "launch"), (4, "stream")]


def test_without_edges_the_path_follows_time() -> None:
    graph = make_graph([], source="none")
    answer = critical_path(make_trace([N("a", "A", 0, 5), N("b", "B", 6, 9)]), graph, [])  # type: ignore[arg-type]
    assert [(s["name"], s["reason"]) for s in answer["steps"]] == [("a", "start"), ("b", "time")]
    assert answer["edges"] == "none"
    empty = critical_path(make_trace([]), graph, [])  # type: ignore[arg-type]
    assert empty["steps"] == [] and empty["length_ns"] == 0


def test_repeats_have_no_slack_and_are_on_no_path() -> None:
    trace = make_trace([N("a", "A", 0, 5), N("a", "A", 0, 9, STREAM_ALL, NodeKind.REPEAT)])
    edges = edges_of(trace, make_graph([(0, 1)]))  # type: ignore[arg-type]
    assert slack_of(trace, edges).tolist() == [4, -1]
    assert path_of(trace, edges).node.tolist() == [0]
    assert np.all(edges.producer >= 0)
