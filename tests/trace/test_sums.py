"""Figures of one answer add up, and those of one card agree, in every trace at hand."""

from __future__ import annotations

import gzip
import lzma
import re
from pathlib import Path

import pytest

from tftracer.trace.analyses.memory import MAX_TENSORS
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

DATA = Path(__file__).parents[1] / "data"
FILES = sorted([*DATA.glob("*.pb"), *(DATA / "xspace").glob("*.xplane.pb*")])
_OPENERS = {".xz": lzma.decompress, ".gz": gzip.decompress}


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name)
def answers(request: pytest.FixtureRequest) -> Answers:
    data = request.param.read_bytes()
    return Answers(_OPENERS.get(request.param.suffix, bytes)(data), TraceContext())


def test_the_parts_of_each_devices_budget_are_the_step(answers: Answers) -> None:
    budget = answers.budget()
    for device in (budget["whole"], *budget["devices"]):
        parts = {part: ns or 0.0 for part, ns in device["parts_ns"].items() if part != "hidden_communication"}
        assert sum(parts.values()) == pytest.approx(budget["step_ns"], abs=1), device["title"]


@pytest.mark.parametrize("by", ["type", "name"])
def test_the_shares_of_ops_are_the_whole_op_time(answers: Answers, by: str) -> None:
    statistics = answers.ops(by)  # type: ignore[arg-type]
    assert not statistics["left_out"]
    if statistics["rows"]:
        assert sum(row["share"] for row in statistics["rows"]) == pytest.approx(1)
        assert sum(row["total_ns"] for row in statistics["rows"]) == pytest.approx(statistics["total_ns"])


def test_the_tensors_that_are_alive_at_a_peak_are_the_peak_or_less_where_some_are_not_recorded(answers: Answers) -> None:
    memory = answers.memory()
    for curve in memory["curves"]:
        alive = [
            tensor["bytes"]
            for tensor in memory["tensors"]
            if (tensor["allocator"], tensor["device"]) == (curve["allocator"], curve["device"])
            and tensor["alloc_ns"] <= curve["peak_ns"] < tensor["free_ns"]
        ]
        assert sum(alive) <= curve["peak_bytes"]
        if answers.trace.source != "xspace" and memory["tensors_total"] <= MAX_TENSORS:
            assert sum(alive) == curve["peak_bytes"]


def test_a_cards_number_is_the_share_of_the_step_that_its_text_begins_with(answers: Answers) -> None:
    for sentence in answers.verdict()["sentences"]:
        assert 0 <= sentence["share"] <= 1
        told = re.match(r"[^%]*?(\d+)%\)? of the step[.;, ]", sentence["text"])
        if told:
            assert int(told.group(1)) == pytest.approx(100 * sentence["share"], abs=1), sentence["text"]
