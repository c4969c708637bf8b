"""Escapes line breaks in text for a terminal: otherwise a name from a hostile file could add lines to the output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def joined(lines: Iterable[str]) -> str:
    """Join lines; a line break within one of them becomes ``\\n``."""
    return "\n".join(line.replace("\n", "\\n") for line in lines)


def without_breaks(value: Any) -> Any:
    """Return JSON values with the line breaks in all texts replaced by ``\\n``."""
    if isinstance(value, str):
        return joined([value])
    if isinstance(value, dict):
        return {key: without_breaks(inner) for key, inner in value.items()}
    return [without_breaks(inner) for inner in value] if isinstance(value, (list, tuple)) else value
