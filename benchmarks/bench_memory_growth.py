"""Whether growth of memory is proven and explained: 10 planted leaks, and 20 trainings in which nothing grows.

    python benchmarks/bench_memory_growth.py [SECONDS] [CASE...]

Each runs for so long (120 s), four at a time; a leak grows by some 0.5 MB/s.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from memory_trial import KINDS, Trial, balanced, planted_line, run

MB_PER_S, AT_ONCE = 0.5, 4


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    names = sys.argv[2:] or [*KINDS, *balanced()]

    def trial(name: str) -> Trial:
        with tempfile.TemporaryDirectory() as folder:
            return run(name, Path(folder), seconds, MB_PER_S)

    kinds = lines = quiet = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, found in zip(names, pool.map(trial, names)):
            growths = found.memory["growths"]
            newest = growths[0] if growths else None
            kind, place = (
                ("", "") if newest is None else (newest["kind"], newest["things"][0]["place"] if newest["things"] else "")
            )
            if name in KINDS:
                kinds += kind == KINDS[name]
                lines += bool(place) and place == planted_line(name)
                planted = f"planted {KINDS[name]}, {planted_line(name) or 'no line'}"
                print(f"{name}: {kind or 'nothing'}, {place or 'no line'} ({planted})")
            else:
                quiet += not growths
                print(f"{name}: {'nothing' if not growths else kind}")
            if newest is not None:
                print("   ", newest["text"], *newest["doubts"])
            if found.exit:
                print(f"    exit status {found.exit}: {found.stderr[-2000:]}")
            sys.stdout.flush()
    print(f"{kinds} kinds and {lines} lines right; {quiet} trainings without a report")


if __name__ == "__main__":
    main()
