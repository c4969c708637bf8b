"""A short part of `make fuzz`: every reader takes some hundred changed files, from a fixed seed, and bears them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz import run, targets
from fuzz.changes import changed, changed_values

#: So many changed files of each, 300 of the others; of these, every question is asked.
CHANGES = {"session": 8, "context": 8, "run_metadata": 15, "cost_graph": 4, "profile": 8, "any_file": 40}


@pytest.mark.parametrize("name", targets.TARGETS)
def test_changed_files_are_borne(name: str) -> None:
    chance = random.Random(name)
    samples = targets.seeds(name)
    assert samples
    for sample in samples:
        targets.one_input(name, sample)
    for _ in range(CHANGES.get(name, 300)):
        change = changed_values if name in targets.PROTOBUF and chance.random() < 0.8 else changed
        targets.one_input(name, change(min(chance.sample(samples, 2), key=len) if samples[1:] else samples[0], chance))


@pytest.mark.parametrize("path", targets.FOUND, ids=lambda path: path.stem)
def test_what_the_fuzzers_found_stays_fixed(path: Path) -> None:
    for name in targets.TARGETS:
        targets.one_input(name, path.read_bytes())


def test_make_fuzz_gives_every_reader_its_share_of_a_million() -> None:
    assert run.INPUTS.keys() == targets.TARGETS.keys(), "each of TARGETS in targets.py has a number in INPUTS of run.py"
    assert sum(run.INPUTS.values()) > 1_000_000
