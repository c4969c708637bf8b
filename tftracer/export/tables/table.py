"""A table: columns of equal length, read when they are asked for. What ``tftracer.open`` answers with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from tftracer.errors import UnknownError, UnsupportedError
from tftracer.export.tables.schema import SCRIPT_TABLES, Field

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Coded:
    """Texts as codes into the distinct ones; a code of -1 is the empty text."""

    codes: Array
    texts: Sequence[str]

    def decoded(self) -> Array:
        """[n] objects; equal texts share one."""
        texts = np.empty(len(self.texts) + 1, object)
        texts[:-1] = list(self.texts)
        texts[-1] = ""
        return np.asarray(texts[self.codes])


Values = Union[Array, Coded, Sequence[Any]]
Columns = dict[str, Callable[[], Values]]


@dataclass(frozen=True)
class Part:
    """Some rows of a table: a trace's, or a run's. A column is computed when it is called."""

    rows: int
    columns: Mapping[str, Callable[[], Values]]


_DTYPES: dict[str, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_, "text": object, "time": "datetime64[ns]"}


class Table:
    """Named NumPy columns of equal length.

    ``table["start_ns"]`` is a column: int64, float64, bool, ``datetime64[ns]`` (UTC), or an object array of ``str``. A column in
    which values may not be known is a masked array (times: NaT where not known). Columns are read when they are asked for;
    ``select`` reads several at once, which for many traces takes less time than one after the other.
    """

    def __init__(self, name: str, parts: Callable[[], Iterator[Part]]) -> None:
        self.name = name
        self._parts = parts
        self._fields = {field.name: field for field in SCRIPT_TABLES[name]}
        self._read: dict[str, Array] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self._fields)

    def __len__(self) -> int:
        first = next(iter(self._fields))
        return len(self[first])

    def __getitem__(self, column: str) -> Array:
        if column not in self._fields:
            raise UnknownError(f"The table {self.name} has no column {column!r}. Its columns: {', '.join(self._fields)}.")
        return self.select(column)[column]

    def select(self, *columns: str) -> dict[str, Array]:
        """Some columns by name, all of them if none is named."""
        wanted = columns or self.columns
        missing = [self._fields[name] for name in wanted if name not in self._read]
        if missing:
            parts = [{field.name: conformed(field, part.columns[field.name]()) for field in missing} for part in self._parts()]
            for field in missing:
                self._read[field.name] = joined(field, [part[field.name] for part in parts])
        return {name: self._read[name] for name in wanted}

    def parts(self) -> Iterator[dict[str, Array]]:
        """The whole table piece by piece, a trace or a run at a time: nothing is kept."""
        for part in self._parts():
            yield {name: conformed(field, part.columns[name]()) for name, field in self._fields.items()}

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts of Python values, None where not known: for small tables."""
        columns = {name: _values(column) for name, column in self.select().items()}
        return (dict(zip(columns, row)) for row in zip(*columns.values()))

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: texts as categories, whole numbers that may be unknown as ``Int64``. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError("to_pandas() needs pandas, which is not installed here: pip install pandas") from None
        return pandas.DataFrame({name: _series(pandas, column) for name, column in self.select().items()})

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self):,} rows of {', '.join(self._fields)}>"


def _values(column: Array) -> list[Any]:
    if column.dtype.kind == "M":
        return [None if np.isnat(value) else value for value in column]
    return list(column.tolist())  # a masked array's unknown values become None


def _series(pandas: Any, column: Array) -> Any:
    if column.dtype == object:
        return pandas.Categorical(column)
    if isinstance(column, np.ma.MaskedArray):
        dtype = "Int64" if column.dtype.kind == "i" else "Float64"
        return (
            pandas.array(column.filled(0), dtype=dtype) if not column.mask.any() else pandas.array(column.tolist(), dtype=dtype)
        )
    return column


def conformed(field: Field, values: Values) -> Array:
    """A column as its field says, whatever it was computed as."""
    if isinstance(values, Coded):
        return values.decoded()
    if field.type == "text":
        texts = np.empty(len(values), object)
        texts[:] = values
        return texts
    if field.type == "time" or not field.unknown:
        return np.asarray(values, _DTYPES[field.type])
    return _masked(values, _DTYPES[field.type])


def _masked(values: Values, dtype: Any) -> Array:
    if isinstance(values, (np.ndarray, Coded)):
        column: Array = np.ma.asarray(values).astype(dtype)
        return column
    has_value = [value is not None for value in values]
    filled = np.array([value if is_known else 0 for value, is_known in zip(values, has_value)], dtype)
    return np.ma.masked_array(filled, ~np.array(has_value, bool))


def joined(field: Field, parts: Sequence[Array]) -> Array:
    if not parts:
        return conformed(field, np.zeros(0, _DTYPES[field.type]))
    if len(parts) == 1:
        return parts[0]
    join: Any = np.ma.concatenate if isinstance(parts[0], np.ma.MaskedArray) else np.concatenate
    both: Array = join(parts)
    return both


def nanoseconds(seconds: Sequence[float | None]) -> list[int | None]:
    """Whole nanoseconds of durations in seconds."""
    return [None if value is None else round(value * 1e9) for value in seconds]


def moments(seconds: Sequence[float | None] | Array) -> Array:
    """``datetime64[ns]`` of epoch seconds, to the microsecond (a double holds no more); NaT where not known, or 0."""
    given = np.array([np.nan if value is None else value for value in seconds], np.float64)
    is_valid = (given > 0) & (given < 9e9)
    micro = np.where(is_valid, np.rint(np.where(is_valid, given, 0) * 1e6), 0).astype(np.int64)
    return np.where(is_valid, (micro * 1000).astype("datetime64[ns]"), np.datetime64("NaT", "ns"))
