"""Runs a script of tf/memory_cases.py, and says what its session's file knows of its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
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


def names_what_grows(memory: ProcessMemory) -> bool:
    return any(growth["things"] for growth in memory["growths"])


def run(
    case: str,
    folder: Path,
    seconds: float,
    mb_per_s: float,
    proof_s: float | None = None,
    until: Callable[[ProcessMemory], bool] | None = None,
) -> Trial:
    """Run a case for so many seconds, or until its file shows what is waited for."""
    spool, stop = folder / "spool", folder / "stop"
    environment = {**os.environ, "TFTRACER_SPOOL_DIR": str(spool), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONFAULTHANDLER": "1"}
    if proof_s is not None:
        environment["TFTRACER_MEMORY_PROOF_S"] = str(proof_s)
    command = [sys.executable, str(CASES), case, str(seconds), str(mb_per_s)]
    environment["MEMORY_TRIAL_STOP"] = str(stop)
    errors = folder / "errors"
    with errors.open("w") as file, subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file) as script:
        while until and script.poll() is None and not stop.exists():
            time.sleep(3)  # reading the file takes the CPU that the script needs
            if any(map(until, map(memory_of, spool.glob("*.tftrace")))):
                stop.touch()
        script.wait(900)
    (session_file,) = spool.glob("*.tftrace")
    memory = memory_of(session_file)
    summary = subprocess.run(
        [sys.executable, "-m", "tftracer", str(session_file), "--summary"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return Trial(memory, script.returncode, summary.stdout, errors.read_text())


def memory_of(file: Path) -> ProcessMemory:
    with tftracer.open(file) as session:
        return session.source.memory_growth()
