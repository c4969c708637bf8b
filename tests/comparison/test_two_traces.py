"""Two traces judged by the other traces of their runs: what is called changed, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgpack
import numpy as np
import pytest
from traces import N, make_trace

from tftracer.comparison import odd_ops
from tftracer.comparison.two_traces import OtherTotals, compare
from tftracer.contract.trace import ComparedOp, Comparison
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.types import Float64
from tftracer.trace.model import TraceContext

MS = 1_000_000
OPS = 59


def step(times: Sequence[float] | Float64) -> Answers:
    """A step whose ops, one after the other, took so many ns."""
    ends = np.cumsum(times).astype(int).tolist()
    nodes = [N(f"op{i}", f"Op{i}", start, end) for i, (start, end) in enumerate(zip([0, *ends], ends)) if end > start]
    return Answers(None, TraceContext(), trace=make_trace(nodes))


def packed(traces: Sequence[Answers]) -> list[bytes]:
    return [msgpack.packb(trace.op_totals("type")) for trace in traces]


def two_runs(a: Sequence[Answers], b: Sequence[Answers]) -> Comparison:
    """The first traces of two runs."""
    return compare(a[0], b[0], OtherTotals(packed(a[1:]), packed(b[1:]), same_run=False))


def one_run(compared: Sequence[Answers], others: Sequence[Answers]) -> Comparison:
    a, b = compared
    return compare(a, b, OtherTotals(packed(others)))


def row(comparison: Comparison, key: str) -> ComparedOp:
    return next(each for each in comparison["rows"] if each["key"] == key)


def changed(comparison: Comparison) -> set[str]:
    return {each["key"] for each in comparison["rows"] if each["status"] == "changed"}


def same_code(rng: np.random.Generator, count: int, longer: float = 1.0) -> list[Answers]:
    """Traces of 59 ops that take 30 us to 3 ms and scatter by 10%. ``longer``: the last one."""
    usual = np.geomspace(30_000, 3 * MS, OPS)
    usual[-1] *= longer
    return [step(usual * np.exp(rng.normal(0, 0.1, OPS))) for _ in range(count)]


Draw = Callable[[np.random.Generator, float], Comparison]


def of_two_runs(rng: np.random.Generator, longer: float) -> Comparison:
    return two_runs(same_code(rng, 4), same_code(rng, 5, longer))


def of_one_run(rng: np.random.Generator, longer: float) -> Comparison:
    return one_run([*same_code(rng, 1), *same_code(rng, 1, longer)], same_code(rng, odd_ops.MIN_OTHERS))


@pytest.mark.parametrize(("draw", "longer"), [(of_two_runs, 3.0), (of_one_run, 3.0)])
def test_equal_code_is_hardly_ever_called_changed_and_a_real_change_is_always_found(draw: Draw, longer: float) -> None:
    rng = np.random.default_rng(17)
    false = [bool(changed(draw(rng, 1.0))) for _ in range(60)]
    assert np.mean(false) <= 0.1  # 5% is what is promised
    slower = [draw(rng, longer) for _ in range(20)]
    assert all(f"Op{OPS - 1}" in changed(each) for each in slower)
    assert all(f"The largest difference of an op: Op{OPS - 1}, +" in each["summary"] for each in slower)


def test_the_largest_difference_comes_first_certain_or_not() -> None:
    """An op that scatters took 5 ms more; another one is certain to have changed, by less."""

    def trace(scattering: float, steady: float) -> Answers:
        return step([scattering * MS, steady * MS, MS])

    before = [trace(5, 1), trace(9, 1), trace(2, 1.01), trace(7, 1), trace(4, 1)]
    after = [trace(10, 1.5), trace(3, 1.5), trace(8, 1.51), trace(6, 1.5), trace(2, 1.5)]
    found = two_runs(before, after)
    assert [each["key"] for each in found["rows"]][:2] == ["Op0", "Op1"] and changed(found) == {"Op1"}
    assert (
        "The largest difference of an op: Op0, +5 ms (chance may explain it, as it may explain any difference below "
        in found["summary"]
    )
    assert "The largest that chance does not explain: Op1, +500 µs" in found["summary"]


@pytest.mark.parametrize("busy", [False, True])
def test_equal_traces_are_called_changed_in_one_of_twenty_at_most(busy: bool) -> None:
    """Of one run and of two, quiet and with ops that take some hundred times as long when interrupted: 400 draws each."""
    rng, rows, number = np.random.default_rng(3), 60, 2 + odd_ops.MIN_OTHERS

    def times(count: int) -> Float64:
        quiet = np.geomspace(30_000, 3 * MS, rows)[:, None] * np.exp(rng.normal(0, 0.1, (rows, count)))
        slower = np.exp(np.abs(rng.normal(0, 0.3, (1, count)))) if busy else 1.0
        interrupted = (rng.random((rows, count)) < 0.001) * rng.pareto(0.5, (rows, count)) * 20 * MS if busy else 0.0
        return np.asarray(quiet * slower + interrupted)

    claims = (
        [odd_ops.odd(times(number)).any() for _ in range(400)],
        [odd_ops.changed(times(10), 5).is_changed.any() for _ in range(400)],
    )
    assert all(np.mean(each) <= 0.07 for each in claims)  # 5%, and what 400 draws scatter


@pytest.mark.parametrize("others", [8, odd_ops.MIN_OTHERS - 1])
def test_one_interrupted_op_beside_few_traces_of_the_run_is_no_change(others: int) -> None:
    """On a busy machine an op of 60 us takes 20 ms in one of fifty traces: it was called changed in 7% of equal pairs."""
    found = one_run([*steps(2), step([2 * MS, 20 * MS])], steps(*[2.0] * others))
    assert not changed(found) and row(found, "Op1")["statistic"] == f"the longest of {others + 2} traces is B's"
    assert f"That takes {odd_ops.MIN_OTHERS} traces of the run beside these two; there are {others}." in found["summary"]


def test_a_pair_that_differs_the_other_way_than_its_runs_is_not_called_changed() -> None:
    """The change makes steps longer; the two that are compared are a slow one of before and a fast one of after."""
    found = two_runs(steps(10, 5, 5.1, 5, 5.2, 5), steps(8, 15, 15.1, 15, 15.2, 15))
    assert not changed(found) and "more than chance explains" not in found["summary"]
    assert (
        row(found, "Op0")["statistic"]
        == "these two differ the other way: usually B takes longer, by more than chance in 6 and 6 traces"
    )


def test_a_change_of_a_tenth_is_large_enough_to_be_told() -> None:
    found = two_runs(steps(20, 20.1, 20.2, 20), steps(22, 22.1, 22.2, 22))
    assert changed(found) == {"Op0"} and "more than chance explains" in found["summary"]


def test_two_steps_alone_differ_in_many_ops_of_the_same_code() -> None:
    """What the floors alone would call changed."""
    first, second = same_code(np.random.default_rng(17), 2)
    alone = compare(first, second, OtherTotals())
    assert sum(each["status"] == "unknown" for each in alone["rows"]) > 9 and not changed(alone)


def steps(*matmul_ms: float) -> list[Answers]:
    return [step([time * MS, MS]) for time in matmul_ms]


def test_an_op_is_changed_if_it_differs_in_the_traces_of_both_runs() -> None:
    found = two_runs(steps(2, 2.1, 2.2, 2), steps(4, 4.1, 4.2, 4.4, 4))
    assert changed(found) == {"Op0"} and found["rows"][0]["key"] == "Op0"
    assert row(found, "Op0")["statistic"] == "more than chance in 4 and 5 traces"
    assert found["summary"] == (
        "The second step is 2 ms longer (3 ms to 5 ms, from first op to last), more than chance explains. "
        "The largest difference of an op: Op0, +2 ms (more than chance in 4 and 5 traces)."
    )
    assert found["traces"] == "Judged by 4 traces of A's run and 5 traces of B's."


def test_traces_that_overlap_show_no_change() -> None:
    found = two_runs(steps(2, 2.1, 5, 2), steps(4, 4.1, 4.2, 4))
    assert row(found, "Op0")["status"] == "unknown"
    assert row(found, "Op0")["statistic"] == "chance may explain it, as it may explain any difference below 114%"
    assert "(3 ms to 5 ms, from first op to last), which chance may explain." in found["summary"]


def test_a_small_separation_does_not_matter() -> None:
    found = two_runs(steps(2, 2.001, 2.002, 2), steps(2.01, 2.011, 2.012, 2.01))
    assert (row(found, "Op0")["status"], row(found, "Op0")["statistic"]) == ("same", "too small to matter")
    assert found["summary"].startswith("The two steps take about as long")


def test_runs_that_were_traced_one_after_the_other_are_not_called_changed() -> None:
    """Eight steps in a row, then eight of another run, as the machine has become busy: nothing tells that from a change."""
    before, after = steps(*[4] * 8), steps(*[6] * 8)
    in_a_row, turns = range(8), range(0, 16, 2)
    for started_a, started_b, is_change in ((in_a_row, range(8, 16), False), (turns, [at + 1 for at in turns], True)):
        others = OtherTotals(packed(before[1:]), packed(after[1:]), False, started_a=[*started_a], started_b=[*started_b])
        found = compare(before[0], after[0], others)
        assert ("Op0" in changed(found)) == is_change
        assert ("not traced in turns" in found["summary"]) != is_change
        assert "The second step is" in found["summary"]  # the difference of the two is said in any case


def test_traces_in_a_row_count_once() -> None:
    """Two rows of three a side: as few as two traces a side."""
    started_a, started_b = [0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]
    before, after = steps(*[4] * 6), steps(*[6] * 6)
    others = OtherTotals(packed(before[1:]), packed(after[1:]), False, started_a=started_a, started_b=started_b)
    assert not changed(compare(before[0], after[0], others))


def test_too_few_traces_tell_nothing() -> None:
    found = two_runs(steps(2, 2), steps(4, 4, 4, 4, 4, 4))
    assert (row(found, "Op0")["status"], row(found, "Op0")["statistic"]) == ("unknown", "too few traces: 2 and 6")
    assert found["summary"].endswith("That takes 4 traces of each run; there are 2 and 6.")


def test_a_step_of_a_run_is_odd_if_it_lies_outside_the_others() -> None:
    others = steps(*np.random.default_rng(7).normal(2, 0.05, odd_ops.MIN_OTHERS))
    found = one_run(steps(2, 4), others)
    assert (row(found, "Op0")["status"], row(found, "Op0")["statistic"]) == ("changed", "the longest of 40 traces is B's")
    assert found["summary"].startswith(
        "The second step is 2 ms longer (3 ms to 5 ms, from first op to last), more than chance explains."
    )
    assert (
        "The largest difference of an op: Op0, +2 ms (the longest of 40 traces is B's, more than chance explains)."
        in found["summary"]
    )
    swapped = one_run(steps(4, 2), others)
    assert row(swapped, "Op0")["statistic"] == "the longest of 40 traces is A's"
    usual = one_run(steps(2, 4), [*others[1:], *steps(4.2)])
    assert (row(usual, "Op0")["status"], row(usual, "Op0")["statistic"]) == ("unknown", "within the run's own spread")
    both = one_run(steps(4, 4), others)
    assert row(both, "Op0")["status"] == "same" and "about as long" in both["summary"]
    assert (
        row(one_run(steps(4, 1), others), "Op0")["statistic"]
        == "the longest of 40 traces is A's and the shortest of 40 traces is B's"
    )
    assert row(one_run(steps(4, 1), []), "Op0")["statistic"] == "no other trace"


def test_an_op_that_only_one_of_the_runs_has() -> None:
    less, more = [step([MS]) for _ in range(4)], [step([MS, 7 * MS]) for _ in range(4)]
    assert "Op1, +7 ms, only in the second (more than chance" in two_runs(less, more)["summary"]
    assert "Op1, -7 ms, only in the first (more than chance" in two_runs(more, less)["summary"]
    sometimes = two_runs([*less, more[0]], more)
    assert row(sometimes, "Op1")["status"] == "appeared"


def test_a_step_without_an_op_that_explains_it() -> None:
    def waiting(ms: int) -> Answers:
        nodes = [N("a", "A", 0, MS), N("b", "B", ms * MS, (ms + 1) * MS)]
        return Answers(None, TraceContext(), trace=make_trace(nodes))

    found = two_runs([waiting(1)] * 4, [waiting(9)] * 4)
    assert not changed(found) and "look at waiting and gaps in the budget" in found["summary"]


def test_ops_that_run_at_the_same_time_have_no_share_of_the_steps_change() -> None:
    def two(length: int) -> Answers:
        nodes = [N("a/MatMul", "MatMul", 0, length), N("b/MatMul", "MatMul", 0, length)]
        return Answers(None, TraceContext(), trace=make_trace(nodes))

    found = two_runs([two(2 * MS)] * 4, [two(4 * MS)] * 4)
    assert "+4 ms over its 2 executions, which may run at the same time" in found["summary"]


def test_an_op_that_runs_more_often_in_one_of_the_two_is_told_with_both_numbers() -> None:
    def times(count: int) -> Answers:
        nodes = [N(f"m{i}", "MatMul", i * MS, (i + 1) * MS) for i in range(count)]
        return Answers(None, TraceContext(), trace=make_trace(nodes))

    found = two_runs([times(10)] * 4, [times(13)] * 4)
    assert "MatMul, +3 ms over its 10 and 13 executions, which may run at the same time" in found["summary"]


def test_an_op_below_a_traces_table_is_unknown_and_not_zero() -> None:
    def cut(trace: Answers) -> bytes:
        return msgpack.packb({**trace.op_totals("type"), "keys": ["Op1"], "total_ns": [MS], "left_out": 1})

    a, b = steps(2, 4)
    found = compare(a, b, OtherTotals([cut(a)] * 4, packed(steps(4, 4, 4)), same_run=False))
    assert row(found, "Op0")["statistic"] == "a trace has too many ops" and row(found, "Op0")["status"] == "unknown"


def test_what_is_not_looked_at_is_said() -> None:
    a, b = steps(2, 4)
    found = compare(a, b, OtherTotals(packed([a] * 8), packed([b]), same_run=False, older=30, unreadable=1))
    assert found["traces"] == (
        "Judged by 9 traces of A's run and 2 traces of B's. "
        "30 older traces not looked at. 1 trace cannot be read and is left out."
    )
