"""One reader under atheris, guided by coverage: python tests/fuzz/target.py NAME [libFuzzer's options] [corpus]."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))
with atheris.instrument_imports(include=["tftracer"]):
    from fuzz import changes, targets


LONGEST_S = 1.0
#: With questions about the file, instrumented.
ASKED_S = 60.0
#: One of so many questions is asked about an input: more inputs are tried in the same time, and each question meets thousands.
ONE_IN = 8


def main() -> None:
    name = sys.argv.pop(1)
    longest = ASKED_S if name in targets.ASKED else LONGEST_S

    def one_input(data: bytes) -> None:
        """The processor's time, not the clock's: another program may have the machine meanwhile."""
        started = time.process_time()
        targets.one_input(name, data, ONE_IN)
        spent = time.process_time() - started
        assert spent < longest, f"{spent:.1f} s for {len(data)} bytes"

    def with_values_changed(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        change = changes.changed_values if chance.random() < 0.8 else changes.changed
        return change(data, chance)[:most]

    custom = {"custom_mutator": with_values_changed} if name in targets.PROTOBUF else {}
    atheris.Setup(sys.argv, one_input, **custom)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
