"""Rules, ops and warnings, on sessions given as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tftracer.comparison import report
from tftracer.comparison.comparison import Comparison, compare
from tftracer.comparison.gate import Outcome, judge, parse_rule, worst
from tftracer.comparison.report import as_junit
from tftracer.comparison.values_of_session import Measured
from tftracer.errors import UsageError

SPREAD = (0.99, 1.01, 0.98, 1.02, 1.0, 1.0, 0.995, 1.005)


def sessions(step: float, ops: Mapping[str, float] | None = None, count: int = 8, **more: Any) -> list[Measured]:
    """That differ by 1% from each other."""
    ops = ops or {}
    return [
        Measured(
            f"s{i}",
            1000,
            {"step": step * SPREAD[i], "memory": 1e6},
            ops={key: value * SPREAD[-i - 1] for key, value in ops.items()},
            op_types={key: value * SPREAD[-i - 1] for key, value in ops.items()},
            traces=1 if ops else 0,
            **more,
        )
        for i in range(count)
    ]


def outcome(comparison: Comparison, rule: str) -> Outcome:
    (judged,) = judge(comparison, [parse_rule(rule)])
    return judged


@pytest.mark.parametrize(
    ("rates", "state"),
    [((0.0, 0.0), "PASS"), ((50_000.0, 60_000.0), "FAIL"), ((0.0, 60_000.0), "INCONCLUSIVE"), ((0.0, None), "INCONCLUSIVE")],
)
def test_memory_growth_is_that_of_the_sessions_after_the_change(rates: tuple[float | None, ...], state: str) -> None:
    after = [replace(each, growth_rate=rate) for each, rate in zip(sessions(1e6, count=2), rates)]
    judged = outcome(compare("step", sessions(1e6, count=2), after), "memory growth > 1 MB/min")
    assert judged.state == state
    assert judged.lacks_data == (None in rates)


def test_pass_fail_and_inconclusive() -> None:
    comparison = compare("train", sessions(3e6), sessions(3.15e6))
    assert outcome(comparison, "step > 10%").state == "PASS"
    assert outcome(comparison, "step > 2.5%").state == "FAIL"
    undecided = outcome(comparison, "step > 5%")
    assert undecided.state == "INCONCLUSIVE" and "sessions" in undecided.why
    assert outcome(comparison, "memory > 0%").state == "PASS"
    assert not undecided.lacks_data


def test_how_many_sessions_would_decide_is_said() -> None:
    comparison = compare("train", sessions(3e6, count=2), sessions(3.15e6, count=2))
    why = outcome(comparison, "step > 3%").why
    number = int(why.split("about ")[1].split()[0])
    more = compare("train", sessions(3e6) * 2, sessions(3.15e6) * 2)
    assert 3 <= number <= 16 and outcome(more, "step > 3%").state == "FAIL"


def test_a_wide_interval_around_the_limit_is_not_called_close_to_it() -> None:
    """ "+7.2% (-59.6% to +184.1%). It is so close to the limit that more sessions would hardly decide it."""
    wide = compare(
        "train", [*sessions(3e6, count=2), *sessions(6e6, count=2)], [*sessions(3.15e6, count=2), *sessions(6.3e6, count=2)]
    )
    assert outcome(wide, "step > 5%").why.endswith(
        "The sessions of a side differ too much to tell how many more would decide it."
    )


def test_one_session_a_side_decides_nothing() -> None:
    comparison = compare("train", sessions(3e6, count=1), sessions(6e6, count=1))
    assert outcome(comparison, "step > 5%").state == outcome(comparison, "step > 200%").state == "INCONCLUSIVE"
    assert outcome(comparison, "memory > 5%").state == "PASS", "equal values are no difference"


def test_what_a_side_does_not_tell_is_inconclusive() -> None:
    comparison = compare("train", sessions(3e6), sessions(3e6))
    for rule in ("p99 > 5%", "gap > 5%", "op MatMul > 5%", "bytes > 5%", "findings > 0"):
        assert outcome(comparison, rule).state == "INCONCLUSIVE", rule


def test_op_types_and_findings() -> None:
    before = sessions(3e6, {"MatMul": 1e6, "Relu": 1e5})
    after = sessions(3e6, {"MatMul": 1.5e6, "Relu": 1e5}, findings=frozenset({"no_gpu_events"}))
    comparison = compare("train", before, after)
    assert outcome(comparison, "op MatMul > 20%").state == "FAIL"
    assert outcome(comparison, "op  Relu  > 20 %").state == "PASS"
    assert outcome(comparison, "findings > 0").state == "FAIL" and outcome(comparison, "findings > 1").state == "PASS"
    (change,) = comparison.ops.changes
    assert change.separated and change.key == "MatMul" and change.delta_ns == pytest.approx(5e5)


def test_an_op_is_meant_whoever_wrote_it() -> None:
    before = sessions(3e6, {"_MklMatMul": 6e5, "_FusedMatMul": 4e5, "MatMulV": 1e9, "Relu": 1e5})
    after = sessions(3e6, {"_MklNativeFusedMatMul": 1.5e6, "MatMulV": 1e9, "Relu": 1e5})
    comparison = compare("train", before, after)
    assert outcome(comparison, "op MatMul > 20%").state == "FAIL" and outcome(comparison, "op MatMul > 80%").state == "PASS"
    assert outcome(comparison, "op _MklMatMul > 20%").state == "INCONCLUSIVE", "that one alone, which one side lacks"


def test_a_rule_that_names_nothing_is_wrong_usage() -> None:
    traced, untraced = sessions(3e6, {"_FusedMatMul": 6e5}), sessions(3e6)
    with pytest.raises(UsageError, match=r"no trace of either side has an op of type 'MatMull'. Did you mean 'MatMul'\?"):
        outcome(compare("train", traced, traced), "op MatMull > 20%")
    unknown = outcome(compare("train", untraced, untraced), "op MatMull > 20%")
    assert unknown.state == "INCONCLUSIVE" and unknown.lacks_data and "--trace" in unknown.why


def test_small_changes_of_ops_are_below_the_floors() -> None:
    before, after = {"short": 1e4, "long": 1e7, "gone": 1e6}, {"short": 2e4, "long": 1.04e7, "new": 1e6}
    ops = compare("train", sessions(3e6, before), sessions(3e6, after)).ops
    assert (ops.changes, ops.only_a, ops.only_b, ops.compared) == ([], {"gone": 1e6}, {"new": 1e6}, 2)


def test_three_sessions_a_side_separate_no_op() -> None:
    comparison = compare("train", sessions(3e6, {"MatMul": 1e6}, count=3), sessions(3e6, {"MatMul": 2e6}, count=3))
    (change,) = comparison.ops.changes
    assert not change.separated and not comparison.ops.enough_sessions
    assert "takes 4 sessions a side, in turns" in report.as_text(comparison)


def test_equal_sessions_separate_an_op_in_one_of_twenty_comparisons_at_most() -> None:
    """Of 59 ops chance alone puts 1.7 above each other in four sessions a side."""
    rng = np.random.default_rng(5)

    def drawn(longer: float, seconds: float = 0.0) -> list[Measured]:
        ops = [{str(i): 1e6 * math.exp(rng.normal(0, 0.2)) * (longer if i == 1 else 1) for i in range(59)} for _ in range(4)]
        return [Measured("s", 1000, {}, ops=each, traces=5, started_at=1 + seconds + 2.0 * n) for n, each in enumerate(ops)]

    def separated(a: list[Measured], b: list[Measured]) -> list[str]:
        return [change.key for change in compare("train", a, b).ops.changes if change.separated]

    false = [separated(drawn(1), drawn(1, seconds=1)) for _ in range(200)]
    assert np.mean([bool(each) for each in false]) <= 0.07  # 5%, and what 200 draws scatter
    assert separated(drawn(1), drawn(8, seconds=1)) == ["1"]
    assert not separated(drawn(1), drawn(8, seconds=100)), "not recorded in turns"


@pytest.mark.parametrize(("more_traces", "expected"), [(0, ["changed"]), (1, [])])
def test_an_op_whose_shortest_times_differ_is_found_beside_busy_moments(more_traces: int, expected: list[str]) -> None:
    """An op took twice as long (394 to 760 us); in one session it took longer still, as its traces follow each other."""
    busy = [[57, 61, 142, 76, 206], [73, 81, 47, 91, 6838]]  # medians of another op
    medians, shortest = (
        [[396, 393, 441, 383, 3416], [751, 770, 733, 847, 885]],
        [[383, 385, 390, 381, 395], [740, 745, 731, 752, 749]],
    )

    def side(of: int) -> list[Measured]:
        return [
            Measured(
                f"s{n}", 1000, {}, traces=5 + more_traces * of, started_at=1.0 + 2 * n + of,
                ops={"changed": 1e3 * medians[of][n], "busy": 1e3 * busy[of][n]},
                shortest_ops={"changed": 1e3 * shortest[of][n], "busy": 47e3},
                op_types={"changed": 1e3 * medians[of][n]}, shortest_op_types={"changed": 1e3 * shortest[of][n]},
            )
            for n in range(5)
        ]  # fmt: skip

    comparison = compare("train", side(0), side(1))
    assert [change.key for change in comparison.ops.changes if change.separated] == expected
    judged = outcome(comparison, "op changed > 20%")
    assert judged.state == ("FAIL" if expected else "INCONCLUSIVE"), "the rule looks at the times that the ops are compared by"
    assert not expected or judged.why.startswith("+92.")


def test_an_op_is_compared_by_its_shortest_times_where_its_medians_scatter_more() -> None:
    """The values that are shown are those that it is compared by."""
    medians = [[3e6, 1e6, 3e6, 1e6, 3e6], [2e6, 2.9e6, 1e6, 2.9e6, 1e6]]

    def side(of: int) -> list[Measured]:
        ops = [({"op": ns}, {"op": 1e5 * (1 + of)}) for ns in medians[of]]
        return [
            Measured(f"s{n}", 1000, {}, ops=usual, shortest_ops=shortest, traces=5, started_at=1.0 + 2 * n + of)
            for n, (usual, shortest) in enumerate(ops)
        ]

    comparison = compare("train", side(0), side(1))
    (change,) = comparison.ops.changes
    assert change.separated and change.of_shortest and (change.a_ns, change.b_ns) == (1e5, 2e5)
    assert "+100%  (shortest time in each session's traces)" in report.as_text(comparison)


def test_a_comparison_says_from_which_difference_on_it_tells_one() -> None:
    """Of sessions that scatter by a fifth, and of such that do by 1%."""

    def told(scatter: float) -> Comparison:
        rng = np.random.default_rng(8)
        sides: list[list[Measured]] = [[], []]
        for n in range(16):
            ops = {
                f"op{i}": 1e6 * (i + 1) * math.exp(rng.normal(0, scatter)) * (1.1 if (n % 2, i) == (1, 9) else 1)
                for i in range(10)
            }
            sides[n % 2].append(Measured(f"s{n}", 1000, {}, ops=ops, traces=1 + n, started_at=1.0 + n))
        return compare("train", *sides)

    few, many = told(0.2), told(0.01)
    assert few.ops.told_from is not None and few.ops.told_from > 0.2 and not any(each.separated for each in few.ops.changes)
    assert many.ops.told_from is not None and many.ops.told_from < 0.1
    assert [each.key for each in many.ops.changes if each.separated] == ["op9"]
    share = f"{few.ops.told_from:.0%}"
    assert f"Of op9, which takes most time, these sessions separate a difference of {share} or more from chance." in _unwrapped(
        few
    )
    assert "To detect smaller ones" in _unwrapped(few) and "smaller ones" not in _unwrapped(many)


def _unwrapped(comparison: Comparison) -> str:
    return " ".join(report.as_text(comparison).split())


def test_other_machines_are_a_warning() -> None:
    a, b = sessions(3e6, facts={"host": "one", "TensorFlow": "2.15"}), sessions(3e6, facts={"host": "two", "TensorFlow": "2.15"})
    (warning,) = compare("train", a, b).warnings
    assert "host: one and two" in warning
    assert compare("train", a, a).warnings == []
    assert "With one session a side" in compare("train", a[:1], a[:1]).warnings[0]


@pytest.mark.parametrize(
    "rule", ["", "step", "step > 5", "step < 5%", "speed > 5%", "findings > 5%", "op > 5%", "step > x%", "step > -1%"]
)
def test_what_is_no_rule(rule: str) -> None:
    with pytest.raises(UsageError, match="is no rule"):
        parse_rule(rule)


def test_the_worst_decides() -> None:
    made = {state: Outcome("step > 5%", state, "why") for state in ("PASS", "FAIL", "INCONCLUSIVE")}
    assert worst(list(made.values())) == "FAIL"
    assert worst([made["PASS"], made["INCONCLUSIVE"]]) == "INCONCLUSIVE"
    assert worst([made["PASS"]]) == worst([]) == "PASS"


def test_junit() -> None:
    outcomes = [
        Outcome("step > 5%", "FAIL", "+7.0% (+6.0% to +8.0%)"),
        Outcome("op <&\x00> > 5%", "INCONCLUSIVE", "A side has no trace."),
        Outcome("findings > 0", "PASS", "no new findings"),
    ]
    suite = ElementTree.fromstring(as_junit(outcomes))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == ["step > 5%", "op <&�> > 5%", "findings > 0"]
    assert [child.tag for case in cases for child in case] == ["failure", "error", "system-out"]
