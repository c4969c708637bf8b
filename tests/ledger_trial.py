"""Runs a script of tf/ledger_cases.py, and says what its ledger makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import tftracer
from tftracer.contract.ledger import Ledger

CASES = Path(__file__).with_name("tf") / "ledger_cases.py"
#: Those that need another TensorFlow than the others.
ESTIMATORS = ("estimator",)


class Trial(NamedTuple):
    truth: dict[str, float]  # kind -> seconds that were planted
    ledger: Ledger
    seconds: dict[str, float]  # kind -> seconds in the ledger
    exit: int


def run(case: str, folder: Path, seconds: float) -> Trial:
    truth, spool = folder / "truth.json", folder / "spool"
    environment = {**os.environ, "TFTRACER_SPOOL_DIR": str(spool), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, str(CASES), case, str(truth), str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert truth.exists(), done.stderr[-3000:]
    (file,) = spool.glob("*.tftrace")
    with tftracer.open(file) as session:
        ledger = session.source.ledger()
        parts = {str(row["kind"]): row["duration_ns"] / 1e9 for row in session.ledger()}
    return Trial(json.loads(truth.read_text()), ledger, parts, done.returncode)
