"""Exports columns as an Arrow stream in a PyCapsule (Arrow's C data interface), for polars, pyarrow, pandas and DuckDB.

One batch holds all rows. Numbers are shared with NumPy, not copied; texts are ``large_utf8``. When the reader no longer needs
a structure, it calls ``release``, from any thread. Until then, ``_kept`` holds the objects that the structure points to.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from ctypes import CFUNCTYPE, PYFUNCTYPE, Structure, addressof, c_char_p, c_int, c_int64, c_void_p, cast, py_object
from typing import Any

import numpy as np
import numpy.typing as npt

from tftracer.export.tables.schema import Field

Array = npt.NDArray[Any]
#: Arrow's names of types: https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings
_FORMATS = {"int": b"l", "float": b"g", "bool": b"b", "text": b"U", "time": b"tsn:"}
_NULLABLE = 2
_NAME = b"arrow_array_stream"


def _pointers(*names: str) -> list[Any]:
    return [(name, c_void_p) for name in names]


class _Schema(Structure):
    _fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64), ("n_children", c_int64),
                *_pointers("children", "dictionary", "release", "private_data")]  # fmt: skip


class _Array(Structure):
    _fields_ = [*((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
                *_pointers("buffers", "children", "dictionary", "release", "private_data")]  # fmt: skip


class _Stream(Structure):
    _fields_ = _pointers("get_schema", "get_next", "get_last_error", "release", "private_data")


#: Number of a structure -> the structure and the objects that it points to.
_kept: dict[int, Any] = {}
_numbers = itertools.count(1)


def _keep(structure: Any, *pointed_to: Any) -> None:
    """Keep objects until the structure is released.

    The reader may move the structure, so a number in it identifies the objects.
    """
    structure.private_data = next(_numbers)
    _kept[structure.private_data] = structure, pointed_to


def _keep_for_ever(callback: Any) -> Any:
    """Keep a callback for ever: a reader may call it at Python's exit, after this module is gone."""
    ctypes.pythonapi.Py_IncRef(py_object(callback))
    return callback


def _releaser(kind: Any) -> Any:
    """Return the C callback with which a reader releases a structure of this kind."""
    kept = _kept  # a local name, because this module's names may not exist at Python's exit

    def release(address: int) -> None:
        structure = kind.from_address(address)
        for child in _children(structure):
            if child.release:  # otherwise the reader has taken the child
                release(addressof(child))
        structure.release = None
        kept.pop(structure.private_data, None)

    def _children(structure: Any) -> list[Any]:
        count = getattr(structure, "n_children", 0)
        return [kind.from_address(at) for at in (c_void_p * count).from_address(structure.children)] if count else []

    return _keep_for_ever(CFUNCTYPE(None, c_void_p)(release))


_RELEASE = {kind: _releaser(kind) for kind in (_Schema, _Array, _Stream)}
_new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_capsule_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _destroyer() -> Any:
    """Return the C callback that releases the stream in a capsule if nobody has read it."""
    pointer, stream, release, name = _capsule_pointer, _Stream, _RELEASE[_Stream], _NAME

    def destroy(capsule: int) -> None:
        address = pointer(capsule, name)
        if stream.from_address(address).release:  # nobody has read the stream
            release(address)

    return _keep_for_ever(CFUNCTYPE(None, c_void_p)(destroy))


_DESTROY = _destroyer()


def _addresses(structures: Sequence[Any]) -> Any:
    return (c_void_p * len(structures))(*(addressof(structure) for structure in structures))


def _schema(format: bytes, name: str, children: Sequence[_Schema] = ()) -> _Schema:
    schema = _Schema(format, name.encode(), None, _NULLABLE if not children else 0, len(children))
    pointers = _addresses(children)
    schema.children, schema.release = cast(pointers, c_void_p), cast(_RELEASE[_Schema], c_void_p)
    _keep(schema, children, pointers)
    return schema


def _array(length: int, nulls: int, buffers: Sequence[Array | None], children: Sequence[_Array] = ()) -> _Array:
    pointers = (c_void_p * len(buffers))(*(None if buffer is None else buffer.ctypes.data for buffer in buffers))
    array = _Array(length, nulls, 0, len(buffers), len(children))
    child_pointers = _addresses(children)
    array.buffers, array.children = cast(pointers, c_void_p), cast(child_pointers, c_void_p)
    array.release = cast(_RELEASE[_Array], c_void_p)
    _keep(array, buffers, pointers, children, child_pointers)
    return array


def _bits(values: Array) -> Array:
    return np.packbits(values.astype(bool), bitorder="little")


def _buffers(type_: str, column: Array) -> tuple[int, int, list[Array | None]]:
    """Return (number of rows, number of unknown values, the buffers)."""
    if type_ == "text":
        encoded = [text.encode("utf-8", "replace") for text in column.tolist()]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return len(column), 0, [None, offsets, np.frombuffer(b"".join(encoded) or b"\0", np.uint8)]
    unknown = np.isnat(column) if type_ == "time" else np.ma.getmaskarray(column)
    values = np.ascontiguousarray(np.ma.getdata(column))
    known = _bits(~unknown) if unknown.any() else None
    return len(column), int(unknown.sum()), [known, _bits(values) if type_ == "bool" else values]


def _move_to(structure: Any, target: int) -> None:
    """Move the structure to the reader's address."""
    ctypes.memmove(target, ctypes.byref(structure), ctypes.sizeof(structure))


def capsule(fields: Sequence[Field], columns: Mapping[str, Array]) -> Any:
    """Return the columns as a PyCapsule of an ArrowArrayStream."""
    batches = [[_buffers(field.type, columns[field.name]) for field in fields]]
    rows = len(columns[fields[0].name])

    def get_schema(_: int, target: int) -> int:
        _move_to(_schema(b"+s", "", [_schema(_FORMATS[field.type], field.name) for field in fields]), target)
        return 0

    def get_next(_: int, target: int) -> int:
        _move_to(_array(rows, 0, [None], [_array(*each) for each in batches.pop()]) if batches else _Array(), target)
        return 0

    getter = CFUNCTYPE(c_int, c_void_p, c_void_p)
    callbacks = getter(get_schema), getter(get_next), CFUNCTYPE(c_void_p, c_void_p)(lambda _: None)
    stream = _Stream(*(cast(callback, c_void_p) for callback in callbacks), cast(_RELEASE[_Stream], c_void_p))
    _keep(stream, callbacks)
    return _new_capsule(addressof(stream), _NAME, cast(_DESTROY, c_void_p))
