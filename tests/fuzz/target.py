"""One reader under atheris, guided by coverage: python tests/fuzz/target.py NAME [libFuzzer's options] [corpus]."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
with atheris.instrument_imports(include=["tftracer"]):
    from tests.fuzz import targets


LONGEST_S = 1.0


def main() -> None:
    name = sys.argv.pop(1)

    def one_input(data: bytes) -> None:
        """The processor's time, not the clock's: another program may have the machine meanwhile."""
        started = time.process_time()
        targets.one_input(name, data)
        spent = time.process_time() - started
        assert spent < LONGEST_S, f"{spent:.1f} s for {len(data)} bytes"

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
