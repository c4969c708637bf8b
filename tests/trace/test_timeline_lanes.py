from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import traces
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import N

from tftracer.errors import FormatError
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.model import NodeKind, Trace
from tftracer.trace.timeline_lanes import Layout, lay_out

DATA = Path(__file__).parents[1] / "data"


def rows_of(layout: Layout) -> list[list[int]]:
    return [
        layout.order[low:high].tolist() for low, high in zip(layout.row_offsets[:-1].tolist(), layout.row_offsets[1:].tolist())
    ]


def ends(trace: Trace) -> list[int]:
    """A slice of no length takes the place of one of a nanosecond."""
    return np.maximum(trace.end, trace.start + 1).tolist()


def most_at_once(slices: list[tuple[int, int]]) -> int:
    """The obvious way: look at each start."""
    return max(sum(low <= moment < high for low, high in slices) for moment, _ in slices)


def union_of(slices: list[tuple[int, int]]) -> int:
    total, covered = 0, -1
    for low, high in sorted(slices):
        total += max(0, high - max(low, covered))
        covered = max(covered, high)
    return total


def check(trace: Trace, layout: Layout) -> None:
    rows = rows_of(layout)
    end = ends(trace)
    assert sorted(node for row in rows for node in row) == np.flatnonzero(trace.start >= 0).tolist()
    for row in rows:
        assert all(end[a] <= trace.start[b] for a, b in zip(row, row[1:]))
    for lane in layout.lanes:
        nodes = [node for row in rows[lane["first_row"] : lane["first_row"] + lane["rows"]] for node in row]
        assert {trace.devices[trace.device[node]].name for node in nodes} == {lane["device"]}
        slices = [(int(trace.start[node]), end[node]) for node in nodes]
        assert (lane["slices"], lane["rows"], lane["busy_ns"]) == (len(nodes), most_at_once(slices), union_of(slices))
    assert sum(lane["rows"] for lane in layout.lanes) == len(rows)


spans = st.tuples(st.integers(0, 60), st.one_of(st.integers(0, 3), st.integers(0, 40)))
kinds = st.sampled_from([NodeKind.COMPUTE, NodeKind.COMPUTE, NodeKind.COMMUNICATION])
devices = st.sampled_from([traces.CPU, traces.PS, traces.STREAM])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(spans, kinds, devices), max_size=60))
def test_rows_never_overlap_and_are_as_few_as_can_be(slices: list[tuple[tuple[int, int], NodeKind, str]]) -> None:
    nodes = [N(f"n{i}", "Op", start, start + length, device, kind) for i, ((start, length), kind, device) in enumerate(slices)]
    trace = traces.make_trace(nodes)
    check(trace, lay_out(trace))


def test_many_slices_at_once() -> None:
    trace = traces.make_trace([N(f"n{i}", "Op", i, 1000 + i) for i in range(400)])
    layout = lay_out(trace)
    check(trace, layout)
    assert len(rows_of(layout)) == 400


def test_slices_one_after_the_other_stay_on_the_first_row() -> None:
    nodes = [N("a", "Op", 0, 10), N("b", "Op", 5, 8), N("c", "Op", 20, 30), N("d", "Op", 30, 40), N("e", "Op", 50, 50)]
    assert rows_of(lay_out(traces.make_trace(nodes))) == [[0, 2, 3, 4], [1]]


def test_nodes_without_a_time_are_left_out() -> None:
    trace = traces.make_trace([N("a", "Op", 0, 10), N("b", "Op", -1, -1)])
    assert rows_of(lay_out(trace)) == [[0]]


def test_an_empty_trace_has_no_lanes() -> None:
    layout = lay_out(decode_run_metadata(b""))
    assert (layout.lanes, rows_of(layout), len(layout.order)) == ([], [], 0)


def test_lanes_of_a_gpu() -> None:
    nodes = [
        N("a", "MatMul", 0, 10, traces.GPU, NodeKind.LAUNCH),
        N("a", "MatMul", 5, 9, traces.STREAM),
        N("a", "MatMul", 5, 9, traces.STREAM_ALL, NodeKind.REPEAT),
        N("in", "MEMCPYHtoD", 1, 3, traces.H2D, NodeKind.COPY),
        N("x", "NoOp", 0, 3),
        N("h", "HorovodAllreduce", 2, 9, kind=NodeKind.COMMUNICATION),
    ]
    trace = traces.make_trace(nodes)
    lanes = lay_out(trace).lanes
    assert [(lane["title"], lane["kind"], lane["collapsed"]) for lane in lanes] == [
        ("CPU:0", "compute", False),
        ("CPU:0 communication", "communication", False),
        ("GPU:0 launches", "launch", False),
        ("GPU:0 stream 12", "kernel", False),
        ("GPU:0 stream 14<MemcpyH2D>", "copy", False),
        ("GPU:0 stream all", "repeat", True),
    ]
    assert [lane["first_row"] for lane in lanes] == [0, 1, 2, 3, 4, 5]


def test_a_pattern_keeps_the_devices_that_match() -> None:
    trace = traces.make_trace([N("a", "Op", 0, 1), N("b", "Op", 0, 1, traces.PS)])
    assert [lane["device"] for lane in lay_out(trace, "job:ps").lanes] == [traces.PS]
    assert lay_out(trace, "nothing").lanes == []
    with pytest.raises(FormatError, match="unterminated character set"):
        lay_out(trace, "[")


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pb")), ids=lambda path: path.name)
def test_real_traces(path: Path) -> None:
    trace = decode_run_metadata(path.read_bytes())
    layout = lay_out(trace)
    end = ends(trace)
    for row in rows_of(layout):
        assert all(end[a] <= trace.start[b] for a, b in zip(row, row[1:]))
    assert len(layout.order) == trace.n
