"""Parses regular expressions into syntax trees, with the parser of Python's ``re``. ``linear_regex.py`` matches them.

Syntax that needs backtracking is rejected (look-around, back references, atomic groups, possessive repeats), and so are inline
flags other than a leading ``(?i)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Union

from tftracer.errors import PatternError

try:
    from re import _parser as sre  # type: ignore[attr-defined]
except ImportError:  # Python 3.9 and 3.10
    import sre_parse as sre

#: Limits on patterns: far above what people write, and low enough to compile in milliseconds.
MAX_LENGTH = 1000
MAX_DEPTH = 50
MAX_REPEAT = 1000

_CATEGORIES = {
    getattr(sre, f"CATEGORY_{name}"): letter
    for name, letter in (("DIGIT", "d"), ("SPACE", "s"), ("WORD", "w"), ("NOT_DIGIT", "D"), ("NOT_SPACE", "S"), ("NOT_WORD", "W"))
}
_ASSERTIONS = {
    sre.AT_BEGINNING: "start",
    sre.AT_BEGINNING_STRING: "start",
    sre.AT_END: "end",
    sre.AT_END_STRING: "end",
    sre.AT_BOUNDARY: "boundary",
    sre.AT_NON_BOUNDARY: "not boundary",
}
_UNSUPPORTED = {"GROUPREF": "back references", "POSSESSIVE_REPEAT": "possessive repeats", "ATOMIC_GROUP": "atomic groups"}


@dataclass(frozen=True)
class CharSet:
    """A set of characters: ranges and categories (``d``, ``w``, ``s``; upper case: the opposite). ``negated``: all others."""

    ranges: tuple[tuple[int, int], ...] = ()
    categories: str = ""
    negated: bool = False


@dataclass(frozen=True)
class Assertion:
    kind: str  # one of _ASSERTIONS' values


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    body: Node
    minimum: int
    maximum: int | None  # None: without limit


Node = Union[CharSet, Assertion, Sequence, Choice, Repeat]

WORD = CharSet(categories="w")
_ANY = CharSet(ranges=((10, 10),), negated=True)


def parsed(text: str) -> tuple[Node, bool]:
    """Return (the tree of a pattern, whether it ignores case). Raises PatternError if it is invalid or not supported."""
    if len(text) > MAX_LENGTH:
        raise PatternError(f"a pattern of {len(text):,} characters is too long; use at most {MAX_LENGTH:,}")
    try:
        items = sre.parse(text)
    except re.error as error:
        raise PatternError(f"{error} of {text!r}") from error
    except (RecursionError, OverflowError) as error:
        raise PatternError(f"{text!r} has too many groups within groups, or repeats too much") from error
    if items.state.flags & ~(re.UNICODE | re.IGNORECASE):
        _refuse("flags other than (?i)", text)
    return _sequence(items, text, 0), bool(items.state.flags & re.IGNORECASE)


def _refuse(syntax: str, text: str) -> NoReturn:
    raise PatternError(f"{syntax} are not supported: {text!r}")


def _sequence(items: Iterable[tuple[Any, Any]], text: str, depth: int) -> Sequence:
    if depth > MAX_DEPTH:
        _refuse(f"groups within groups, more than {MAX_DEPTH} deep,", text)
    return Sequence(tuple(_node(kind, value, text, depth) for kind, value in items))


def _node(kind: Any, value: Any, text: str, depth: int) -> Node:
    if kind is sre.AT:
        return Assertion(_ASSERTIONS[value])
    if kind is sre.BRANCH:
        return Choice(tuple(_sequence(branch, text, depth + 1) for branch in value[1]))
    if kind is sre.SUBPATTERN and not value[1] and not value[2]:
        return _sequence(value[3], text, depth + 1)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):  # greedy or not: whether the text matches is the same
        minimum, maximum, body = value
        if max(minimum, 0 if maximum is sre.MAXREPEAT else maximum) > MAX_REPEAT:
            _refuse(f"repeats of more than {MAX_REPEAT:,}", text)
        return Repeat(_sequence(body, text, depth + 1), minimum, None if maximum is sre.MAXREPEAT else maximum)
    if kind is sre.ANY:
        return _ANY
    if kind in (sre.LITERAL, sre.NOT_LITERAL):
        return CharSet(((value, value),), negated=kind is sre.NOT_LITERAL)
    if kind is sre.IN:
        return _characters(value)
    _refuse(_UNSUPPORTED.get(kind.name, "look-around, conditions and flags"), text)


def _characters(items: list[tuple[Any, Any]]) -> CharSet:
    ranges = [(value, value) if kind is sre.LITERAL else value for kind, value in items if kind in (sre.LITERAL, sre.RANGE)]
    categories = "".join(_CATEGORIES[value] for kind, value in items if kind is sre.CATEGORY)
    return CharSet(tuple(ranges), categories, items[0][0] is sre.NEGATE)
