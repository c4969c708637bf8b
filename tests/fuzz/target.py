"""One reader under atheris, guided by coverage: python tests/fuzz/target.py NAME [libFuzzer's options] [corpus]."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
with atheris.instrument_imports(include=["tftracer"]):
    from tests.fuzz import targets


def main() -> None:
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, lambda data: targets.one_input(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
