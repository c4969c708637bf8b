"""Formats a comparison for a terminal and as JSON, and its outcomes as JUnit XML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from tftracer.comparison.comparison import Comparison
from tftracer.comparison.gate import Outcome
from tftracer.comparison.session_ops import MIN_SESSIONS, OpChange
from tftracer.comparison.shift import CONFIDENCE, Shift
from tftracer.comparison.values_of_session import Measured
from tftracer.comparison.wording import FLOORS, OPS_NOT_COMPARED, interval, outcome, title, value
from tftracer.display.escaped_lines import joined, shown_plainly
from tftracer.trace.units import counted, duration

_SHOWN_OPS = 10
_WIDTH = 60


def as_text(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    return joined(_lines(comparison, outcomes))


def as_json(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> dict[str, Any]:
    """Return JSON values. Times are in ns. A shift is the relative difference of b to a; 0.05 means 5% more."""
    ops = asdict(comparison.ops)
    ops["changes"] = [{**asdict(change), "delta_ns": change.delta_ns} for change in comparison.ops.changes]
    return {
        "run": comparison.run,
        "a": [_session_values(each) for each in comparison.a],
        "b": [_session_values(each) for each in comparison.b],
        "confidence": CONFIDENCE,
        "shifts": {metric: {**asdict(shift), "differs": shift.differs} for metric, shift in comparison.shifts.items()},
        "ops": ops,
        "new_findings": comparison.new_findings,
        "warnings": comparison.warnings,
        "rules": [asdict(each) for each in outcomes],
    }


def _session_values(session: Measured) -> dict[str, Any]:
    return {
        "name": session.name,
        "steps": session.steps,
        "traces": session.traces,
        "values": dict(session.values),
        **session.facts,
    }


def _lines(comparison: Comparison, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"{comparison.run[:100]}: {counted(len(comparison.a), 'session')} before, {counted(len(comparison.b), 'session')} after"
    yield ""
    if not comparison.shifts:
        yield "Steps and traces cannot be compared: one side has no traces, and no steps besides the warm-up."
    yield from (_shift_line(shift) for shift in comparison.shifts.values() if shift.a or shift.b)
    yield from _op_lines(comparison)
    if comparison.new_findings:
        yield ""
        yield f"New findings: {', '.join(comparison.new_findings)}"
    for warning in comparison.warnings:
        yield from ("", *textwrap.wrap(f"Note: {warning}", 110))
    if outcomes:
        yield ""
        yield from (f"{each.state:12} {each.rule}: {each.why}" for each in outcomes)


def _shift_line(shift: Shift) -> str:
    values = f"{value(shift.metric, shift.a)} -> {value(shift.metric, shift.b)}"
    return f"{title(shift.metric):16} {values:24} {f'{shift.shift:+.1%}  ({interval(shift)})':28} {outcome(shift)}"


def _op_lines(comparison: Comparison) -> Iterator[str]:
    ops, traced = comparison.ops, [sum(1 for each in side if each.traces) for side in (comparison.a, comparison.b)]
    yield ""
    if not all(traced):
        yield OPS_NOT_COMPARED
        return
    listed = [change for change in ops.changes if change.separated]
    if ops.enough_sessions:
        end = ":" if listed else "."
        yield f"{len(listed)} of {ops.compared} ops differ by more than chance explains, and by {FLOORS}{end}"
    else:
        yield f"Ops whose medians differ by {FLOORS}. To rule out chance, it takes {MIN_SESSIONS} sessions a side, in turns:"
        listed = ops.changes
    yield from map(_op_line, listed[:_SHOWN_OPS])
    if not listed and not ops.enough_sessions:
        yield "  none"
    if len(listed) > _SHOWN_OPS:
        yield f"  and {len(listed) - _SHOWN_OPS:,} more"
    yield from textwrap.wrap(ops.smallest_difference, 110)
    for side, times in (("before", ops.only_a), ("after", ops.only_b)):
        if times:
            more = f", and {len(times) - 5:,} more" if len(times) > 5 else ""
            yield f"Only {side}: {', '.join(f'{key[:_WIDTH]} {duration(ns)}' for key, ns in list(times.items())[:5])}{more}"


def _op_line(change: OpChange) -> str:
    ratio = f"{change.delta_ns / change.a_ns:+.0%}" if change.a_ns else ""
    of_shortest = "  (shortest time in each session's traces)" if change.of_shortest else ""
    return f"  {change.key[:_WIDTH]:{_WIDTH}} {duration(change.a_ns):>9} -> {duration(change.b_ns):>9}  {ratio}{of_shortest}"


def as_junit(outcomes: Sequence[Outcome]) -> str:
    """Return JUnit XML, which CI systems show as tests: a failed rule is a failure, an inconclusive rule an error."""
    counts = {state: str(sum(each.state == state for each in outcomes)) for state in ("FAIL", "INCONCLUSIVE")}
    attributes = {"name": "tftracer compare", "tests": str(len(outcomes))}
    suite = ElementTree.Element("testsuite", {**attributes, "failures": counts["FAIL"], "errors": counts["INCONCLUSIVE"]})
    for each in outcomes:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "tftracer.compare", "name": shown_plainly(each.rule)})
        if each.state == "PASS":
            ElementTree.SubElement(case, "system-out").text = shown_plainly(each.why)
        else:
            kind = "failure" if each.state == "FAIL" else "error"
            ElementTree.SubElement(case, kind, {"type": each.state, "message": shown_plainly(each.why)})
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
