"""``examples/compare_in_ci.sh``: two commits of a script that trains, recorded in turns and compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.tf

EXAMPLE = Path(__file__).parents[2] / "examples/compare_in_ci.sh"
TRAIN = """
import sys
import tensorflow as tf
@tf.function
def step(x):
    return tf.reduce_sum(tf.matmul(x, x))
for _ in range(int(sys.argv[1])):
    step(tf.ones([8, 8]))
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_two_commits_are_compared(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for message in ("before", "after"):
        (tmp_path / "train.py").write_text(f"# {message}\n{TRAIN}")
        git(tmp_path, "add", "train.py")
        git(tmp_path, "commit", "-q", "-m", message)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": str(tmp_path / "spool")}
    command = ["bash", str(EXAMPLE), "HEAD~1", "HEAD", "1", "train.py", "300"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stdout + done.stderr
    assert "INCONCLUSIVE step > 5%" in done.stdout and "One session a side" in done.stdout
    names = {file.name for file in (tmp_path / "sessions").iterdir()}
    assert names == {"before-1.tftrace", "after-1.tftrace", "compare.xml"}
    assert ElementTree.parse(tmp_path / "sessions/compare.xml").getroot().get("errors") == "1"
    trees = subprocess.run(["git", "worktree", "list"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert len(trees.splitlines()) == 1
