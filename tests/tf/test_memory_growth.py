"""Memory that grows in a training is told with what grows. A proof takes 10 s here, not 60."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_trial import KINDS, names_what_grows, planted_line, run

NAMES = {"retracing": "train_step", "graph_ops": "Operation", "arrays": "kept, a list", "tensors": "kept, a list"}


@pytest.mark.parametrize("leak", NAMES)
def test_what_grows_with_the_memory_is_named_with_its_line(tmp_path: Path, leak: str) -> None:
    trial = run(leak, tmp_path, 600.0, 2.0, proof_s=10.0, until=names_what_grows)
    assert trial.exit == 0, trial.stderr
    growth = trial.memory["growths"][0]
    thing = growth["things"][0]
    assert (growth["kind"], thing["name"], thing["place"]) == (KINDS[leak], NAMES[leak], planted_line(leak)), growth
    assert growth["bytes_rate"] > 0
    assert "With it grow" in " ".join(trial.text.split())  # it is wrapped


def test_an_even_training_does_not_grow(tmp_path: Path) -> None:
    trial = run("plain_function", tmp_path, 25.0, 2.0, proof_s=10.0)
    assert trial.exit == 0, trial.stderr
    assert not trial.memory["growths"], trial.memory["growths"]
    assert trial.memory["growth_rate"] == 0
