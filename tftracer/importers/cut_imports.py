"""Recognizes unreadable files that were cut short, for example by an interrupted copy."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tftracer.errors import TruncatedError
from tftracer.trace.decode import wire

if TYPE_CHECKING:
    from google.protobuf import text_format

#: What may follow the position of the parser's error in a text that was cut: a part of one word, or a string that does not end.
_UNFINISHED = re.compile(r"\s*(?:\S*|[\"'][^\n]*)\s*")


def cut_short(kind: str) -> TruncatedError:
    return TruncatedError(f"this is {kind} that is cut short: copy it again")


def check_end(data: bytes, kind: str) -> None:
    """Raise ``TruncatedError`` if a serialized message of this kind ends within one of its fields."""
    try:
        for _ in wire.fields(data, 0, len(data)):
            pass
    except TruncatedError as error:
        raise cut_short(kind) from error


def is_cut_json(error: json.JSONDecodeError) -> bool:
    """Return whether the JSON text was valid up to its end."""
    return error.pos >= len(error.doc.rstrip()) - 1 or error.msg.startswith("Unterminated")


def is_cut_text(error: text_format.ParseError, text: str) -> bool:
    """Return whether a text in protobuf's text format was valid up to its end."""
    line, column = error.GetLine(), error.GetColumn()
    if line is None or column is None or text.count("{") < text.count("}"):
        return False
    lines = text.rstrip().split("\n")
    rest = lines[line - 1 :]
    return not rest or (len(rest) == 1 and _UNFINISHED.fullmatch(rest[0][column - 1 :]) is not None)
