"""Finds the lists, dicts, texts and arrays that the script's names lead to, and measures them. Runs in the training process.

The walk starts at the globals of the user's modules and at the locals of running functions, and follows attributes, closures and
small containers. It is bounded, and written in Python so that other threads can run meanwhile. No object of the script is kept
between two walks.

No code of the script or its libraries runs here: only types are inspected, and only methods of Python's own types are called.
TensorFlow's lists record each access, and a lazy module imports its target when an attribute is read.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tftracer.memory_growth.adding_line import Name
from tftracer.memory_growth.growing_types import steady_rate, tensor_bytes
from tftracer.slow.cause.frame_names import is_library
from tftracer.slow.watch.frames_of_threads import frames_of_threads

#: Limits of one walk: the number of objects; the steps from a name to an object; the length of a container whose entries are
#: followed; the number of library calls below a line of the user whose locals are followed (such as the arguments of ``fit``).
MAX_SEEN, MAX_DEPTH, MAX_ENTRIES, LIBRARY_CALLS = 20_000, 5, 50, 4
#: The size of an entry is estimated from this number of the newest entries.
SAMPLED = 40
#: Python's types of containers, of texts, and of values without parts. The garbage collector tracks only containers.
_CONTAINERS: tuple[Any, ...] = (list, dict, set, deque, tuple)
_TEXTS: tuple[Any, ...] = (str, bytes, bytearray)
_PLAIN: tuple[Any, ...] = (int, float, complex, type(None))
#: Bytes that the garbage collector adds in front of each object that it tracks.
GC_HEAD = sys.getsizeof([]) - list.__sizeof__([])
#: References to a dict of locals that is used nowhere else: from the frame, from this module, and from the call that counts them.
OWN_REFERENCES = 3
#: Modules of debuggers and of the profiler that follow every call in Python. cProfile imports ``profile``, too.
DEBUGGERS = frozenset(["pydevd", "debugpy", "profile", "hunter"])
#: A key with at least this number of digits is the id of an object.
LONG_NUMBER = 10
#: A function that uses one of these names may read the dict of its locals itself.
LOCALS_READERS = frozenset(["locals", "vars", "dir", "eval", "exec"])


class Key(NamedTuple):
    name: Name
    within: tuple[str, ...]  # the ids and keys that lead from the name to the container


@dataclass(frozen=True)
class _Reached:
    value: Any
    name: Name | None  # a name in the user's code
    within: tuple[str, ...]
    depth: int


def find_containers() -> dict[Key, Any]:
    """Return the containers that the script's names lead to. Callers must drop them soon."""
    containers: dict[Key, Any] = {}
    seen: set[int] = set()
    waiting = deque(_roots())
    while waiting and len(seen) < MAX_SEEN:
        each = waiting.popleft()
        if id(each.value) in seen:
            continue
        if each.name is not None and size_of(each.value) is not None:
            containers[Key(each.name, each.within)] = each.value
        if each.depth < MAX_DEPTH:
            seen.add(id(each.value))
            with contextlib.suppress(Exception):  # the object changes meanwhile, or is of an unknown kind
                waiting.extend(_referents(each))
    return containers


class Sizes(NamedTuple):
    at: float  # seconds of a clock
    known: dict[Key, int]


def sizes(at: float) -> Sizes:
    return Sizes(at, {key: size for key, value in find_containers().items() if (size := size_of(value)) is not None})


def size_of(value: Any) -> int | None:
    """Return the number of entries, or the bytes of an array or text; None if the value has no size."""
    kind = type(value)
    if _is_array(kind):
        return int(value.nbytes)
    base = _base(kind, (*_CONTAINERS, *_TEXTS))
    return None if base is None else int(base.__len__(value))


def _base(kind: type, bases: tuple[Any, ...]) -> Any:
    """Return the first of these types from which ``kind`` is derived; None if there is none."""
    return next((base for base in bases if issubclass(kind, base)), None)


def _is_array(kind: type) -> bool:
    return kind.__name__ == "ndarray" and kind.__module__ == "numpy"


def newest(value: Any) -> list[Any] | None:
    """Return the newest entries, at most SAMPLED; None if the value has no entries."""
    kind = type(value)
    with contextlib.suppress(Exception):  # the object changes meanwhile
        sequence = _base(kind, (list, tuple))
        if sequence is not None:
            return list(sequence.__getitem__(value, slice(-SAMPLED, None)))
        if issubclass(kind, dict):
            return list(islice(reversed(dict.values(value)), SAMPLED))
        if issubclass(kind, deque):
            return list(islice(deque.__reversed__(value), SAMPLED))
        if issubclass(kind, set):
            return list(islice(set.__iter__(value), SAMPLED))
    return None


def entry_bytes(value: Any) -> float | None:
    """Return the bytes that one more entry takes; None if unknown, or if many entries are the same object."""
    entries = newest(value)
    if entries is None:
        return 1.0  # the size of a text or an array is in bytes
    known = [size for each in entries if (size := bytes_of(each, 4)) is not None]
    if not entries or len(known) < len(entries) or len({id(each) for each in entries}) < len(entries) / 2:
        return None
    return median(known)


def bytes_of(value: Any, depth: int) -> float | None:
    """Return the bytes of a value with its parts, at most ``depth`` levels deep; None if unknown."""
    kind = type(value)
    if _is_array(kind):
        return float(value.nbytes if value.base is None else getattr(value.base, "nbytes", value.nbytes))
    if kind.__name__ == "EagerTensor":
        return tensor_bytes(value)
    if issubclass(kind, (*_PLAIN, *_TEXTS)):
        return _own_bytes(value)
    inner = _parts(value)
    if inner is None or not depth:
        return None
    parts, part_count = inner
    known = [size for each in parts if (size := bytes_of(each, depth - 1)) is not None]
    own = _own_bytes(value)
    return own + (sum(known) if part_count <= SAMPLED else part_count * median(known)) if known else own or None


def object_bytes(value: Any) -> float | None:
    """Return the bytes of an object of a user's class, with its attributes; None if an attribute's size is unknown."""
    attributes = _attributes(value)
    known = [size for each in attributes.values() if (size := bytes_of(each, 3)) is not None]
    if not attributes or len(known) < len(attributes):
        return None
    return sum(known) + object.__sizeof__(value) + dict.__sizeof__(attributes) + 2 * GC_HEAD


def _own_bytes(value: Any) -> float:
    """Return the bytes of the value without its contents; 0 for values that are not of Python's own types."""
    base = _base(type(value), (*_CONTAINERS, *_TEXTS, *_PLAIN))
    head = GC_HEAD if base in _CONTAINERS else 0
    return float(base.__sizeof__(value) + head) if base is not None else 0.0


def _parts(value: Any) -> tuple[list[Any], int] | None:
    """Return some of the parts of a value, and how many parts it has; None if it has no known parts."""
    if type(value) is FunctionType:
        parts = [each.value for each in _referents(_Reached(value, None, (), 0))]
        return parts, len(parts)
    entries = newest(value)
    if entries is not None:
        return entries, size_of(value) or 0
    if _is_users_class(type(value)):
        parts = list(_attributes(value).values())
        return parts, min(len(parts), SAMPLED)
    return None


class Growing(NamedTuple):
    name: Name
    path: str  # "['loss']": where in the named object the growing container is
    kind: str  # "list"
    types: tuple[type, ...]  # of the newest entries, and of the parts of these entries
    grown: int  # entries, or bytes
    rate: float  # entries or bytes a second, as ``grown``
    bytes_rate: float | None  # bytes a second; None: not known


def growing(first: Sizes, middle: Sizes, last: Sizes) -> list[Growing]:
    """Return the containers that became larger between the measurements, the one that gains the most bytes a second first."""
    result = []
    for key, value in find_containers().items():
        sizes_over_time = [(each.at, each.known[key]) for each in (first, middle, last) if key in each.known]
        rate = steady_rate(*sizes_over_time) if len(sizes_over_time) == 3 else None
        if rate is not None:
            bytes_of_one = entry_bytes(value)
            types = {type(part) for each in newest(value) or () for part in (each, *((_parts(each) or ([],))[0][:SAMPLED]))}
            grown = last.known[key] - first.known[key]
            bytes_a_second = None if bytes_of_one is None else rate * bytes_of_one
            keys = key.within[key.name.is_attribute :]
            name = key.name._replace(is_within=bool(keys), key=keys[0] if keys else "")
            result.append(Growing(name, path_of(keys), type(value).__name__, tuple(types), grown, rate, bytes_a_second))
    return sorted(result, key=lambda each: -(each.bytes_rate or 0.0))


def path_of(keys: tuple[str, ...]) -> str:
    """Format the keys that lead to a container; "[...]" for more than two keys, or for ids of objects."""
    is_readable = len(keys) <= 2 and all(key.startswith(("'", '"')) or len(key) < LONG_NUMBER for key in keys)
    return "".join(f"[{key}]" for key in keys) if is_readable else "[...]"


# ---------------------------------------------------------------------------------------------------------------- the walk


def user_files() -> dict[str, dict[str, Any]]:
    """Return file -> the globals of its module, for the user's modules."""
    globals_of = {}
    for module in list(sys.modules.values()):
        names = _attributes(module)
        file = names.get("__file__")
        if type(file) is str and file.endswith(".py") and not is_library(file):
            globals_of[file] = names
    return globals_of


def _roots() -> Iterator[_Reached]:
    for file, names in user_files().items():
        for name, value in list(names.items()):
            if not name.startswith("__"):
                yield _Reached(value, Name(file, name), (), 0)
    for file, line, names in _locals():
        for name, value in names.items():
            yield _Reached(value, Name(file, name, line) if line else None, (), 0)


def _locals() -> list[tuple[str, int, dict[str, Any]]]:
    """Return (file, first line of the function, its locals) of the running functions.

    Outer functions come first, because inner calls come and go. Line 0: a function of a library that the user's code called.
    """
    scopes = []
    with frames_of_threads() as frames:
        frames.pop(threading.get_ident(), None)
        for frame in list(frames.values()):
            calls: list[FrameType] = []  # calls of libraries, the innermost first
            at: FrameType | None = frame
            while at is not None:
                if is_library(at.f_code.co_filename):
                    calls.append(at)
                else:
                    for each in [*calls[-LIBRARY_CALLS:], at]:
                        names = _locals_of(each)
                        scopes.append((each.f_code.co_filename, each.f_code.co_firstlineno if each is at else 0, names))
                    calls.clear()
                at = at.f_back
            del at, calls
    return scopes[::-1]


def _locals_of(frame: FrameType) -> dict[str, Any]:
    """Copy the locals of a frame.

    Up to Python 3.12 reading them leaves a dict in the frame that keeps them alive, so it is emptied again. A function whose dict
    may be used elsewhere is skipped: the function may call ``locals`` itself, other code may hold the dict, or a debugger or a
    profiler in Python may write it back into the function's variables.
    """
    code = frame.f_code
    if _are_written_back():
        return {}
    if not code.co_flags & inspect.CO_OPTIMIZED or frame.f_trace is not None or not LOCALS_READERS.isdisjoint(code.co_names):
        return {}
    own = frame.f_locals
    names = dict(own)
    if sys.version_info < (3, 13) and sys.getrefcount(own) <= OWN_REFERENCES:
        own.clear()
    return names


def _are_written_back() -> bool:
    hooks = (getattr(threading, name, None) for name in ("_trace_hook", "_profile_hook"))
    return not DEBUGGERS.isdisjoint(sys.modules) or any(hook is not None for hook in hooks)


def _referents(reached: _Reached) -> Iterator[_Reached]:
    """Yield the values to which a value leads."""
    value, depth = reached.value, reached.depth + 1
    kind = type(value)
    if kind is FunctionType:
        code = value.__code__
        if not is_library(code.co_filename):
            for name, cell in zip(code.co_freevars, value.__closure__ or ()):
                with contextlib.suppress(ValueError):  # the cell is empty
                    yield _Reached(cell.cell_contents, Name(code.co_filename, name, code.co_firstlineno), (), depth)
    elif kind is MethodType:
        yield _Reached(value.__self__, None, (), depth)
        yield _Reached(value.__func__, None, (), depth)
    elif issubclass(kind, dict):
        if dict.__len__(value) <= MAX_ENTRIES:
            for key, entry in list(dict.items(value)):
                text = repr(key)[:50] if type(key) in (str, int) else str(id(key))
                yield _Reached(entry, reached.name, (*reached.within, text), depth)
    elif issubclass(kind, (list, tuple, set, deque)):
        if (size_of(value) or 0) <= MAX_ENTRIES:
            for number, entry in enumerate(list(_base(kind, _CONTAINERS).__iter__(value))):
                yield _Reached(entry, reached.name, (*reached.within, str(number)), depth)
        if kind.__name__ == "ListWrapper":  # TensorFlow's wrapper of lists in modules and models
            yield _Reached(_attributes(value).get("_storage"), reached.name, reached.within, depth)
    elif issubclass(kind, type):
        if _is_users_class(value):
            for name, entry in list(vars(value).items()):
                yield _Reached(entry, Name(_file_of(value), name, 0, True), (value.__qualname__,), depth)
    elif size_of(value) is None and not issubclass(kind, ModuleType):
        is_users = _is_users_class(kind)
        for name, entry in list(_attributes(value).items()):
            attribute_name = Name(_file_of(kind), name, 0, True) if is_users else None
            yield _Reached(entry, attribute_name, (str(id(value)),), depth)


def _attributes(value: Any) -> dict[str, Any]:
    own = object.__getattribute__(value, "__dict__") if getattr(type(value), "__dictoffset__", 0) else {}
    return own if type(own) is dict else {}


def _file_of(kind: type) -> str:
    file = _attributes(sys.modules.get(str(kind.__module__))).get("__file__")
    return file if type(file) is str else ""


def _is_users_class(kind: type) -> bool:
    file = _file_of(kind)
    return bool(file) and not is_library(file)
