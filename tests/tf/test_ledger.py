"""Where the time of real scripts went: benchmarks/bench_ledger.py has more of them, and longer ones."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from ledger_trial import run

SECONDS = 3.0


CASES = ["slow_generator", "retracing", "checkpoints", "checkpoint_manager", "keras_validation"]
SESSIONS = ["session_checkpoints", "input_that_ends", "killed"]


@pytest.mark.parametrize("case", CASES + SESSIONS)
def test_time_is_found_where_it_was_planted(case: str, tmp_path: Path) -> None:
    trial = run(case, tmp_path, SECONDS)
    assert trial.exit == (-signal.SIGKILL if case == "killed" else 0)
    assert sum(part["permille"] for part in trial.ledger["parts"]) == 1000
    assert sum(trial.seconds.values()) == pytest.approx(trial.ledger["duration_s"], abs=1e-6)
    started, until = trial.ledger["started_at"], trial.ledger["until"]
    assert started is not None and until is not None
    assert trial.ledger["duration_s"] == pytest.approx(until - started, abs=0.5)  # of two clocks
    for kind, planted in trial.truth.items():
        # Of the planted time nothing is missing; a busy machine may add to it.
        assert kind == "calls" or trial.seconds.get(kind, 0.0) > 0.9 * planted - 0.1, trial


def test_lines_between_steps_are_of_no_other_part(tmp_path: Path) -> None:
    trial = run("lines_between_steps", tmp_path, SECONDS)
    assert trial.exit == 0
    (part,) = (part for part in trial.ledger["parts"] if part["kind"] == "python")
    named = {each["name"].partition(" ")[0]: each["duration_s"] for each in part["items"]}
    assert max(named, key=lambda name: named[name]) == "wait", part
    assert sum(named.values()) <= part["duration_s"] * 1.001
    assert trial.seconds["checkpoints"] > 0.9 * trial.truth["checkpoints"] - 0.1, trial
