"""Columns of tables, and arrays and string tables in the wire format (contract/basics.py: ``Column``, ``Strings``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args

import numpy as np
import numpy.typing as npt

from tftracer.contract.basics import Column, Strings
from tftracer.trace.arrays.intervals import paced
from tftracer.trace.arrays.strings import StringTable


@dataclass(frozen=True)
class Coded:
    """A dictionary-coded column of texts; code -1 is the empty text."""

    codes: npt.NDArray[Any]
    texts: Sequence[str]

    def decoded(self) -> npt.NDArray[Any]:
        """Return [n] strings as an object array; equal texts share one object."""
        texts = np.empty(len(self.texts) + 1, object)
        texts[:-1] = list(self.texts)
        texts[-1] = ""
        return np.asarray(texts[self.codes])


Values = Union[npt.NDArray[Any], Coded, Sequence[Any]]
#: Name of a column -> function that computes its values.
Columns = dict[str, Callable[[], Values]]


def rows_of(columns: Mapping[str, Values | Callable[[], Values]]) -> list[dict[str, Any]]:
    """Return the rows of a table; masked values are None."""
    lists = [_listed(column() if callable(column) else column) for column in columns.values()]
    return [dict(zip(columns, row)) for row in paced(zip(*lists), 500)]


def _listed(values: Values) -> Sequence[Any]:
    if isinstance(values, Coded):
        values = values.decoded()
    return list(values.tolist()) if isinstance(values, np.ndarray) else values


DType = Literal["u1", "u2", "u4", "i1", "i2", "i4", "f4", "f8"]


def column(array: npt.NDArray[Any]) -> Column:
    """Encode an array: little-endian, C order; bool as u1, 64-bit integers as f8 (exact to 2^53: 104 days in nanoseconds)."""
    code = _code(array.dtype)
    return {"dtype": code, "data": np.ascontiguousarray(array, dtype="<" + code).tobytes()}


def _code(dtype: np.dtype[Any]) -> DType:
    code = f"{dtype.kind}{dtype.itemsize}"
    code = {"b1": "u1", "u8": "f8", "i8": "f8"}.get(code, code)
    if code not in get_args(DType):
        raise TypeError(f"the wire format has no {dtype}")
    return code  # type: ignore[return-value]


def array(value: Column) -> npt.NDArray[Any]:
    """Decode a column: the inverse of ``column``, for tests and exports."""
    return np.frombuffer(value["data"], "<" + value["dtype"])


def strings(table: StringTable) -> Strings:
    return {"data": bytes(table.data), "offsets": column(table.offsets.astype(np.uint32))}


def narrow(codes: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Convert codes below ``count`` to uint16 if they fit, else to uint32."""
    return codes.astype(np.uint16 if count <= 1 << 16 else np.uint32)
