"""Whether the ledger finds planted time: 18 scripts, each part within 2% or 1 s of the truth, all parts exactly 100%.

    python benchmarks/bench_ledger.py [SECONDS] [CASE...]

With TensorFlow 2.15 it runs the Estimator's script, with others all but that.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from ledger_trial import CASES, ESTIMATORS, run

ABSOLUTE_S, RELATIVE = 1.0, 0.02


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    import tensorflow as tf

    names = re.findall(r"@case\ndef (\w+)", CASES.read_text())
    has_estimators = hasattr(tf, "estimator")
    right = wrong = 0
    for name in sys.argv[2:] or [name for name in names if (name in ESTIMATORS) == has_estimators]:
        with tempfile.TemporaryDirectory() as folder:
            trial = run(name, Path(folder), seconds)
        is_right = sum(part["permille"] for part in trial.ledger["parts"]) == 1000
        for kind, planted in trial.truth.items():
            if kind != "calls":
                # Of a usual time between steps, the excess is a part of its own.
                found = trial.seconds.get(kind, 0.0) + (trial.seconds.get("slow", 0.0) if kind == "python" else 0.0)
                is_right &= abs(found - planted) <= max(ABSOLUTE_S, RELATIVE * trial.ledger["duration_s"])
                print(f"{name}: {kind} planted {planted:.2f} s, found {found:.2f} s of {trial.ledger['duration_s']:.1f} s")
        right, wrong = right + is_right, wrong + (not is_right)
        if not is_right:
            print(f"  WRONG: {trial.seconds}")
        sys.stdout.flush()
    print(f"{right} of {right + wrong} scripts right")


if __name__ == "__main__":
    main()
