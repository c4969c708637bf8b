"""Text in lines, for a terminal: a name from a hostile file may hold line breaks, and would print a line of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def joined(lines: Iterable[str]) -> str:
    """A line break within one of ``lines`` is written as ``\\n``."""
    return "\n".join(line.replace("\n", "\\n") for line in lines)


def without_breaks(value: Any) -> Any:
    """Plain values as JSON has them, with the line breaks in all texts written as ``\\n``."""
    if isinstance(value, str):
        return joined([value])
    if isinstance(value, dict):
        return {key: without_breaks(inner) for key, inner in value.items()}
    return [without_breaks(inner) for inner in value] if isinstance(value, (list, tuple)) else value
