"""Op statistics: by hand on small steps, and against sums made in plain Python on random ones."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import CPU, GPU, STREAM, STREAM_ALL, N, make_trace

from tftracer.trace.analyses.ops import op_statistics, self_times
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.model import NodeKind


def rows(nodes: list[N], by: str) -> dict[str, dict[str, object]]:
    return {row["key"]: dict(row) for row in op_statistics(make_trace(nodes), by, [])["rows"]}  # type: ignore[arg-type]


@st.composite
def steps(draw: st.DrawFn) -> list[N]:
    nodes = []
    for i in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from(["a", "b/c", "b/d/e", "b/d/f"]))
        op = draw(st.sampled_from(["MatMul", "Add", "While"]))
        start = draw(st.integers(0, 20))
        device = draw(st.sampled_from([CPU, STREAM_ALL, GPU]))
        kind = NodeKind.REPEAT if device == STREAM_ALL else NodeKind.COMPUTE
        nodes.append(N(name, op, start, start + draw(st.integers(0, 9)) + i % 2, device, kind))
    return nodes


@given(steps())
def test_sums_equal_plain_ones(nodes: list[N]) -> None:
    counted = [n for n in nodes if n.kind is not NodeKind.REPEAT]
    totals: dict[str, dict[str, int]] = {"type": defaultdict(int), "name": defaultdict(int), "scope": defaultdict(int)}
    for n in counted:
        totals["type"][n.op] += n.end - n.start
        totals["name"][n.name] += n.end - n.start
        for depth in range(n.name.count("/")):
            totals["scope"]["/".join(n.name.split("/")[: depth + 1])] += n.end - n.start
    for by, expected in totals.items():
        table = rows(nodes, by)
        assert {key: row["total_ns"] for key, row in table.items()} == expected
        values = [row["total_ns"] for row in table.values()]
        assert values == sorted(values, reverse=True)  # type: ignore[type-var]


@given(steps())
def test_self_times_of_a_device_add_up_to_its_busy_time(nodes: list[N]) -> None:
    trace = make_trace(nodes)
    share = self_times(trace)
    for code in range(len(trace.devices)):
        mine = (trace.device == code) & trace.counted
        assert share[mine].sum() == pytest.approx(Cover.of(trace.start[mine], trace.end[mine]).length)


def test_a_call_counts_only_where_nothing_else_runs() -> None:
    table = rows([N("w", "While", 0, 100), N("m", "MatMul", 10, 70), N("a", "Add", 40, 60)], "type")
    assert table["While"]["self_ns"] == pytest.approx(40)
    assert table["MatMul"]["self_ns"] == pytest.approx(50)
    assert table["Add"]["self_ns"] == pytest.approx(10)
    assert table["While"]["total_ns"] == 100


def test_kernels_count_under_the_op_that_launched_them() -> None:
    nodes = [
        N("d/m", "MatMul", 0, 5, GPU, NodeKind.LAUNCH, scheduled=-1),
        N("d/m:kernel", "", 3, 43, STREAM),
        N("d/m:kernel", "", 3, 43, STREAM_ALL, NodeKind.REPEAT),
        N("x", "Const", 4, 5, CPU, scheduled=1),
    ]
    row = rows(nodes, "type")["MatMul"]
    assert (row["count"], row["host_ns"], row["device_ns"], row["max_ns"], row["node"]) == (1, 5, 40, 45, 0)
    assert row["mean_ns"] == 45 and row["delay_ns"] is None
    assert row["device"] == ""
    assert rows(nodes, "name")["d/m"]["total_ns"] == 45
    assert rows(nodes, "scope")["d"]["total_ns"] == 45
    assert rows(nodes, "type")["Const"]["delay_ns"] == 3
    assert rows(nodes, "type")["Const"]["device"] == CPU


def test_an_op_counts_once_however_many_kernels_it_launches() -> None:
    launches = [N("m", "MatMul", i * 10, i * 10 + 5, GPU, NodeKind.LAUNCH) for i in range(9)]
    kernels = [N("m", "MatMul", i * 10 + 5, i * 10 + 7 + j, STREAM) for i in range(9) for j in range(2)]
    for by, key in (("type", "MatMul"), ("name", "m")):
        row = rows([*launches, *kernels], by)[key]
        assert (row["count"], row["mean_ns"], row["max_ns"]) == (9, 10, 10)  # 5 launched, 2 and 3 ran
    assert rows(kernels, "type")["MatMul"]["count"] == 18  # kernels alone


def test_a_delay_that_is_not_known_is_not_0() -> None:
    table = rows([N("a", "A", 5, 6, scheduled=5), N("b/c", "B", 5, 6)], "type")
    assert table["A"]["delay_ns"] == 0 and table["B"]["delay_ns"] is None
    assert rows([N("b/c", "B", 5, 6)], "scope")["b"]["delay_ns"] is None


def test_a_node_without_a_time_counts_nothing() -> None:
    row = rows([N("a", "A", 0, 10), N("b", "A", -1, -1), N("c", "C", -1, -1)], "type")
    assert list(row) == ["A"] and (row["A"]["count"], row["A"]["mean_ns"]) == (1, 10)


def test_an_empty_trace_has_no_rows() -> None:
    for by in ("type", "name", "scope"):
        assert op_statistics(make_trace([]), by, [])["rows"] == []
