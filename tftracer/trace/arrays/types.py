"""Aliases of array types, and the base of dataclasses that hold columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Float64 = npt.NDArray[np.float64]

_Rows = TypeVar("_Rows", bound="Rows")


@dataclass(frozen=True)
class Rows:
    """Columns of equal length: the fields of a dataclass."""

    def only(self: _Rows, selected: Bool | Int64 | slice) -> _Rows:
        """Return the selected rows."""
        return type(self)(*(getattr(self, column.name)[selected] for column in fields(self)))
