"""Describes what the script passes to a traced step: arrays and Python values that TensorFlow has to copy or convert.

Runs on the training thread, only before traced steps. Does not read the content of arrays, only their type, shape, size and
memory order (C order or not). Of lists it reads the structure and the first elements.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from tftracer.trace.model import MAX_FED_VALUES, FedCopy, FedValue

_MAX_DEPTH = 4  # maximum depth of nested tuples, lists and dicts that are searched
_MAX_ARRAYS = 10_000  # maximum length of a list of arrays whose bytes are added up


def describe_fed_values(feeds: Any) -> list[FedValue] | None:
    """Describe the values of a ``feed_dict``; None for the arguments of a callable (``make_callable``), which have no names."""
    if feeds is not None and not isinstance(feeds, Mapping):
        return None
    with contextlib.suppress(Exception):  # an error here must not stop the step
        return _largest_values(each for key, value in (feeds or {}).items() for each in _describe_key(key, value))
    return None


def describe_arguments(arguments: tuple[tuple[Any, ...], Mapping[str, Any]], signature: Any = None) -> list[FedValue] | None:
    """Describe those arguments of a function that TensorFlow has to convert: NumPy arrays, and lists of numbers or strings.

    Tensors are left out, because TensorFlow passes them on unchanged. ``signature``: the function's ``input_signature``, if any.
    """
    args, kwargs = arguments
    with contextlib.suppress(Exception):
        specs = [*(signature or ()), *[None] * len(args)]
        named = [(f"argument {number}", value, spec) for number, (value, spec) in enumerate(zip(args, specs), 1)]
        named += [(name, value, None) for name, value in kwargs.items()]
        return _largest_values(
            _describe(name, each, _dtype_of(spec))
            for name, value, spec in named
            for each in _values_to_convert(value, _MAX_DEPTH)
        )
    return None


def _describe_key(key: Any, value: Any) -> Iterator[FedValue]:
    """Describe the value of one key.

    The value of a sparse or ragged tensor is a named tuple with an array for each of its tensors.
    """
    name = str(getattr(key, "name", key))
    parts = getattr(value, "_fields", ())
    if parts:
        for part in parts:
            yield from _describe_key(getattr(key, part, f"{name}.{part}"), getattr(value, part))
    else:
        yield _describe(name, value, _dtype_of(key))


def _dtype_of(key: Any) -> str:
    """Return NumPy's name for the type of a placeholder or a TensorSpec; "" for keys without a type, such as names."""
    numpy_type = getattr(getattr(key, "dtype", None), "as_numpy_dtype", None)
    if numpy_type is None:
        return ""
    import numpy

    dtype = numpy.dtype(numpy_type)
    return "string" if dtype.kind in "OSU" else str(dtype)


def _largest_values(values: Iterator[FedValue]) -> list[FedValue]:
    return sorted(values, key=lambda value: -(value["bytes"] or math.prod(value["shape"])))[:MAX_FED_VALUES]


def _describe(name: str, value: Any, tensor_dtype: str = "") -> FedValue:
    def fed_value(dtype: str, shape: list[int], size: int | None = None, copied: FedCopy = "") -> FedValue:
        return {"name": name, "dtype": dtype, "shape": shape, "bytes": size, "tensor_dtype": tensor_dtype, "copied": copied}

    dtype, shape = getattr(value, "dtype", None), [int(size) for size in getattr(value, "shape", None) or ()]
    kind = getattr(dtype, "kind", "")  # only NumPy's types have a kind
    if kind == "O" and tensor_dtype not in ("", "string"):
        return fed_value("object", shape)
    if kind in ("U", "S", "O"):
        return fed_value("string", shape)
    if kind:
        flags = getattr(value, "flags", None)
        is_c_contiguous = flags is None or flags["C_CONTIGUOUS"]
        return fed_value(str(dtype), shape, getattr(value, "nbytes", None), "" if is_c_contiguous else "order")
    if isinstance(value, (str, bytes)):
        return fed_value("string", [])
    if isinstance(value, (list, tuple)):
        shape, first_element = _shape_of(value)
        if getattr(first_element, "shape", ()) and len(shape) == 1 and len(value) <= _MAX_ARRAYS:
            arrays = [_describe("", array, tensor_dtype) for array in value]
            sizes = [array["bytes"] for array in arrays]
            if len({array["dtype"] for array in arrays}) == 1 and None not in sizes:
                total_bytes = sum(size or 0 for size in sizes)
                return fed_value(arrays[0]["dtype"], [*shape, *arrays[0]["shape"]], total_bytes, "list")
        return fed_value("string" if isinstance(first_element, (str, bytes)) else "list", shape)
    return fed_value(type(value).__name__, [])


def _shape_of(value: Any) -> tuple[list[int], Any]:
    """Return the shape of nested lists, by their first elements, and the first element that is not a list."""
    shape: list[int] = []
    while isinstance(value, (list, tuple)) and len(shape) < _MAX_DEPTH:
        shape.append(len(value))
        value = value[0] if value else None
    return shape, value


def _values_to_convert(value: Any, depth: int) -> Iterator[Any]:
    """Yield the NumPy arrays and the lists of Python values in an argument; search containers up to ``depth`` levels."""
    if getattr(getattr(value, "dtype", None), "kind", ""):
        yield value
    elif depth and isinstance(value, Mapping):
        for each in value.values():
            yield from _values_to_convert(each, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        if isinstance(_shape_of(value)[1], (int, float, str, bytes)):
            yield value
            return
        for each in value[:MAX_FED_VALUES]:
            yield from _values_to_convert(each, depth - 1)
