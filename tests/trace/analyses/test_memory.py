"""Memory: lifetimes, buffers and curves against a slow version on random graphs, and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import CPU, STREAM_ALL, FakeGraph, N, make_graph, make_trace

from tftracer.trace.analyses import memory as memory_
from tftracer.trace.analyses.memory import buffers, curve, lifetimes, memory, thinned
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.outputs_and_memory import MemoryStats, Outputs
from tftracer.trace.decode.tensor_shapes import Shapes
from tftracer.trace.model import NodeKind, TraceContext


def outputs(rows: list[tuple[int, int, int, int]]) -> Outputs:
    """Rows of (node, slot, bytes, ptr); the shape of each is its own number, [0], [1], ..."""
    node, slot, size, ptr = (np.array([r[i] for r in rows], np.int64) for i in range(4))
    shape_class = message_class("TensorShapeProto")
    shapes = [shape_class(dim=[{"size": i}]).SerializeToString() for i in range(len(rows))]
    lengths = np.array([len(shape) for shape in shapes], np.int64)
    numbers = np.arange(len(rows), dtype=np.int32)
    return Outputs(
        node=node,
        slot=slot,
        requested_bytes=size,
        allocated_bytes=size,
        ptr=ptr,
        allocator=np.zeros_like(numbers),
        allocators=StringTable.of(["cpu"]),
        dtype=np.ones_like(numbers),
        shape=numbers,
        shapes=Shapes(b"".join(shapes), np.cumsum(lengths) - lengths, lengths),
    )


def held(n: int, temporary: dict[int, int] | None = None) -> MemoryStats:
    temp = np.zeros(n, np.int64)
    for node, size in (temporary or {}).items():
        temp[node] = size
    return MemoryStats(temp, temp * 2)


def with_slots(edges: list[tuple[int, int, int]], source: str = "partition_graph") -> FakeGraph:
    graph = make_graph([(p, c) for p, c, _ in edges], source=source)
    graph.slot = np.array([s for _, _, s in edges], np.int32)
    graph.control = graph.slot < 0
    return graph


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[N], list[tuple[int, int, int]], list[tuple[int, int, int, int]], str]:
    nodes = []
    for i in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, 20))
        nodes.append(N(f"n{i}", draw(st.sampled_from(["Const", "MatMul"])), start, start + draw(st.integers(0, 6))))
    index = st.integers(0, len(nodes) - 1)
    edges = draw(st.lists(st.tuples(index, index, st.integers(-1, 1)), max_size=12))
    keys = draw(st.lists(st.tuples(index, st.integers(0, 1)), unique=True, max_size=10))
    rows = [(n, s, draw(st.integers(0, 5)), draw(st.integers(0, 3))) for n, s in sorted(keys)]
    return nodes, edges, rows, draw(st.sampled_from(["partition_graph", "labels"]))


@given(cases())
def test_lifetimes_equal_the_definition(case: tuple[Any, ...]) -> None:
    nodes, edges, rows, source = case
    step = max(n.end for n in nodes)
    lives = lifetimes(make_trace(nodes), outputs(rows), with_slots(edges, source))  # type: ignore[arg-type]
    expected = []
    for node, slot, size, _ in rows:
        if not size:
            continue
        ends = [nodes[c].end for p, c, s in edges if (p, s) == (node, slot)]
        alloc, free = nodes[node].start, nodes[node].end if source == "partition_graph" else step
        free = max([*ends, nodes[node].end]) if ends else free
        expected.append((0, step) if nodes[node].op == "Const" else (alloc, free))
    assert list(zip(lives.alloc.tolist(), lives.free.tolist())) == expected


@given(cases())
def test_buffers_and_curve_equal_a_walk_over_the_moments(case: tuple[Any, ...]) -> None:
    nodes, edges, rows, source = case
    trace, made = make_trace(nodes), outputs(rows)
    lives = lifetimes(trace, made, with_slots(edges, source))  # type: ignore[arg-type]
    made_buffers = buffers(lives, made.ptr[lives.output])
    times, live = curve(made_buffers.alloc, made_buffers.free, made_buffers.bytes)
    for t in range(trace.duration_ns):
        at = np.searchsorted(times, t, "right") - 1
        assert (live[at] if at >= 0 else 0) == naive_live(lives, made.ptr[lives.output], t)


def naive_live(lives: memory_.Lives, ptr: np.ndarray, t: int) -> int:
    """What is alive at t: outputs at one address whose lives overlap, directly or through others, are one buffer."""
    total, seen = 0, set()
    n = len(lives.output)

    def overlap(i: int, j: int) -> bool:
        return bool(ptr[i] == ptr[j] != 0 and lives.alloc[i] < lives.free[j] and lives.alloc[j] < lives.free[i])

    for i in range(n):
        if i in seen or lives.free[i] <= lives.alloc[i]:
            continue
        group, added = {i}, True
        while added:
            more = {j for j in range(n) if lives.free[j] > lives.alloc[j] and any(overlap(j, k) for k in group)} - group
            group |= more
            added = bool(more)
        seen |= group
        if any(lives.alloc[j] <= t < lives.free[j] for j in group):
            total += max(int(lives.bytes[j]) for j in group)
    return total


def test_a_step_by_hand() -> None:
    trace = make_trace(
        [N("a", "MatMul", 0, 10), N("b", "Relu", 10, 20), N("c", "Sum", 20, 30), N("r", "Sum", 0, 9, STREAM_ALL, NodeKind.REPEAT)]
    )
    made = outputs([(0, 0, 100, 7), (1, 0, 100, 7), (2, 0, 50, 0), (3, 0, 999, 0)])  # b hands a's buffer on
    used = memory_.output_buffers(trace, made, with_slots([(0, 1, 0), (1, 2, 0)]))  # type: ignore[arg-type]
    answer = memory(used, held(4, {1: 30}), [])
    (only,) = answer["curves"]
    assert (only["allocator"], only["device"], only["peak_bytes"], only["peak_ns"]) == ("cpu", CPU, 150, 20)
    assert list(zip(only["time_ns"], only["bytes"])) == [(0, 100), (20, 150), (30, 0)]
    first, second = answer["tensors"]
    assert (first["name"], first["bytes"], first["alloc_ns"], first["free_ns"], first["last_consumer"]) == ("a", 100, 0, 30, 2)
    assert (second["name"], second["last_consumer"], second["shape"], second["dtype"]) == ("c", -1, "[2]", "float32")
    assert [(r["key"], r["max_ns"], r["node"]) for r in answer["temporary"]] == [("Relu", 30, 1)]
    assert answer["persistent_bytes"] == 60
    assert sorted(used.buffers.first[used.alive()].tolist()) == [0, 2]


DATA = Path(__file__).parents[2] / "data"
REAL = ("conv_tf2.12_cpu", "estimator_tf2.15_cpu", "ps_worker0_tf2.21_cpu", "while_loop_tf2.15_cpu")


@pytest.mark.parametrize("name", REAL)
def test_the_tensors_that_are_listed_add_up_to_what_is_alive(name: str) -> None:
    """Of every allocator, at its peak and at other times: what the page says is alive, and the sum of the rows below it."""
    answer = Answers((DATA / f"{name}.pb").read_bytes(), TraceContext()).memory()
    assert answer["curves"] and answer["tensors_total"] == len(answer["tensors"])
    for shown in answer["curves"]:
        moments = dict(zip(shown["time_ns"], shown["bytes"]))
        assert moments[shown["peak_ns"]] == shown["peak_bytes"]
        own = [t for t in answer["tensors"] if (t["device"], t["allocator"]) == (shown["device"], shown["allocator"])]
        for at in (shown["peak_ns"], *list(moments)[:: max(len(moments) // 20, 1)]):
            assert sum(t["bytes"] for t in own if t["alloc_ns"] <= at < t["free_ns"]) == moments[at]


def test_where_not_all_tensors_are_listed_the_answer_says_how_many_there_are() -> None:
    """The largest are listed; they hold less than what is alive, and the others the rest."""
    nodes = [N(f"n{i}", "Mul", i, 100) for i in range(8)]
    trace, made = make_trace(nodes), outputs([(i, 0, 10 * (i + 1), 0) for i in range(8)])
    used = memory_.output_buffers(trace, made, with_slots([]))  # type: ignore[arg-type]
    answer = memory(used, held(8), [], limit=3)
    assert (answer["tensors_total"], [t["bytes"] for t in answer["tensors"]]) == (8, [80, 70, 60])
    assert answer["curves"][0]["peak_bytes"] == sum(10 * (i + 1) for i in range(8))


def test_a_trace_without_outputs_has_no_curves() -> None:
    trace, none = make_trace([]), outputs([])
    answer = memory(memory_.output_buffers(trace, none, make_graph([])), held(0), [])  # type: ignore[arg-type]
    assert (answer["curves"], answer["tensors"], answer["temporary"]) == ([], [], [])


@given(st.integers(4_001, 30_000), st.integers(0, 2**32 - 1))
def test_a_thinned_curve_keeps_its_peak_its_ends_and_each_stretchs_extremes(n: int, seed: int) -> None:
    live = np.random.default_rng(seed).integers(0, 1000, n)
    peak = int(np.argmax(live))
    shown = thinned(live, peak)
    assert len(shown) <= memory_.MAX_POINTS
    assert {0, peak, n - 1} <= set(shown.tolist())
    assert (np.diff(shown) > 0).all()
    assert live[shown].min() == live.min()
