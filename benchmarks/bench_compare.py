"""How often ``tftracer compare`` is right on real trainings: sessions of the same code and of 5% more (record_comparison.py).

    python benchmarks/bench_compare.py FOLDER

Sessions of the same code (A1, A2) are split at random into two sides, many times: each difference found is a false alarm. Half of
them are compared with B: each difference found is right. The same for the ops of the traces, of which ``inject`` alone changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tftracer
from tftracer.comparison.comparison import Comparison, compare
from tftracer.comparison.gate import judge, parse_rule
from tftracer.comparison.values_of_session import Measured
from tftracer.scripting.compare import measure

SPLITS = 200
INJECTED = "inject"
RULE = "step > 2%"


def measured(paths: list[Path]) -> list[Measured]:
    sessions = [tftracer.open(path) for path in paths]
    return [measure(session, session.runs()["title"][0]) for session in sessions]


def main() -> None:
    folder = Path(sys.argv[1])
    same = measured(sorted(folder.glob("A[12]-*.tftrace")))
    longer = measured(sorted(folder.glob("B-*.tftrace")))
    side = len(longer)
    rng = np.random.default_rng(0)
    pairs = [rng.permutation(len(same)) for _ in range(SPLITS)]
    alike = [compare("step", [same[i] for i in order[:side]], [same[i] for i in order[side : 2 * side]]) for order in pairs]
    apart = [compare("step", [same[i] for i in order[:side]], longer) for order in pairs]
    by_turns = compare("step", [each for each in same if "A1" in each.name], [each for each in same if "A2" in each.name])
    print(f"{side} sessions a side; p25 {_ms(same)} ms (A), {_ms(longer)} ms (B)")
    print(f"spread between sessions of A: {np.std([np.log(each.values['step']) for each in same], ddof=1):.1%}")
    print(f"A1 against A2: {_interval(by_turns)}; all of A against B: {_interval(compare('step', same, longer))}")
    print(f"A against A: {_share(alike)} of {SPLITS} differ, {_outcomes(alike)}; {_ops(alike)}")
    print(f"A against B: {_share(apart)} of {SPLITS} differ, {_outcomes(apart)}; {_ops(apart)}")


def _ms(sessions: list[Measured]) -> str:
    values = [each.values["step"] / 1e6 for each in sessions]
    return f"{min(values):.2f} to {max(values):.2f}"


def _interval(comparison: Comparison) -> str:
    shift = comparison.shifts["step"]
    return f"{shift.shift:+.1%} ({shift.low:+.1%} to {shift.high:+.1%})"


def _share(comparisons: list[Comparison]) -> str:
    return f"{np.mean([comparison.shifts['step'].differs for comparison in comparisons]):.0%}"


def _outcomes(comparisons: list[Comparison]) -> str:
    """What the gate says, as counts."""
    states = [judge(comparison, [parse_rule(RULE)])[0].state for comparison in comparisons]
    return f"{RULE!r}: " + ", ".join(f"{state} {states.count(state)}" for state in ("PASS", "FAIL", "INCONCLUSIVE"))


def _ops(comparisons: list[Comparison]) -> str:
    """How many ops were separated, the changed one apart."""
    separated = [[change.key for change in comparison.ops.changes if change.separated] for comparison in comparisons]
    others = np.mean([sum(key != INJECTED for key in keys) for keys in separated])
    injected_share = np.mean([INJECTED in keys for keys in separated])
    return f"{others:.2f} other ops of {comparisons[0].ops.compared} separated, {INJECTED!r} in {injected_share:.0%}"


if __name__ == "__main__":
    main()
