"""What the script hands to a step that is traced: arrays and Python's values that TensorFlow has to copy or convert.

Read on the training thread, before a traced step alone. Nothing of a value is read but its type, shape and size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from tftracer.trace.model import FedValue

#: How many of the largest values are kept.
MOST = 200
_DEPTH = 4  # of arguments within tuples, lists and dicts


def values_fed(feeds: Any) -> list[FedValue] | None:
    """The values of a ``feed_dict``; None for a callable's, which are known by their place alone."""
    if feeds is not None and not isinstance(feeds, Mapping):
        return None
    with contextlib.suppress(Exception):  # whatever the script feeds, its step runs
        return _largest_first(_described(str(getattr(key, "name", key)), value) for key, value in (feeds or {}).items())
    return None


def arguments_fed(arguments: tuple[tuple[Any, ...], Mapping[str, Any]]) -> list[FedValue] | None:
    """Of a function: those of its arguments that are arrays of NumPy's, or lists of numbers or strings. TensorFlow's tensors are
    handed on as they are."""
    args, kwargs = arguments
    named = [*((f"argument {place}", value) for place, value in enumerate(args, 1)), *kwargs.items()]
    with contextlib.suppress(Exception):
        return _largest_first(_described(name, array) for name, value in named for array in _arrays(value, _DEPTH))
    return None


def _largest_first(values: Iterator[FedValue]) -> list[FedValue]:
    return sorted(values, key=lambda value: -(value["bytes"] or _elements(value)))[:MOST]


def _elements(value: FedValue) -> int:
    number = 1
    for size in value["shape"]:
        number *= size
    return number


def _described(name: str, value: Any) -> FedValue:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    kind = getattr(dtype, "kind", "")  # of NumPy's types alone
    if kind in ("U", "S", "O"):
        return {"name": name, "dtype": "string", "shape": [int(size) for size in shape or ()], "bytes": None}
    if kind:
        size = getattr(value, "nbytes", None)
        return {"name": name, "dtype": str(dtype), "shape": [int(size) for size in shape or ()], "bytes": size}
    if isinstance(value, (str, bytes)):
        return {"name": name, "dtype": "string", "shape": [], "bytes": None}
    if isinstance(value, (list, tuple)):
        shape, first = _shape_of(value)
        kind = "string" if isinstance(first, (str, bytes)) else "list"
        return {"name": name, "dtype": kind, "shape": shape, "bytes": None}
    return {"name": name, "dtype": type(value).__name__, "shape": [], "bytes": None}


def _shape_of(value: Any) -> tuple[list[int], Any]:
    """The shape of nested lists, by their first elements, and the first element that is no list."""
    shape: list[int] = []
    while isinstance(value, (list, tuple)) and len(shape) < _DEPTH:
        shape.append(len(value))
        value = value[0] if value else None
    return shape, value


def _arrays(value: Any, depth: int) -> Iterator[Any]:
    if getattr(getattr(value, "dtype", None), "kind", ""):
        yield value
    elif depth and isinstance(value, Mapping):
        for each in value.values():
            yield from _arrays(each, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        if isinstance(_shape_of(value)[1], (int, float, str, bytes)):
            yield value
            return
        for each in value[:MOST]:
            yield from _arrays(each, depth - 1)
