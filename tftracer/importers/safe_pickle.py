"""Reads the pickles of tensorflow-tracer and tfvis without executing anything in them: anyone may have written the file.

``pickle.loads`` executes what the file says. Even with a restricted ``find_class``, a file can make it allocate gigabytes or
recurse until the process dies. This reader interprets the opcodes itself; it imports nothing and calls nothing. A class becomes
a ``Name``, an instance a ``Stub`` with the class's name, the arguments and the state. It accepts the five classes that such
files name, and the three names with which old pickle protocols write a plain object and a byte string.
Time is linear in the size of the file. Memory is at most 1 GB plus four times the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tftracer.errors import FormatError, TruncatedError, UnsafePickleError

SOURCE = "tftracer.tracing_server.TracingSource"
ORDERED_DICT = "collections.OrderedDict"
DATETIME = "datetime.datetime"
TIMEDELTA = "datetime.timedelta"
RUN_METADATA = "tensorflow.core.protobuf.config_pb2.RunMetadata"

#: All classes that a pickled session or RunMetadata names.
KNOWN_CLASSES = frozenset({SOURCE, ORDERED_DICT, DATETIME, TIMEDELTA, RUN_METADATA})

#: How protocols 0 to 2 write a plain new object and a byte string. They are recognized and never called.
_RECONSTRUCTOR = "copyreg._reconstructor"
_OBJECT = "builtins.object"
_ENCODE = "_codecs.encode"
_ALIASES = {
    "copyreg._reconstructor": _RECONSTRUCTOR,
    "copy_reg._reconstructor": _RECONSTRUCTOR,
    "builtins.object": _OBJECT,
    "__builtin__.object": _OBJECT,
    "_codecs.encode": _ENCODE,
}

_MAX_MARKS = 100  # nested opcodes '('; a session nests six
_MAX_OPCODES = 10_000_000  # of at most 100 bytes each in memory; a session has about 60 a run
MAX_KEY = 1 << 31  # a session has no larger integers as keys; a hostile file could make those collide


@dataclass(frozen=True)
class Name:
    """A class, by name alone."""

    path: str


class Stub:
    """Stands for an instance of a class."""

    __slots__ = ("args", "items", "path", "state")

    def __init__(self, path: str, args: tuple[Any, ...]) -> None:
        self.path = path
        self.args = args
        self.state: Any = None
        self.items: dict[Any, Any] = {}  # of an OrderedDict


class PickleReader:
    """Interprets the opcodes of one pickle, which is in memory as a whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._copied = 0

    def read(self) -> Any:
        """The pickled value. Raises UnsafePickleError for any other class, FormatError if it is not such a pickle."""
        try:
            for _ in range(_MAX_OPCODES):
                opcode = self._take(1)
                if opcode == b".":
                    return self._stack.pop()
                handler = _OPCODES.get(opcode)
                if handler is None:
                    raise FormatError(f"pickle opcode {opcode!r} at byte {self._at - 1}: no session or RunMetadata uses it")
                handler(self)
        except FormatError:
            raise
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
            raise FormatError(f"broken pickle near byte {self._at}: {type(error).__name__}") from error
        raise FormatError(f"the pickle has more than {_MAX_OPCODES} opcodes: no session does")

    # ------------------------------------------------------------------------------------------------------- bytes

    def _take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise TruncatedError(
                f"the pickle is cut short, copy it again: {size} bytes wanted at byte {self._at} of {len(self._data)}"
            )
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _line(self, limit: int = 1000) -> bytes:
        end = self._data.find(b"\n", self._at, self._at + limit + 1)
        if end < 0:
            raise TruncatedError(f"the pickle is cut short, copy it again: a line without an end at byte {self._at}")
        line = self._data[self._at : end]
        self._at = end + 1
        return line

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _sized(self, form: str) -> bytes:
        return self._take(self._number(form))

    # ------------------------------------------------------------------------------------------------------- stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        if len(self._marks) >= _MAX_MARKS:
            raise FormatError(f"the pickle nests deeper than {_MAX_MARKS}: no session does")
        self._marks.append(self._stack)
        self._stack = []

    def _pop_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._marks.pop()
        return items

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def _tuple(self, size: int) -> None:
        if size > len(self._stack):
            raise IndexError(size)
        items = tuple(self._stack[-size:])
        del self._stack[-size:]
        self._push(items)

    # ---------------------------------------------------------------------------------------------------- containers

    def _append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError("append to something other than a list")
        target.extend(values)

    def _set_items(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, Stub) and target.path == ORDERED_DICT:
            target = target.items
        if not isinstance(target, dict) or len(values) % 2:
            raise TypeError("items for something other than a dictionary")
        for key, value in zip(values[::2], values[1::2]):
            target[_key(key)] = value

    def _dict_of(self, values: list[Any]) -> None:
        self._push({})
        self._set_items(values)

    # ------------------------------------------------------------------------------------------------------- classes

    def _name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise TypeError("a class name that is not a string")
        path = f"{module}.{name}"
        if path in KNOWN_CLASSES:
            self._push(Name(path))
        elif path in _ALIASES:
            self._push(Name(_ALIASES[path]))
        else:
            raise UnsafePickleError(
                f"refused: the pickle names {path[:200]!r}, which no tensorflow-tracer or tfvis file has a reason to name. "
                "Nothing in it was executed. Do not open it with anything else either"
            )

    def _global(self) -> None:
        module, name = self._line().decode("utf-8"), self._line().decode("utf-8")
        self._name(module, name)

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._name(module, name)

    def _make(self) -> None:
        """REDUCE and NEWOBJ: a name and its arguments become a stub."""
        args, made = self._stack.pop(), self._stack.pop()
        if not isinstance(made, Name) or not isinstance(args, tuple):
            raise TypeError("a call of something other than a class")
        size = len(args[0]) if args and isinstance(args[0], (str, list)) else 0
        self._copied += size
        if self._copied > len(self._data):  # a memo could multiply what is written once
            raise FormatError("the pickle copies its own values repeatedly, which no session does")
        self._push(_instance(made.path, args))

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if not isinstance(target, Stub) or target.path not in (SOURCE, RUN_METADATA) or not isinstance(state, dict):
            raise TypeError("a state for something without one")
        target.state = state

    # ---------------------------------------------------------------------------------------------------------- memo

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        self._push(self._memo[index])


def _key(key: Any) -> Any:
    if isinstance(key, (str, bytes)) or (isinstance(key, int) and 0 <= key < MAX_KEY):
        return key
    raise TypeError("a dictionary key of a kind that no session has")


def _instance(path: str, args: tuple[Any, ...]) -> Any:
    if path == _ENCODE:
        text, encoding = args if len(args) == 2 else (args[0], "latin1")
        if encoding not in ("latin1", "latin-1"):
            raise ValueError("byte strings are written in latin1")
        return text.encode("latin1")
    if path == _RECONSTRUCTOR:
        made, base, state = args
        if not isinstance(made, Name) or base != Name(_OBJECT) or state is not None:
            raise TypeError("not a plain new object")
        return Stub(made.path, ())
    if path == _OBJECT:
        raise TypeError("a bare object")
    stub = Stub(path, args)
    if path == ORDERED_DICT and args:  # protocols 0 and 1 and Python 2 give the items as a list of pairs
        stub.items = {_key(key): value for key, value in args[0]}
    return stub


def _decimal(line: bytes) -> Any:
    """INT and LONG as text, at most 20 digits: the time for longer ones grows with the square of their length."""
    text = line.rstrip(b"L")
    if len(text) > 20:
        raise ValueError("an integer of more than 20 digits")
    return {b"00": False, b"01": True}[line] if line in (b"00", b"01") else int(text)


def _long(data: bytes) -> int:
    if len(data) > 16:
        raise ValueError("an integer of more than 16 bytes")
    return int.from_bytes(data, "little", signed=True)


_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\", b"'": b"'", b'"': b'"'}


def _quoted(line: bytes) -> bytes:
    """Python 2's STRING: a literal in quotes, with escapes."""
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise ValueError("a string without quotes")
    return _ESCAPE.sub(_unescaped, line[1:-1])


def _unescaped(match: re.Match[bytes]) -> bytes:
    text = match.group(1)
    if text[:1] == b"x" and len(text) == 3:
        return bytes([int(text[1:], 16)])
    if text.isdigit():
        return bytes([int(text, 8) & 0xFF])
    return _ESCAPES.get(text, match.group())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


_TEXT_LIMIT = 1 << 31  # protocol 0 writes a byte string on one line

_OPCODES: dict[bytes, Callable[[PickleReader], Any]] = {
    b"\x80": lambda r: r._take(1),  # PROTO
    b"\x95": lambda r: r._take(8),  # FRAME
    b"(": PickleReader._mark,
    b"0": PickleReader._pop,
    b"1": lambda r: r._pop_mark() and None,
    b"2": lambda r: r._push(r._stack[-1]),
    b"N": lambda r: r._push(None),
    b"\x88": lambda r: r._push(True),
    b"\x89": lambda r: r._push(False),
    b"I": lambda r: r._push(_decimal(r._line())),
    b"L": lambda r: r._push(_decimal(r._line())),
    b"J": lambda r: r._push(r._number("<i")),
    b"K": lambda r: r._push(r._number("<B")),
    b"M": lambda r: r._push(r._number("<H")),
    b"\x8a": lambda r: r._push(_long(r._sized("<B"))),
    b"\x8b": lambda r: r._push(_long(r._sized("<i"))),
    b"F": lambda r: r._push(float(r._line(100))),
    b"G": lambda r: r._push(r._number(">d")),
    b"S": lambda r: r._push(_quoted(r._line(_TEXT_LIMIT))),
    b"T": lambda r: r._push(r._sized("<i")),
    b"U": lambda r: r._push(r._sized("<B")),
    b"B": lambda r: r._push(r._sized("<I")),
    b"C": lambda r: r._push(r._sized("<B")),
    b"\x8e": lambda r: r._push(r._sized("<Q")),
    b"V": lambda r: r._push(r._line(_TEXT_LIMIT).decode("raw_unicode_escape")),
    b"X": lambda r: r._push(_text(r._sized("<I"))),
    b"\x8c": lambda r: r._push(_text(r._sized("<B"))),
    b"\x8d": lambda r: r._push(_text(r._sized("<Q"))),
    b")": lambda r: r._push(()),
    b"]": lambda r: r._push([]),
    b"}": lambda r: r._push({}),
    b"t": lambda r: r._push(tuple(r._pop_mark())),
    b"l": lambda r: r._push(r._pop_mark()),
    b"d": lambda r: r._dict_of(r._pop_mark()),
    b"\x85": lambda r: r._tuple(1),
    b"\x86": lambda r: r._tuple(2),
    b"\x87": lambda r: r._tuple(3),
    b"a": lambda r: r._append([r._stack.pop()]),
    b"e": lambda r: r._append(r._pop_mark()),
    b"s": lambda r: r._set_items([r._stack.pop(), r._stack.pop()][::-1]),
    b"u": lambda r: r._set_items(r._pop_mark()),
    b"c": PickleReader._global,
    b"\x93": PickleReader._stack_global,
    b"R": PickleReader._make,
    b"\x81": PickleReader._make,
    b"b": PickleReader._build,
    b"p": lambda r: r._put(int(r._line(20))),
    b"q": lambda r: r._put(r._number("<B")),
    b"r": lambda r: r._put(r._number("<I")),
    b"\x94": lambda r: r._put(len(r._memo)),
    b"g": lambda r: r._get(int(r._line(20))),
    b"h": lambda r: r._get(r._number("<B")),
    b"j": lambda r: r._get(r._number("<I")),
}
