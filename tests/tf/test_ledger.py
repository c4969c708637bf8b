"""Where the time of real scripts went: benchmarks/bench_ledger.py has more of them, and longer ones."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from ledger_trial import run

SECONDS = 3.0


@pytest.mark.parametrize(
    "case", ["slow_generator", "retracing", "checkpoints", "keras_validation", "session_checkpoints", "killed"]
)
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
