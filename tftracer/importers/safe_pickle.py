"""Reads the pickles of tensorflow-tracer and tfvis without executing anything in them, because files are untrusted.

``pickle.loads`` executes calls that a file contains, and CPython's C reader allocates as much memory as a file requests.
``PickleReader`` is the standard library's reader in Python, with only the opcodes that such files have. It imports nothing and
calls nothing: a class becomes a ``Name``, an instance a ``Stub`` with the class's name, the arguments and the state. It accepts
five classes, and the three names with which old pickle protocols write a plain object and a byte string. The time is linear in
the size of the file. The memory is at most 1 GB plus four times the file.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from tftracer.errors import FormatError, TruncatedError, UnsafePickleError

SOURCE = "tftracer.tracing_server.TracingSource"
ORDERED_DICT = "collections.OrderedDict"
DATETIME = "datetime.datetime"
TIMEDELTA = "datetime.timedelta"
RUN_METADATA = "tensorflow.core.protobuf.config_pb2.RunMetadata"

#: All classes that a pickled session or RunMetadata names.
KNOWN_CLASSES = frozenset({SOURCE, ORDERED_DICT, DATETIME, TIMEDELTA, RUN_METADATA})

#: The names with which protocols 0 to 2 write a plain new object and a byte string, spelled as in Python 3. Never called.
_RECONSTRUCTOR = "copyreg._reconstructor"
_OBJECT = "builtins.object"
_ENCODE = "_codecs.encode"
_PYTHON_2 = {"copy_reg._reconstructor": _RECONSTRUCTOR, "__builtin__.object": _OBJECT}

_MAX_MARKS = 100  # maximum depth of nested opcodes '('; a session has six
_MAX_OPCODES = 10_000_000  # maximum number of opcodes, each of at most 100 bytes in memory; a session has about 60 for each run
MAX_KEY = 1 << 31  # a session has no larger integers as keys; a hostile file could make those collide

#: Opcode -> maximum length of its line: byte strings and texts of protocol 0, names, floats. Other lines are numbers of at most
#: 20 digits, because the time to read a number grows with the square of its length.
_LINES = {b"S": 1 << 31, b"V": 1 << 31, b"c": 1000, b"F": 100}
_NUMBER = 22

#: The accepted opcodes: PROTO FRAME; MARK POP POP_MARK DUP; constants; text and bytes; containers; classes; memo.
_OPCODES = b"\x80\x95(012N\x88\x89ILJKM\x8a\x8bFGSTUBC\x8eVX\x8c\x8d)]}tld\x85\x86\x87aesuc\x93R\x81bpqr\x94ghj."


#: What the standard library's reader raises for a broken pickle.
_BROKEN = (pickle.UnpicklingError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, struct.error)


class Name:
    """A class, of which only the name is known."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Stub:
    """Stands for an instance of a class."""

    __slots__ = ("args", "items", "path", "state")

    def __init__(self, path: str, args: tuple[Any, ...]) -> None:
        self.path = path
        self.args = args
        self.state: Any = None
        self.items: dict[Any, Any] = {}  # the items of an OrderedDict


class _File:
    """The pickle as a file for the standard library's reader, which reads opcodes byte by byte."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data
        self._last_opcode = b""
        self._one_byte_reads = 0

    def read(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self._data):
            size_wanted = f"{size} bytes wanted at byte {self.at} of {len(self._data)}"
            raise TruncatedError(f"the pickle is cut short, copy it again: {size_wanted}")
        taken = self._data[self.at : end]
        self.at = end
        if size == 1:
            self._last_opcode = taken
            self._one_byte_reads += 1
            if self._one_byte_reads > _MAX_OPCODES:
                raise FormatError(f"the pickle has more than {_MAX_OPCODES} opcodes: no session does")
        return taken

    def readline(self) -> bytes:
        end = self._data.find(b"\n", self.at, self.at + _LINES.get(self._last_opcode, _NUMBER)) + 1
        if not end:
            raise TruncatedError(f"the pickle is cut short, copy it again: a line without an end at byte {self.at}")
        line, self.at = self._data[self.at : end], end
        return line


class PickleReader(pickle._Unpickler):
    """Reads one pickle, which is in memory as a whole."""

    dispatch: ClassVar[dict[int, Any]] = {key: pickle._Unpickler.dispatch[key] for key in _OPCODES}
    stack: list[Any]
    metastack: list[list[Any]]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    load_mark: Callable[[], None]

    def __init__(self, data: bytes) -> None:
        self._data = _File(data)
        self._copies_left = len(data)  # characters and entries that calls may still copy
        super().__init__(self._data, encoding="bytes")

    def load(self) -> Any:
        """Return the pickled value.

        Raises UnsafePickleError if the pickle names a class that is not known, FormatError if it is broken.
        """
        try:
            return super().load()
        except FormatError:
            raise
        except _BROKEN as error:
            raise FormatError(f"broken pickle near byte {self._data.at}: {type(error).__name__}") from error

    def find_class(self, module: str, name: str) -> Name:
        path = f"{module}.{name}"
        path = _PYTHON_2.get(path, path)
        if path not in KNOWN_CLASSES and path not in (_RECONSTRUCTOR, _OBJECT, _ENCODE):
            raise UnsafePickleError(
                f"refused: the pickle names {path[:200]!r}, which no file of tensorflow-tracer or tfvis needs. "
                "Nothing in it was executed. Do not open it with any other program either"
            )
        return Name(path)

    def _skip_frame(self) -> None:
        self._data.read(8)

    def _mark(self) -> None:
        if len(self.metastack) >= _MAX_MARKS:
            raise FormatError(f"the pickle nests deeper than {_MAX_MARKS}: no session does")
        self.load_mark()

    def _make(self) -> None:
        """REDUCE and NEWOBJ: a name and its arguments become a stub."""
        args, name = self.stack.pop(), self.stack.pop()
        if not isinstance(name, Name) or not isinstance(args, tuple):
            raise TypeError("a call of something other than a class")
        self._copies_left -= len(args[0]) if args and isinstance(args[0], (str, list)) else 0
        if self._copies_left < 0:  # by the memo, a small file could copy a large value many times
            raise FormatError("the pickle copies its own values repeatedly, which no session does")
        self.append(_instance(name.path, args))

    def _build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, Stub) or target.path not in (SOURCE, RUN_METADATA) or not isinstance(state, dict):
            raise TypeError("a state for something without one")
        target.state = state

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def _set_items(self) -> None:
        self._set(self.pop_mark())

    def _dict(self) -> None:
        values = self.pop_mark()
        self.append({})
        self._set(values)

    def _set(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, Stub) and target.path == ORDERED_DICT:
            target = target.items
        if not isinstance(target, dict) or len(values) % 2:
            raise TypeError("items for something other than a dictionary")
        for key, value in zip(values[::2], values[1::2]):
            target[_key(key)] = value

    dispatch.update(zip(b"\x95(R\x81bsud", (_skip_frame, _mark, _make, _make, _build, _set_item, _set_items, _dict)))


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
        name, base, state = args
        if not isinstance(name, Name) or not isinstance(base, Name) or base.path != _OBJECT or state is not None:
            raise TypeError("not a plain new object")
        return Stub(name.path, ())
    if path == _OBJECT:
        raise TypeError("a bare object")
    stub = Stub(path, args)
    if path == ORDERED_DICT and args:  # protocols 0 and 1 and Python 2 give the items as a list of pairs
        stub.items = {_key(key): value for key, value in args[0]}
    return stub
