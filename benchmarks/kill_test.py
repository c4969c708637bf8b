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
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from tf import killing  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=200)
    options = parser.parse_args()
    kills = []
    for seed in range(options.times):
        with tempfile.TemporaryDirectory() as folder:
            kills.append(killing.kill_and_look(Path(folder), random.Random(seed)))
        if len(kills) % 20 == 0:
            print(f"{len(kills)} kills so far", flush=True)
    announced, cut, rewriting = (sum(column) for column in zip(*kills))
    print(f"{len(kills)} kills, {announced} traces announced as done, none lost")
    print(f"{cut} spools ended inside a record, {rewriting} were being rewritten")


if __name__ == "__main__":
    main()
