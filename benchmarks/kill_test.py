"""kill -9 at random moments of a real job that is tracing: after each, the spool must hold every trace announced as done.

python benchmarks/kill_test.py [--times N]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests/tf")]

import killing  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=200)
    options = parser.parse_args()
    traces = 0
    for seed in range(options.times):
        with tempfile.TemporaryDirectory() as folder:
            traces += killing.kill_and_look(Path(folder), random.Random(seed))
    print(f"{options.times} kills, {traces} traces announced as done, none lost")


if __name__ == "__main__":
    main()
