"""The outcomes of a gate as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from tftracer.comparison.gate import Outcome


def as_junit(outcomes: Sequence[Outcome]) -> str:
    """A rule is a test: one that fails is a failure, one that is inconclusive an error."""
    counts = {state: str(sum(outcome.state == state for outcome in outcomes)) for state in ("FAIL", "INCONCLUSIVE")}
    attributes = {"name": "tftracer compare", "tests": str(len(outcomes))}
    suite = ElementTree.Element("testsuite", {**attributes, "failures": counts["FAIL"], "errors": counts["INCONCLUSIVE"]})
    for outcome in outcomes:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "tftracer.compare", "name": _clean(outcome.rule)})
        if outcome.state == "PASS":
            ElementTree.SubElement(case, "system-out").text = _clean(outcome.why)
        else:
            kind = "failure" if outcome.state == "FAIL" else "error"
            ElementTree.SubElement(case, kind, {"type": outcome.state, "message": _clean(outcome.why)})
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """XML has no control characters."""
    return "".join(character if character.isprintable() else "�" for character in text)
