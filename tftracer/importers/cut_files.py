"""Tells files that were cut short, as an interrupted copy leaves them, from others that cannot be read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tftracer.errors import TruncatedError
from tftracer.trace.decode import wire

if TYPE_CHECKING:
    from google.protobuf import text_format

#: What may be left of a text behind the place where its parser gave up: part of one word, or a string that does not end.
_UNFINISHED = re.compile(r"\s*(?:\S*|[\"'][^\n]*)\s*")


def cut_short(kind: str) -> TruncatedError:
    return TruncatedError(f"this is {kind} that is cut short: copy it again")


def check_end(data: bytes, kind: str) -> None:
    """``TruncatedError`` for a serialized message of this kind that ends within one of its fields."""
    try:
        for _ in wire.fields(data, 0, len(data)):
            pass
    except TruncatedError as error:
        raise cut_short(kind) from error


def is_cut_json(error: json.JSONDecodeError) -> bool:
    """Whether the text was right up to its end."""
    return error.pos >= len(error.doc.rstrip()) - 1 or error.msg.startswith("Unterminated")


def is_cut_text(error: text_format.ParseError, text: str) -> bool:
    """The same of ``text`` in protobuf's text format. The error says in which line and column it is."""
    line, column = error.GetLine(), error.GetColumn()
    if line is None or column is None or text.count("{") < text.count("}"):
        return False
    lines = text.rstrip().split("\n")
    rest = lines[line - 1 :]
    return not rest or (len(rest) == 1 and _UNFINISHED.fullmatch(rest[0][column - 1 :]) is not None)
