"""``Table``: columns of equal length, which are computed when they are read. Sessions return their data in tables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from tftracer.display import markup
from tftracer.errors import UnknownError, UnsupportedError
from tftracer.export.tables import arrow
from tftracer.export.tables.schema import SCRIPT_TABLES, Field
from tftracer.trace.arrays.columns import Coded, Columns, Values
from tftracer.trace.units import counted

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """Some rows of a table, for example of one trace or run. ``columns``: name -> function that computes the column."""

    rows: int
    columns: Mapping[str, Callable[[], Values]]


#: Number of rows that a notebook shows.
_SHOWN_ROWS = 10
_DTYPES: dict[str, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_, "text": object, "time": "datetime64[ns]"}


class Table:
    """Named NumPy columns of equal length; ``name in table`` returns whether the table has this column.

    ``table["start_ns"]`` is a column: int64, float64, bool, ``datetime64[ns]`` (UTC), or an object array of ``str``. A column
    with unknown values is a masked array (times: NaT). Columns are computed when they are read; ``select`` reads several at once,
    which is faster for many traces.

    ``table[0]`` is a row, a dict of Python values with None for unknown values; iterating over the table yields such rows.
    ``table[10:20]``, and ``table[mask or positions]``, is a table of these rows.

    polars, pyarrow, DuckDB and pandas 3 can read a table directly: ``polars.DataFrame(table)``, ``pyarrow.table(table)``.
    """

    def __init__(self, name: str, parts: Callable[[], Iterator[Part]], fields: Sequence[Field] = ()) -> None:
        self.name = name
        self._parts = parts
        self._fields = {field.name: field for field in fields or SCRIPT_TABLES[name]}
        self._cached: dict[str, Array] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self._fields)

    def __len__(self) -> int:
        first = next(iter(self._fields))
        return len(self[first])

    def __contains__(self, column: object) -> bool:
        return column in self._fields

    @overload
    def __getitem__(self, key: str) -> Array: ...

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice | Array | list[int] | list[bool]) -> Table: ...

    def __getitem__(self, key: Any) -> Any:
        """Return a column by its name, a row by its number, or a table of some rows."""
        if isinstance(key, str):
            return self.select(key)[key]
        if hasattr(key, "__index__") and not isinstance(key, np.ndarray):
            return self._row(operator.index(key))
        return self._with_rows(key)

    def _row(self, position: int) -> dict[str, Any]:
        if not -len(self) <= position < len(self):
            raise IndexError(f"The table {self.name} has {len(self):,} rows; there is no row {position}.")
        start = position % len(self)
        return next(iter(self[start : start + 1]))

    def _with_rows(self, which: Any) -> Table:
        if not isinstance(which, slice):
            which = np.ma.filled(np.asanyarray(which), False)  # an unknown value does not select its row
        rows = len(np.arange(len(self))[which])
        columns: Columns = {name: lambda name=name: self[name][which] for name in self._fields}  # type: ignore[misc]
        return Table(self.name, lambda: iter([Part(rows, columns)]), tuple(self._fields.values()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = {name: _values(column) for name, column in self.select().items()}
        return (dict(zip(columns, row)) for row in zip(*columns.values()))

    def select(self, *columns: str) -> dict[str, Array]:
        """Return the columns with these names; without names, all columns."""
        names = columns or self.columns
        for name in names:
            if name not in self._fields:
                raise UnknownError(f"The table {self.name} has no column {name!r}. Its columns: {', '.join(self._fields)}.")
        missing = [self._fields[name] for name in names if name not in self._cached]
        if missing:
            parts = [{field.name: conformed(field, part.columns[field.name]()) for field in missing} for part in self._parts()]
            for field in missing:
                self._cached[field.name] = joined(field, [part[field.name] for part in parts])
        return {name: self._cached[name] for name in names}

    def parts(self) -> Iterator[dict[str, Array]]:
        """Yield the whole table in parts, one trace or run at a time; nothing is cached."""
        for part in self._parts():
            yield {name: conformed(field, part.columns[name]()) for name, field in self._fields.items()}

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``: texts as strings, integers with unknown values as ``Int64``. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError("to_pandas() needs pandas, which is not installed here: pip install pandas") from None
        return pandas.DataFrame({name: _series(pandas, column) for name, column in self.select().items()})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as Arrow's PyCapsule, for libraries that read Arrow: all rows, in one batch."""
        return arrow.capsule(tuple(self._fields.values()), self.select())

    def _size(self) -> str:
        """Return, for example, ``5,652 rows of 11,598 steps`` if a row stands for several steps."""
        rows = counted(len(self), "row")
        weight = next((field for field in self._fields.values() if field.counts), None)
        return f"{rows} of {counted(int(self[weight.name].sum()), weight.counts)}" if weight else rows

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self._size()}; columns {', '.join(self._fields)}>"

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        return markup.shown(f"Table {self.name}", self._as_html)

    def _as_html(self) -> str:
        first = self[:_SHOWN_ROWS]
        heads = [(" " if field.type in ("int", "float") else "") + field.name for field in self._fields.values()]
        rows = [[_cell(value) for value in row.values()] for row in first]
        more = markup.note(f"{len(self) - _SHOWN_ROWS:,} more rows") if len(self) > _SHOWN_ROWS else ""
        return markup.block(f"{self.name}: {self._size()}", markup.table(heads, rows), more)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _values(column: Array) -> list[Any]:
    if column.dtype.kind == "M":
        return [None if np.isnat(value) else value for value in column]
    return list(column.tolist())  # a masked array's unknown values become None


def _series(pandas: Any, column: Array) -> Any:
    if isinstance(column, np.ma.MaskedArray):
        dtype = "Int64" if column.dtype.kind == "i" else "Float64"
        return pandas.array(column.filled(0) if not column.mask.any() else column.tolist(), dtype=dtype)
    return column


def conformed(field: Field, values: Values) -> Array:
    """Convert a column to its field's type."""
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
        return masked_column(np.ma.asarray(values).astype(dtype))
    unknown = [value is None for value in values]
    return masked_column(np.array([value if value is not None else 0 for value in values], dtype), unknown)


def joined(field: Field, parts: Sequence[Array]) -> Array:
    if not parts:
        return conformed(field, np.zeros(0, _DTYPES[field.type]))
    if len(parts) == 1:
        return parts[0]
    join: Any = np.ma.concatenate if isinstance(parts[0], np.ma.MaskedArray) else np.concatenate
    whole: Array = join(parts)
    return whole


def nanoseconds(seconds: Sequence[float | None]) -> list[int | None]:
    """Convert durations in seconds to whole nanoseconds."""
    return [None if value is None else round(value * 1e9) for value in seconds]


def moments(seconds: Sequence[float | None] | Array) -> Array:
    """Convert epoch seconds to ``datetime64[ns]``, rounded to microseconds (a double's precision); NaT if unknown or invalid."""
    given = np.array([np.nan if value is None else value for value in seconds], np.float64)
    is_valid = (given > 0) & (given < 9e9)
    micro = np.where(is_valid, np.rint(np.where(is_valid, given, 0) * 1e6), 0).astype(np.int64)
    return np.where(is_valid, (micro * 1000).astype("datetime64[ns]"), np.datetime64("NaT", "ns"))


#: Functions of NumPy that ignore masks. They get only the known values of a column.
_MASK_BLIND = frozenset({"histogram", "histogram_bin_edges", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile",
                         "quantile", "unique"})  # fmt: skip
#: Functions of NumPy that drop masks. The functions of these names in numpy.ma keep them.
_MASK_LOSING = frozenset({"append", "average", "concatenate", "corrcoef", "cov", "hstack", "vstack", "where"})


class MaskedColumn(np.ma.MaskedArray):
    """A masked array. Masked values are NaN or the lowest integer, which cannot be mistaken for real values."""

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
    """Make a MaskedColumn.

    ``values``: integers or floats, masked or not. ``unknown``: [n] bool; default: the mask of ``values``.
    """
    mask = np.ma.getmaskarray(values) if unknown is None else np.asarray(unknown, bool)
    masked_value = np.nan if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    return MaskedColumn(np.where(mask, masked_value, np.ma.getdata(values)).astype(values.dtype), mask)
