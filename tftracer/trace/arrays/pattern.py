"""Regular expressions that are searched in time linear in the text, whoever wrote the pattern.

Python's ``re`` backtracks: ``(a+)+$`` on thirty letters takes minutes and holds the interpreter's lock all the while. A pattern
may come out of a stranger's file, so it is matched by an automaton instead: Thompson's construction, its sets of positions made
into states as the text asks for them, all strings advanced together by NumPy. Work is bounded by the text's length times a
constant, plus MAX_VISITS visits of positions; a pattern that needs more is refused with PatternError.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tftracer.errors import PatternError
from tftracer.trace.arrays.pattern_syntax import WORD, Assertion, CharSet, Choice, Node, Repeat, parsed
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Int64

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[Any]  # unsigned integers

MAX_POSITIONS = 1000
MAX_STATES = 1000
MAX_VISITS = 1 << 20
#: Below this many strings still to be read, NumPy's calls cost more than a Python loop.
_FEW = 64
#: Strings that are advanced together: their characters fit the processor's cache.
_PORTION = 1 << 12
_MAX_CELLS = 1 << 24  # distinct characters times sets

#: What stands before or behind a position in the text.
_EDGE, _WORD, _OTHER = range(3)
#: The state of a string in which the pattern was found. A state is the place of its row in the table of transitions.
_FOUND = 0
_UNKNOWN = -1


@dataclass
class _Position:
    """A node of the automaton: reads a character, checks an assertion, or branches."""

    next: list[int]
    chars: int = -1  # index into the pattern's sets
    assertion: str = ""


@dataclass
class Pattern:
    """A compiled regular expression. PatternError: it is none, is too long, or uses what is not supported."""

    text: str
    sets: list[CharSet] = field(default_factory=list, repr=False)
    positions: list[_Position] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        tree, self.ignore_case = parsed(self.text)
        self.end = self._add(_Position([]))
        self.begin = self._compile(tree, self.end)
        self.has_boundary = any("boundary" in position.assertion for position in self.positions)

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return bool(self.search_all(StringTable.of([text]))[0])

    def search_all(self, strings: StringTable) -> Mask:
        """[strings] whether the pattern matches anywhere in each. PatternError: that would take too long."""
        return _Search(self, strings).run()

    def _add(self, position: _Position) -> int:
        if len(self.positions) >= MAX_POSITIONS:
            raise PatternError(f"{self.text[:100]!r} is too large for a pattern: it repeats too much")
        self.positions.append(position)
        return len(self.positions) - 1

    def _compile(self, node: Node, after: int) -> int:
        """The position at which ``node`` begins, followed by ``after``."""
        if isinstance(node, CharSet):
            if node not in self.sets:
                self.sets.append(node)
            return self._add(_Position([after], self.sets.index(node)))
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
        if node.most is None:
            after = self._add(_Position([after]))
            self.positions[after].next.append(self._compile(node.body, after))
        for _ in range(0 if node.most is None else node.most - node.least):
            after = self._add(_Position([after, self._compile(node.body, after)]))
        for _ in range(node.least):
            after = self._add(_Position([self._compile(node.body, after)]))
        return after


class _Search:
    """One pattern over one table of strings."""

    def __init__(self, pattern: Pattern, strings: StringTable) -> None:
        self._pattern = pattern
        self._codes, self._offsets = _code_points(strings)
        sets = [*pattern.sets, WORD] if pattern.has_boundary else pattern.sets
        self._class_of, self._members = _classes(sets, _used(self._codes), pattern.ignore_case)
        self._width = len(self._members)
        self._numbers: dict[tuple[frozenset[int], int], int] = {}
        self._states: list[tuple[frozenset[int], int]] = [(frozenset(), _EDGE)]  # the first is _FOUND, which nothing leaves
        self._visits = 0
        self._table: Int64 = np.full(16 * self._width, _UNKNOWN, np.int64)
        self._table[: self._width] = _FOUND
        self._first = self._state_of(frozenset(), _EDGE)

    def run(self) -> Mask:
        """PatternError: too many states."""
        state: Int64 = np.full(len(self._offsets) - 1, self._first, np.int64)
        for at in range(0, len(state), _PORTION):
            state[at : at + _PORTION] = self._read(self._offsets[at : at + _PORTION + 1])
        final, of = np.unique(state, return_inverse=True)
        return np.array([self._accepts(one) for one in final.tolist()], np.bool_)[of.reshape(-1)]

    def _accepts(self, state: int) -> bool:
        return state == _FOUND or self._closure(state, _EDGE) is None

    def _read(self, offsets: Int64) -> Int64:
        """The state of each string at its end."""
        classes = self._class_of[self._codes[offsets[0] : offsets[-1]]]
        by_length = np.argsort(offsets[:-1] - offsets[1:], kind="stable")  # the longest first: those that go on are in front
        begin, end = (offsets[:-1] - offsets[0])[by_length], (offsets[1:] - offsets[0])[by_length]
        length = end - begin
        state: Int64 = np.full(len(length), self._first, np.int64)
        together = int(length[_FEW - 1]) if len(length) >= _FEW else 0
        active = np.searchsorted(-length, -np.arange(together), "left")
        for i, count in enumerate(active.tolist()):
            state[:count] = self._advance(state[:count], classes[begin[:count] + i])
        for one in np.flatnonzero(length > together).tolist():
            state[one] = self._advance_one(int(state[one]), classes[begin[one] + together : end[one]])
        result = np.empty_like(state)
        result[by_length] = state
        return result

    # --------------------------------------------------------------------------------------------------- reading characters

    def _advance(self, state: Int64, classes: Codes) -> Int64:
        cell = state + classes
        after = self._table.take(cell)
        if after.min() == _UNKNOWN:
            for one in np.unique(cell[after == _UNKNOWN]).tolist():
                self._transition(one)
            after = self._table.take(cell)
        return after

    def _advance_one(self, state: int, classes: Codes) -> int:
        transitions: dict[int, int] = {}
        for at in range(0, len(classes), _PORTION):
            for code in classes[at : at + _PORTION].tolist():
                cell = state + code
                after = transitions.get(cell, _UNKNOWN)
                if after == _UNKNOWN:
                    if self._table[cell] == _UNKNOWN:
                        self._transition(cell)
                    after = transitions[cell] = int(self._table[cell])
                state = after
            if state == _FOUND:
                break
        return state

    # -------------------------------------------------------------------------------------------------- states, made on demand

    def _transition(self, cell: int) -> None:
        state, code = divmod(cell, self._width)
        kind = _WORD if self._pattern.has_boundary and self._members[code, -1] else _OTHER
        reading = self._closure(state * self._width, kind)
        if reading is None:
            self._table[cell] = _FOUND
            return
        positions = self._pattern.positions
        after = frozenset(positions[p].next[0] for p in reading if self._members[code, positions[p].chars])
        target = self._state_of(after, kind)  # may make the table longer
        self._table[cell] = target

    def _state_of(self, positions: frozenset[int], before: int) -> int:
        key = (positions, before)
        number = self._numbers.setdefault(key, len(self._states))
        if number == len(self._states):
            if number >= MAX_STATES:
                raise self._too_complex()
            self._states.append(key)
            if (number + 1) * self._width > len(self._table):
                self._table = np.concatenate([self._table, np.full_like(self._table, _UNKNOWN)])
        return number * self._width

    def _closure(self, state: int, behind: int) -> list[int] | None:
        """The positions that read a character next, a match that begins here among them; None: a match ends here."""
        positions, before = self._states[state // self._width]
        nodes = self._pattern.positions
        todo = [*positions, self._pattern.begin]
        seen = set(todo)
        reading = []
        while todo:
            number = todo.pop()
            if number == self._pattern.end:
                return None
            node = nodes[number]
            if node.chars >= 0:
                reading.append(number)
            elif not node.assertion or _holds(node.assertion, before, behind):
                new = [after for after in node.next if after not in seen]
                seen.update(new)
                todo += new
        self._visits += len(seen)
        if self._visits > MAX_VISITS:
            raise self._too_complex()
        return reading

    def _too_complex(self) -> PatternError:
        return PatternError(f"{self._pattern.text[:100]!r} is too complex for a pattern. Use a simpler one")


def _holds(assertion: str, before: int, behind: int) -> bool:
    if assertion == "start":
        return before == _EDGE
    if assertion == "end":
        return behind == _EDGE
    return ((before == _WORD) != (behind == _WORD)) == (assertion == "boundary")


# --------------------------------------------------------------------------------------------------------------- characters


def _code_points(strings: StringTable) -> tuple[Codes, Int64]:
    """(the code points of all strings, where each string begins)."""
    data = bytes(strings.data)
    if data.isascii():
        return np.frombuffer(data, np.uint8), strings.offsets
    texts = list(strings)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return np.frombuffer("".join(texts).encode("utf-32-le"), "<u4"), offsets


def _used(codes: Codes) -> Int64:
    """The distinct code points, in order."""
    seen = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
    seen[0] = True  # of no text at all, too
    for at in range(0, len(codes), 1 << 20):
        seen[codes[at : at + (1 << 20)]] = True
    return np.flatnonzero(seen)


def _classes(sets: list[CharSet], used: Int64, ignore_case: bool) -> tuple[Codes, Mask]:
    """([code point] its class, [class, set] whether the class is in the set): what no set tells apart is one class."""
    if len(used) * len(sets) > _MAX_CELLS:
        raise PatternError("the pattern has too many character sets for names with this many different characters")
    none = np.zeros((len(used), 1), np.bool_)
    members = np.concatenate([none, *(_contains(one, used, ignore_case)[:, None] for one in sets)], axis=1)
    distinct, number = np.unique(members, axis=0, return_inverse=True)
    class_of = np.zeros(int(used.max(initial=0)) + 1, np.uint8 if len(distinct) <= 256 else np.uint32)
    class_of[used] = number.reshape(-1)
    return class_of, distinct[:, 1:]


def _contains(chars: CharSet, codes: Int64, ignore_case: bool) -> Mask:
    variants = [codes]
    if ignore_case:
        texts = [chr(code) for code in codes.tolist()]
        variants += [_single(text.lower() for text in texts), _single(text.upper() for text in texts)]
    matches = np.zeros(len(codes), np.bool_)
    for variant in variants:
        for low, high in chars.ranges:
            matches |= (variant >= low) & (variant <= high)
    for category in chars.categories:
        of = np.array([_CATEGORIES[category.lower()](chr(code)) for code in codes.tolist()], np.bool_)
        matches |= of if category.islower() else ~of
    return ~matches if chars.negated else matches


def _single(texts: Any) -> Int64:
    return np.array([ord(text) if len(text) == 1 else -1 for text in texts], np.int64)


_CATEGORIES = {
    "d": str.isdecimal,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}
