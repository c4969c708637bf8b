"""Prints the lowest version of each dependency that pyproject.toml allows, for pip: ``tornado==6.1 msgpack==1.0 ...``."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    line = re.search(r"^dependencies = \[(.*)\]$", PROJECT.read_text(encoding="utf-8"), re.MULTILINE)
    assert line, "pyproject.toml names no dependencies in one line"
    print(*(requirement.replace(">=", "==") for requirement in re.findall(r'"(\S+)"', line[1])))


if __name__ == "__main__":
    main()
