"""Ops over several traces: what is counted, what is unknown, and that nothing of it is shown as 0."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median, stdev

import numpy as np
import pytest
from traces import N, make_trace

from tftracer.contract.encoding import encode, unpacked
from tftracer.trace.analyses import over_traces
from tftracer.trace.analyses.ops import By
from tftracer.trace.analyses.over_traces import OpsOverTraces, OpTotals
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

MS = 1_000_000


def totals(*nodes: N, by: By = "type") -> OpTotals:
    return OpTotals(**Answers(None, TraceContext(), trace=make_trace(nodes)).op_totals(by))


def of(traces: Sequence[OpTotals]) -> OpsOverTraces:
    return over_traces.over_traces(traces)


def test_an_op_counts_once_a_step_with_the_sum_of_its_executions() -> None:
    lengths = [(3, 4), (5, 1), (2, 2), (9, 9)]
    ops = of([totals(N("a", "MatMul", 0, a * MS), N("b", "MatMul", 0, b * MS), N("c", "Add", 0, MS)) for a, b in lengths])
    sums = [(a + b) * MS for a, b in lengths]
    assert ops.keys == ["MatMul", "Add"]
    assert ops.traces.tolist() == [4, 4] and ops.mean_count.tolist() == [2, 1]
    assert ops.total_ns[0].tolist() == sums
    assert ops.mean_ns[0] == mean(sums) and ops.median_ns[0] == median(sums)
    assert ops.shortest_ns[0] == min(sums) and ops.longest_ns[0] == max(sums)
    assert ops.spread_ns[0] == pytest.approx(stdev(sums)) and ops.spread_ns[1] == 0
    assert ops.share.tolist() == pytest.approx([sum(sums) / (sum(sums) + 4 * MS), 4 * MS / (sum(sums) + 4 * MS)])


def test_an_op_that_is_not_in_every_trace_is_judged_by_those_that_have_it() -> None:
    both, one = [N("a", "MatMul", 0, 4 * MS), N("s", "SaveV2", 0, 2 * MS)], [N("a", "MatMul", 0, 4 * MS)]
    ops = of([totals(*one), totals(*both), totals(*one), totals(*one)])
    assert ops.keys == ["MatMul", "SaveV2"] and ops.traces.tolist() == [4, 1]
    assert ops.mean_ns[1] == ops.median_ns[1] == ops.shortest_ns[1] == ops.longest_ns[1] == 2 * MS
    assert np.isnan(ops.spread_ns[1]), "one trace has no spread"
    assert ops.share[1] == pytest.approx(2 / 18)
    assert np.isnan(ops.total_ns[1]).tolist() == [True, False, True, True]
    assert ops.node[1].tolist() == [-1, 1, -1, -1] and ops.count[1].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("by", ["type", "name", "scope"])
def test_ops_are_the_same_by_type_node_and_scope(by: By) -> None:
    traces = [totals(N("x/a", "MatMul", 0, length), N("x/b", "Add", 0, MS), by=by) for length in (2 * MS, 3 * MS, 4 * MS)]
    ops = of(traces)
    expected = {"type": ["MatMul", "Add"], "name": ["x/a", "x/b"], "scope": ["x"]}[by]
    assert ops.keys == expected
    assert ops.op == (["MatMul", "Add"] if by != "scope" else [""])
    assert ops.node[0].tolist() == [0, 0, 0], "the longest execution of each trace"


def test_the_order_of_traces_and_of_their_ops_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    traces = [
        totals(*[N(f"n{i}", f"Op{i}", 0, int(rng.integers(1, 9)) * MS) for i in rng.permutation(20)[: rng.integers(5, 20)]])
        for _ in range(9)
    ]
    there, back = of(traces), of(traces[::-1])
    assert sorted(there.keys) == sorted(back.keys)
    for row, key in enumerate(there.keys):
        other = back.keys.index(key)
        for name in ("traces", "mean_ns", "median_ns", "spread_ns", "shortest_ns", "longest_ns", "share"):
            assert getattr(there, name)[row] == pytest.approx(getattr(back, name)[other], nan_ok=True), (key, name)
        known = [trace.by_key[key] for trace in traces if key in trace.by_key]
        assert there.median_ns[row] == median(known) and there.shortest_ns[row] == min(known)


def test_rates_are_of_the_kernels_where_there_are_any_and_unknown_where_flops_are() -> None:
    def trace(total: float, kernels: float, flops: float | None) -> OpTotals:
        return OpTotals(total, total, 0, ["MatMul"], ["MatMul"], [total], [1], [0], [kernels], [flops])

    ops = of([trace(2000, 0, 4000.0), trace(4000, 1000, 4000.0), trace(8000, 0, 4000.0), trace(1, 0, None), trace(0, 0, 4000.0)])
    assert ops.flop_rate[0].tolist() == pytest.approx([2e9, 4e9, 0.5e9, np.nan, np.nan], nan_ok=True)
    assert ops.best_flop_rate.tolist() == [4e9] and ops.median_flop_rate.tolist() == [2e9]
    assert ops.mean_flops.tolist() == [4000]
    unknown = of([trace(2000, 0, None)])
    assert np.isnan([*unknown.mean_flops, *unknown.best_flop_rate, *unknown.median_flop_rate]).all()


def test_what_was_not_asked_for_is_unknown() -> None:
    ops = of([totals(N("a", "MatMul", 0, MS))])
    assert np.isnan([*ops.mean_flops, *ops.best_flop_rate, *ops.flops[:, 0]]).all()


def test_traces_with_more_ops_than_their_tables_hold_are_counted() -> None:
    whole = totals(N("a", "MatMul", 0, MS))
    cut = OpTotals(**{**vars(whole), "left_out": 3})
    assert of([whole, cut]).cut_tables == 1
    assert whole.time_of("Gone") == 0.0 and cut.time_of("Gone") is None


def test_without_traces_or_ops_there_is_nothing() -> None:
    for ops in (of([]), of([totals()])):
        assert ops.keys == [] and len(ops.mean_ns) == len(ops.median_ns) == len(ops.shortest_ns) == len(ops.share) == 0


def test_totals_travel_packed_and_compressed() -> None:
    answers = Answers(None, TraceContext(), trace=make_trace([N(f"layer/{i}", "Add", i, i + 1) for i in range(3000)]))
    message = answers.op_totals("name")
    small, large = (encode(message, True, encoding) for encoding in ("", "zstd"))
    assert large.encoding == "zstd" and large.size < small.size / 4
    assert unpacked(b"".join(large.chunks)) == unpacked(b"".join(small.chunks)) == message
