"""Columns in which some values are not known: masked arrays that statistics of NumPy do not misread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

#: Functions of NumPy that count what lies under a mask. They get the known values of a column.
_MASK_BLIND = frozenset({"histogram", "histogram_bin_edges", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile",
                         "quantile", "unique"})  # fmt: skip
#: Functions that lose the mask. numpy.ma has one of each that keeps it.
_MASK_LOSING = frozenset({"append", "average", "concatenate", "corrcoef", "cov", "hstack", "vstack", "where"})


class MaskedColumn(np.ma.MaskedArray):
    """A masked array. Under a mask lies NaN, or the lowest integer: no number that could pass for a value."""

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], arguments: Iterable[Any], options: Mapping[str, Any]
    ) -> Any:
        if function.__name__ in _MASK_BLIND:
            arguments = [value.compressed() if isinstance(value, MaskedColumn) else value for value in arguments]
            options = {name: value.compressed() if isinstance(value, MaskedColumn) else value for name, value in options.items()}
            return function(*arguments, **options)
        if function.__name__ in _MASK_LOSING:
            return getattr(np.ma, function.__name__)(*arguments, **options)
        return super().__array_function__(function, types, arguments, options)


def masked_column(values: npt.NDArray[Any], unknown: Any = None) -> MaskedColumn:
    """``values``: masked or not, of integers or floats. ``unknown``: [n] bool; by default what is masked already."""
    mask = np.ma.getmaskarray(values) if unknown is None else np.asarray(unknown, bool)
    under = np.nan if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    return MaskedColumn(np.where(mask, under, np.ma.getdata(values)).astype(values.dtype), mask)
