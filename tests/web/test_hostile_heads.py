"""No head of a request holds the process: each kind gets its answer after a second of processor time at most."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hostile_heads import HEADS

PROGRAM = Path(__file__).parents[1] / "hostile_heads.py"


def test_no_head_holds_the_process() -> None:
    """The kernel kills the server that spends more on one of them."""
    assert len(HEADS) >= 20
    folders = os.pathsep.join([str(PROGRAM.parent), str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=False,
    )
    answers = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, answers[-1:], done.stderr[-2000:])
    assert len(answers) == 3 * len(HEADS)
    assert not done.stderr
