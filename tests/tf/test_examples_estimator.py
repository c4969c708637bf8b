"""The Estimator example, on TensorFlow up to 2.15 (conftest.py leaves this file out on later ones, which have no Estimator)."""

from __future__ import annotations

from pathlib import Path

from ledger_trial import run
from tf.test_examples import run_example


def test_estimator_trains_and_evaluates(tmp_path: Path) -> None:
    done = run_example(tmp_path, "estimator.py", "--steps", "30")
    assert "confusion" in done.stdout


def test_an_estimators_predictions_are_no_steps_in_the_ledger(tmp_path: Path) -> None:
    trial = run("estimator", tmp_path, 3.0)
    assert trial.exit == 0
    slow = [item for part in trial.ledger["parts"] if part["kind"] == "slow" for item in part["items"]]
    within_steps = sum(item["duration_s"] for item in slow if " between steps" not in item["name"])  # on a busy machine
    evaluated = trial.seconds["evaluation"] + within_steps
    assert evaluated > 0.9 * trial.truth["evaluation"] - 0.1, trial
    assert trial.seconds["steps"] < 0.5 * trial.truth["evaluation"], trial
    assert trial.seconds["python"] > 0.9 * 80 * 0.01 * 3.0, trial
