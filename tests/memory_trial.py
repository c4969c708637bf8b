"""Runs a script of tf/memory_cases.py, and says what its session's file knows of its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import tftracer
from tftracer.contract.memory_growth import ProcessMemory

CASES = Path(__file__).with_name("tf") / "memory_cases.py"
#: Leak -> what it is put down to.
KINDS = {
    "tensors": "tensors",
    "retracing": "functions",
    "graph_ops": "ops",
    "iterators": "iterators",
    "callbacks": "objects",
    "arrays": "containers",
    "sessions": "sessions",
    "cycle": "garbage",
    "metrics": "containers",
    "native": "unknown",
}


class Trial(NamedTuple):
    memory: ProcessMemory
    exit: int
    text: str  # of the summary
    stderr: str


def balanced() -> list[str]:
    return re.findall(r"@balanced\ndef (\w+)", CASES.read_text())


def planted_line(case: str) -> str:
    """ "memory_cases.py:12"; "" of a leak without a line."""
    lines = CASES.read_text().splitlines()
    begin = lines.index(f"def {case}(tf: Any) -> None:")
    end = next((at for at, line in enumerate(lines) if at > begin and line.startswith("@")), len(lines))
    return next((f"{CASES.name}:{at + 1}" for at in range(begin, end) if lines[at].endswith("# LEAK")), "")


def run(case: str, folder: Path, seconds: float, mb_per_s: float, proof_s: float | None = None) -> Trial:
    spool = folder / "spool"
    environment = {**os.environ, "TFTRACER_SPOOL_DIR": str(spool), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONFAULTHANDLER": "1"}
    if proof_s is not None:
        environment["TFTRACER_MEMORY_PROOF_S"] = str(proof_s)
    command = [sys.executable, str(CASES), case, str(seconds), str(mb_per_s)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    (file,) = spool.glob("*.tftrace")
    with tftracer.open(file) as session:
        memory = session.source.memory_growth()
    summary = subprocess.run(
        [sys.executable, "-m", "tftracer", str(file), "--summary"], env=environment, capture_output=True, text=True, check=True
    )
    return Trial(memory, done.returncode, summary.stdout, done.stderr)
