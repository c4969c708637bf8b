"""The distinct shapes of a trace's tensors; each is parsed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Optional, TypeVar

import numpy as np

from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.types import Float64, Int32, Int64
from tftracer.trace.decode.descriptors import message_class

#: Sizes of the dimensions, -1 for an unknown size; None: not even the number of dimensions is known.
Shape = Optional[tuple[int, ...]]

#: Bytes of one element, by tensorflow.DataType. Missing types have no fixed size (strings) or no data (resources).
ELEMENT_BYTES = {
    **dict.fromkeys((4, 6, 10, 11, 12, 24, 25), 1),  # uint8, int8, bool, qint8, quint8, float8_e5m2, float8_e4m3fn
    **dict.fromkeys((5, 14, 15, 16, 17, 19), 2),  # int16, bfloat16, qint16, quint16, uint16, half
    **dict.fromkeys((1, 3, 13, 22), 4),  # float, int32, qint32, uint32
    **dict.fromkeys((2, 8, 9, 23), 8),  # double, complex64, int64, uint64
    18: 16,  # complex128
}
RESOURCE = 20  # tensorflow.DT_RESOURCE: holds no data itself
_LAST_TYPE = 127  # types above are unknown
_REFERENCE = 100  # the number of a reference type is that of its plain type plus this

IntColumn = TypeVar("IntColumn", Int32, Int64)


class Shapes:
    """Serialized TensorShapeProtos at raw[offset[i] : offset[i] + size[i]]; size -1: the tensor has no shape."""

    def __init__(self, raw: bytes, offset: Int64, size: Int64) -> None:
        self._raw, self._offset, self._size = raw, offset, size

    def __len__(self) -> int:
        return len(self._offset)

    @cached_property
    def dims(self) -> list[Shape]:
        spans = zip(self._offset.tolist(), self._size.tolist())
        return [None if size < 0 else _dims(self._raw[offset : offset + size]) for offset, size in paced(spans)]

    @cached_property
    def texts(self) -> list[str]:
        """Shapes as ``[32, 128]``, with ``?`` for an unknown dimension; "" for an unknown shape."""
        return list(map(shape_text, self.dims))

    @cached_property
    def elements(self) -> Float64:
        """[shapes] number of elements, NaN if a dimension is not known."""
        return elements_of(self.dims)


def shape_text(shape: Shape) -> str:
    return "" if shape is None else f"[{', '.join('?' if size < 0 else str(size) for size in shape)}]"


def elements_of(dims: Sequence[Shape]) -> Float64:
    """Return [shapes] the number of elements, NaN if a dimension is not known."""
    return np.array([_elements(shape) for shape in dims], np.float64)


def _elements(shape: Shape) -> float:
    if shape is None or min(shape, default=0) < 0:
        return float("nan")
    return math.prod(map(float, shape), start=1.0)


def _dims(raw: bytes) -> Shape:
    shape = message_class("TensorShapeProto")()
    try:
        shape.ParseFromString(raw)
    except Exception:  # google.protobuf.message.DecodeError, or what an older C parser raises
        return None
    return dims_of(shape)


def dims_of(shape: Any) -> Shape:
    """Return the sizes in a TensorShapeProto."""
    return None if shape.unknown_rank else tuple(max(dim.size, -1) for dim in shape.dim)


def plain_types(dtype: IntColumn) -> IntColumn:
    """Replace reference types by their plain types."""
    is_reference = (dtype > _REFERENCE) & (dtype <= _REFERENCE + _LAST_TYPE)
    return np.where(is_reference, dtype - _REFERENCE, dtype)


def element_bytes(dtype: Int32) -> Float64:
    """Return [n] bytes of one element; NaN for types without a fixed size, and for unknown types."""
    table = np.full(_LAST_TYPE + 1, np.nan)
    table[list(ELEMENT_BYTES)] = list(ELEMENT_BYTES.values())
    plain = plain_types(dtype)
    return table[np.where((plain < 0) | (plain > _LAST_TYPE), _LAST_TYPE, plain)]
