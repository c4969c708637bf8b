"""The Estimator example, on TensorFlow up to 2.15 (conftest.py leaves this file out on later ones, which have no Estimator)."""

from __future__ import annotations

from pathlib import Path

from tf.test_examples import run_example


def test_estimator_trains_and_evaluates(tmp_path: Path) -> None:
    done = run_example(tmp_path, "estimator.py", "--steps", "30")
    assert "confusion" in done.stdout
