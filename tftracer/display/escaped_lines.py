"""Escapes texts from files that may be hostile: a name could add lines to the output, or control a terminal or a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def joined(lines: Iterable[str]) -> str:
    """Join lines; a line break within one of them becomes ``\\n``."""
    return "\n".join(line.replace("\n", "\\n") for line in lines)


def shown_plainly(text: str) -> str:
    """Replace characters that are not printable by U+FFFD: they control a terminal, reverse a text, or are forbidden in XML."""
    return "".join(character if character.isprintable() else "�" for character in text)


def without_breaks(value: Any) -> Any:
    """Return JSON values with the line breaks in all texts replaced by ``\\n``."""
    if isinstance(value, str):
        return joined([value])
    if isinstance(value, dict):
        return {key: without_breaks(inner) for key, inner in value.items()}
    return [without_breaks(inner) for inner in value] if isinstance(value, (list, tuple)) else value
