"""Regular expressions with search time linear in the length of the text, for patterns from any source.

Python's ``re`` backtracks: ``(a+)+$`` on thirty letters takes minutes and holds the GIL meanwhile. A pattern may come from an
untrusted file, so it is matched by an automaton: Thompson's construction, whose states are computed when they are first needed.
The work is bounded by the text's length times a constant, plus MAX_VISITS visits of positions; a pattern that needs more raises
PatternError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tftracer.errors import PatternError
from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.linear_regex_syntax import WORD, Assertion, CharSet, Choice, Node, Repeat, parsed

Mask = npt.NDArray[np.bool_]

#: Limits on an automaton's positions and states, and on the visits of positions in one search; PatternError if one is exceeded.
MAX_POSITIONS = 1000
MAX_STATES = 1000
MAX_VISITS = 1 << 19

#: The kinds of characters beside a place in the text: none (the text's edge), a word character, another character.
_EDGE, _WORD, _OTHER = range(3)


@dataclass
class _Position:
    """A node of the automaton: reads a character, checks an assertion, or branches."""

    next: list[int]  # the positions that may follow
    chars: CharSet | None = None
    assertion: str = ""


@dataclass(eq=False)
class _State:
    """The state after the text so far. ``after``: character -> the next state; None: a match."""

    positions: frozenset[int]
    before: int  # the kind of the last character
    after: dict[str, _State | None] = field(default_factory=dict)
    reading: dict[int, list[_Position] | None] = field(default_factory=dict)  # by the kind of the next character


@dataclass
class Pattern:
    """A compiled regular expression. Raises PatternError if the text is invalid, too long, or uses unsupported syntax."""

    text: str
    positions: list[_Position] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        tree, self.ignore_case = parsed(self.text)
        self.end = self._add(_Position([]))
        self.begin = self._compile(tree, self.end)
        self.has_boundary = any("boundary" in position.assertion for position in self.positions)

    def search_all(self, strings: Sequence[str]) -> Mask:
        """Return for each string whether the pattern matches anywhere in it.

        Raises PatternError if the search would take too long.
        """
        search = _Search(self)
        return np.array([search.matches(text) for text in paced(strings, 500)], np.bool_)

    def _add(self, position: _Position) -> int:
        if len(self.positions) >= MAX_POSITIONS:
            raise PatternError(f"{self.text[:100]!r} is too large for a pattern: it repeats too much")
        self.positions.append(position)
        return len(self.positions) - 1

    def _compile(self, node: Node, after: int) -> int:
        """Add positions for ``node``, followed by position ``after``; return the first position."""
        if isinstance(node, CharSet):
            return self._add(_Position([after], node))
        if isinstance(node, Assertion):
            return self._add(_Position([after], assertion=node.kind))
        if isinstance(node, Choice):
            return self._add(_Position([self._compile(branch, after) for branch in node.branches]))
        if isinstance(node, Repeat):
            return self._repeat(node, after)
        for part in reversed(node.parts):
            after = self._compile(part, after)
        return after

    def _repeat(self, node: Repeat, after: int) -> int:
        if node.maximum is None:
            after = self._add(_Position([after]))
            self.positions[after].next.append(self._compile(node.body, after))
        for _ in range(0 if node.maximum is None else node.maximum - node.minimum):
            after = self._add(_Position([after, self._compile(node.body, after)]))
        for _ in range(node.minimum):
            after = self._add(_Position([self._compile(node.body, after)]))
        return after


class _Search:
    """A search for one pattern in several strings, with the states needed so far."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._visits = 0
        self._first = self._state_of(frozenset(), _EDGE)

    def matches(self, text: str) -> bool:
        state = self._first
        for char in text:
            after = state.after.get(char, state)
            if after is state and char not in state.after:
                after = state.after[char] = self._read(state, char)
            if after is None:
                return True
            state = after
        return self._reading(state, _EDGE) is None

    def _read(self, state: _State, char: str) -> _State | None:
        """Return the state after a character; None: a match ends before it."""
        kind = _WORD if self._pattern.has_boundary and _contains(WORD, char) else _OTHER
        reading = self._reading(state, kind)
        if reading is None:
            return None
        self._count(sum(1 + len(p.chars.ranges) for p in reading if p.chars))
        variants = {char, char.lower(), char.upper()} if self._pattern.ignore_case else {char}
        return self._state_of(
            frozenset(p.next[0] for p in reading if p.chars and any(_contains(p.chars, c) for c in variants)), kind
        )

    def _state_of(self, positions: frozenset[int], before: int) -> _State:
        key = (positions, before)
        if key not in self._states:
            if len(self._states) >= MAX_STATES:
                raise self._too_complex()
            self._states[key] = _State(*key)
        return self._states[key]

    def _reading(self, state: _State, next_kind: int) -> list[_Position] | None:
        """Return the positions that read the next character, also those of a match that begins here; None: a match ends here."""
        if next_kind not in state.reading:
            state.reading[next_kind] = self._closure(state, next_kind)
        return state.reading[next_kind]

    def _closure(self, state: _State, next_kind: int) -> list[_Position] | None:
        """Compute the result of ``_reading``."""
        nodes = self._pattern.positions
        todo = [*state.positions, self._pattern.begin]
        seen = set(todo)
        reading = []
        while todo:
            number = todo.pop()
            if number == self._pattern.end:
                return None
            node = nodes[number]
            if node.chars is not None:
                reading.append(node)
            elif not node.assertion or _holds(node.assertion, state.before, next_kind):
                new = [after for after in node.next if after not in seen]
                seen.update(new)
                todo += new
        self._count(len(seen))
        return reading

    def _count(self, visits: int) -> None:
        self._visits += visits
        if self._visits > MAX_VISITS:
            raise self._too_complex()

    def _too_complex(self) -> PatternError:
        return PatternError(f"{self._pattern.text[:100]!r} is too complex for a pattern. Use a simpler one")


def _holds(assertion: str, previous_kind: int, next_kind: int) -> bool:
    if assertion == "start":
        return previous_kind == _EDGE
    if assertion == "end":
        return next_kind == _EDGE
    return ((previous_kind == _WORD) != (next_kind == _WORD)) == (assertion == "boundary")


def _contains(chars: CharSet, char: str) -> bool:
    code = ord(char) if len(char) == 1 else -1  # the upper case of some letters is two characters
    is_in = any(low <= code <= high for low, high in chars.ranges)
    is_in = is_in or any(_CATEGORIES[category.lower()](char) == category.islower() for category in chars.categories)
    return is_in != chars.negated


_CATEGORIES = {"d": str.isdecimal, "w": lambda char: char.isalnum() or char == "_", "s": str.isspace}
