"""Rules that a change must not break, such as ``step > 5%``: it must not make the step more than 5% longer. The outcome is PASS,
FAIL, or INCONCLUSIVE; in the last case the text says how many sessions would decide it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tftracer.comparison.comparison import METRICS, Comparison
from tftracer.comparison.shift import Shift
from tftracer.errors import UsageError
from tftracer.trace.analyses.op_kinds import canonical

State = Literal["PASS", "FAIL", "INCONCLUSIVE"]

#: Parts of the ledger whose share of the wall time a rule may limit; only the sessions after the change count.
_SHARES = ("start", "building", "input", "slow", "python", "evaluation", "checkpoints")
#: The memory growth that a rule may limit, in MB per minute; only the sessions after the change count.
_GROWTH = "memory growth"
_RULE = re.compile(
    rf"(?P<growth>{_GROWTH}\s*)>\s*(?P<rate>\d+(\.\d+)?)\s*MB/min|"
    rf"(?:(?P<metric>step|p99|gap|memory|bytes|findings|{'|'.join(_SHARES)})\s*|op\s(?P<op>[^>]+))>\s*(?P<number>\d+(\.\d+)?)\s*(?P<percent>%?)"
)
HELP = (
    "METRIC > NUMBER%, with METRIC step, p99, gap, memory, bytes or op TYPE; findings > NUMBER; memory growth > NUMBER MB/min; "
    "or PART > NUMBER% of the wall "
    f"time after the change, with PART {', '.join(_SHARES[:-1])} or {_SHARES[-1]}"
)


#: If no number of sessions would decide a rule, the text says that the difference is close to the limit; if the interval is wider
#: than this, it says that the sessions of a side differ too much.
MAX_WIDTH = 0.1
RECORD = "Record traces of each session: tftracer run --trace 5 --from 100 ..."


@dataclass(frozen=True)
class Rule:
    """A rule. ``threshold``: a share, such as 0.05 for 5%; for findings, their number; for memory growth, bytes per second."""

    text: str
    metric: str
    op: str
    threshold: float


@dataclass(frozen=True)
class Outcome:
    rule: str
    state: State
    why: str
    lacks_data: bool = False  # whether it is inconclusive for lack of data: more sessions like these would not decide it


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises UsageError with an explanation of the syntax."""
    rule = _RULE.fullmatch(text.strip())
    if rule is not None and rule["growth"]:
        return Rule(text.strip(), _GROWTH, "", float(rule["rate"]) * 1e6 / 60)
    is_number_of_findings = rule is not None and rule["metric"] == "findings"
    op = (rule["op"] or "").strip() if rule else ""
    if rule is None or not (op or rule["metric"]) or bool(rule["percent"]) == is_number_of_findings:
        raise UsageError(f"{text!r} is no rule. Write {HELP}.")
    number = float(rule["number"])
    return Rule(text.strip(), rule["metric"] or "op", op, number if is_number_of_findings else number / 100)


def judge(comparison: Comparison, rules: Sequence[Rule]) -> list[Outcome]:
    """Apply the rules. Raises UsageError if a rule names an op type that no trace of either side has."""
    for rule in rules:
        _check_op(comparison, rule)
    return [_outcome(comparison, rule) for rule in rules]


def _check_op(comparison: Comparison, rule: Rule) -> None:
    sessions = [*comparison.a, *comparison.b]
    if rule.op and any(each.traces for each in sessions) and all(each.time_of(rule.op) is None for each in sessions):
        known = sorted({name for each in sessions for op in each.op_types for name in (op, canonical(op))})
        close = difflib.get_close_matches(rule.op, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"{rule.text!r}: no trace of either side has an op of type {rule.op!r}.{hint}")


def worst(outcomes: Sequence[Outcome]) -> State:
    states = {outcome.state for outcome in outcomes}
    return "FAIL" if "FAIL" in states else "INCONCLUSIVE" if "INCONCLUSIVE" in states else "PASS"


def _outcome(comparison: Comparison, rule: Rule) -> Outcome:
    if rule.metric == "findings":
        return _judge_findings(comparison, rule)
    if rule.metric in _SHARES:
        return _judge_share(comparison, rule)
    if rule.metric == _GROWTH:
        return _judge_growth(comparison, rule)
    shift = comparison.op_type(rule.op) if rule.op else comparison.shifts.get(rule.metric)
    if shift is None:
        return Outcome(rule.text, "INCONCLUSIVE", _why_unknown(rule), lacks_data=True)
    interval = f"{shift.shift:+.1%} ({shift.low:+.1%} to {shift.high:+.1%})"
    if shift.basis == "sessions" and (shift.high < rule.threshold or shift.low == shift.high == rule.threshold):
        return Outcome(rule.text, "PASS", interval)
    if shift.basis == "sessions" and shift.low > rule.threshold:
        return Outcome(rule.text, "FAIL", interval)
    return Outcome(rule.text, "INCONCLUSIVE", f"{interval}. {_advice(shift, rule.threshold)}")


def _judge_findings(comparison: Comparison, rule: Rule) -> Outcome:
    if not all(any(each.traces for each in side) for side in (comparison.a, comparison.b)):
        return Outcome(rule.text, "INCONCLUSIVE", f"A side has no trace. {RECORD}", lacks_data=True)
    new = comparison.new_findings
    why = f"{len(new)} new: {', '.join(new)}" if new else "no new findings"
    return Outcome(rule.text, "FAIL" if len(new) > rule.threshold else "PASS", why)


def _judge_share(comparison: Comparison, rule: Rule) -> Outcome:
    shares = [each.shares[rule.metric] for each in comparison.b if rule.metric in each.shares]
    if len(shares) < len(comparison.b):
        return Outcome(rule.text, "INCONCLUSIVE", "A session after the change has no ledger.", lacks_data=True)
    why = f"{min(shares):.1%} to {max(shares):.1%} of the wall time" if len(shares) > 1 else f"{shares[0]:.1%} of the wall time"
    return _judge_values(rule, shares, why)


def _judge_growth(comparison: Comparison, rule: Rule) -> Outcome:
    rates = [each.growth_rate for each in comparison.b if each.growth_rate is not None]
    if len(rates) < len(comparison.b):
        why = "For a session after the change, the memory growth is not known: the session is too short or too old."
        return Outcome(rule.text, "INCONCLUSIVE", why, lacks_data=True)
    low, high = (f"{rate * 60 / 1e6:.3g}" for rate in (min(rates), max(rates)))
    return _judge_values(rule, rates, f"{low} MB/min" if low == high else f"{low} to {high} MB/min")


def _judge_values(rule: Rule, values: Sequence[float], why: str) -> Outcome:
    """Return PASS if no value is above the limit, FAIL if all are, else INCONCLUSIVE."""
    above = sum(value > rule.threshold for value in values)
    state: State = "PASS" if not above else "FAIL" if above == len(values) else "INCONCLUSIVE"
    return Outcome(rule.text, state, why)


def _advice(shift: Shift, threshold: float) -> str:
    sessions = shift.sessions_to_decide(threshold)
    if shift.basis == "assumed":
        return f"One session a side decides nothing; {sessions or 'many'} a side might, if sessions differ by {shift.spread:.0%}."
    if sessions is None and shift.high - shift.low > MAX_WIDTH:
        return "The sessions of a side differ too much to tell how many more would decide it."
    if sessions is None:
        return "It is so close to the limit that more sessions would hardly decide it."
    if sessions <= min(shift.sessions_a, shift.sessions_b):  # so many sessions have not decided it
        sessions = min(shift.sessions_a, shift.sessions_b) + 1
    return f"By what these sessions differ, about {sessions} a side would decide it."


def _why_unknown(rule: Rule) -> str:
    if rule.op:
        return f"A side has no trace with an op of type {rule.op}. {RECORD}"
    if rule.metric in METRICS[:3]:  # step, p99, gap
        return "A side has no steps besides the warm-up and traced steps."
    of_memory = " Traces of compiled functions on a CPU do not record memory." if rule.metric == "memory" else ""
    return f"A side has no trace that records it.{of_memory} {RECORD}"
