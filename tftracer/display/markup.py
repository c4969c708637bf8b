"""Pieces of HTML for notebooks: escaped, without scripts and style sheets, in the colours of the notebook's theme.

Texts come from files, so they are escaped: no part of them acts as HTML, mathematics (``$...$``) or control characters.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence

from tftracer.display.escaped_lines import shown_plainly
from tftracer.errors import TracerError

#: Maximum length of a text; longer texts are shortened, because names of ops can have any length.
MAX_CHARACTERS = 300
_EDGE = "1px solid rgba(128, 128, 128, 0.35)"
_BLOCK = "font-family: system-ui, sans-serif; font-size: 13px; line-height: 1.5; color: inherit; overflow-x: auto"
_CELL = (
    f"padding: 2px 10px 2px 0; border: 0; border-bottom: {_EDGE}; background: transparent; color: inherit; vertical-align: top"
)


def text(value: object, limit: int = MAX_CHARACTERS) -> str:
    """Return any text as HTML, shortened."""
    shown = str(value)
    shown = shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return html.escape(shown_plainly(shown))


def block(title: str, *parts: str) -> str:
    """Return the HTML of one object, which MathJax ignores. ``title`` is text, the parts are HTML."""
    inside = "".join(parts)
    head = f'<div style="font-weight: 600">{text(title)}</div>'
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{_BLOCK}">{head}{inside}</div>'


def paragraph(content: str) -> str:
    return f'<div style="margin: 2px 0">{text(content, 1000)}</div>'


def note(content: str) -> str:
    """Return a less important paragraph."""
    return f'<div style="margin: 2px 0; opacity: 0.7">{text(content, 1000)}</div>'


def points(contents: Iterable[str]) -> str:
    items = "".join(f'<li style="margin: 2px 0">{text(content, 1000)}</li>' for content in contents)
    return f'<ul style="margin: 4px 0; padding-left: 20px">{items}</ul>' if items else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Columns whose head begins with a space hold numbers and are aligned to the right."""
    aligned = ["right" if head.startswith(" ") else "left" for head in heads]
    body = "".join(_row("td", row, aligned) for row in rows)
    if not body:
        return ""
    style = "border-collapse: collapse; border: 0; margin: 6px 0; font-size: 12px; font-variant-numeric: tabular-nums"
    return f'<table style="{style}"><thead>{_row("th", heads, aligned)}</thead><tbody>{body}</tbody></table>'


def _row(tag: str, cells: Sequence[str], aligned: Sequence[str]) -> str:
    marked = (f'<{tag} style="text-align: {side}; {_CELL}">{text(cell.strip())}</{tag}>' for cell, side in zip(cells, aligned))
    return f'<tr style="background: transparent">{"".join(marked)}</tr>'


def shown(title: str, render: Callable[[], str]) -> str:
    """Return the result of ``render``; if it raises, a text with the error, because a notebook would print a traceback."""
    try:
        return render()
    except Exception as error:
        kind = "" if isinstance(error, TracerError) else f"{type(error).__name__}: "
        return block(title, paragraph(f"It cannot be shown: {kind}{error}"))
