"""kill -9 in the middle of tracing (benchmarks/kill_test.py does it 200 times)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tf import killing

pytestmark = pytest.mark.tf


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_what_was_announced_outlives_the_job(seed: int, tmp_path: Path) -> None:
    assert killing.kill_and_look(tmp_path, random.Random(seed)).announced > 0
