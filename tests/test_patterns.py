"""No regular expression of the package takes long for hostile text: the time is linear in its length."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "hostile_patterns.py"


def test_every_expression_is_linear() -> None:
    """In a process of its own, whose processor time the kernel measures."""
    folders = os.pathsep.join([str(PROGRAM.parent), str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": folders}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"(\d+) expressions tried", done.stdout)
    assert tried and int(tried[1]) > 100
