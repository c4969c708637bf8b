"""Real steps that compute nearly all the time (benchmarks/record_compute_steps.py): slow by one thing each, or balanced.

Thresholds were chosen on the first set. This is the second: other sizes of the same models. The slow kinds were recorded while
other work took more than half of the machine, so that the times of single ops are as uneven as they get; the balanced ones, and
those that are slow because the machine is busy, on a machine where nothing else ran.
"""

from __future__ import annotations

import lzma
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext
from tftracer.trace.verdict.rules import COMPUTING_CODES

STEPS = Path(__file__).parents[2] / "data" / "compute_steps"
SLOW = {
    "float64": "float64",
    "transposes": "layout",
    "slow_kernel": "slow_kernel",
    "elementwise": "elementwise",
    "dense_update": "dense_update",
    "one_thread": "one_core",
    "busy_machine": "busy_machine",
}
#: What was recorded with a context of that time.
KNOWN = {field.name for field in fields(TraceContext)}
BALANCED = ("mlp", "convnet", "transformer", "lstm")


def verdicts(kind: str, which: int = 2) -> list[list[str]]:
    """Of each trace, with the times of three others of its run as on the page: the codes of its sentences."""
    found = []
    for path in sorted(STEPS.glob(f"{kind}_{which}_*.xz")):
        recorded: dict[str, Any] = msgpack.unpackb(lzma.decompress(path.read_bytes()))
        contexts = [{name: value for name, value in trace["context"].items() if name in KNOWN} for trace in recorded["traces"]]
        run = [Answers(trace["raw"], TraceContext(**context)) for trace, context in zip(recorded["traces"], contexts)]
        totals = [answers.op_totals("name") for answers in run]
        for number, answers in enumerate(run):
            other_traces = [each for position, each in enumerate(totals) if position != number][-3:]
            sentences = answers.verdict(other_traces=other_traces)["sentences"]
            found.append([sentence["code"] for sentence in sentences])
    return found


@pytest.mark.parametrize("kind", SLOW)
def test_each_kind_of_slow_step_is_named_in_eleven_of_twelve(kind: str) -> None:
    codes = verdicts(kind)
    assert len(codes) == 12
    assert sum(SLOW[kind] in named for named in codes) >= 11, codes
    others = Counter(code for named in codes for code in named if code in COMPUTING_CODES - {SLOW[kind], "busy_machine"})
    assert sum(others.values()) <= 1, others


def test_at_most_one_of_36_balanced_steps_is_blamed() -> None:
    blamed, traces = [], 0
    for kind in BALANCED:
        for codes in verdicts(kind):
            traces += 1
            blamed += [(kind, code) for code in codes if code in COMPUTING_CODES]
    assert traces == 36 and len(blamed) <= 1, blamed
