"""Writes tables as Parquet files with DuckDB, from NumPy columns. No other library is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tftracer.errors import StorageError, UnsupportedError
from tftracer.export.tables.schema import SCHEMA_VERSION, TABLES, Field
from tftracer.export.tables.table import Array
from tftracer.version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SQL_TYPES = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "text": "VARCHAR", "time": "TIMESTAMP_NS"}


def connect() -> DuckDBPyConnection:
    """Open a database in memory that loads nothing from the network.

    Raises UnsupportedError, with what to install, if DuckDB is missing.
    """
    try:
        import duckdb
    except ImportError:
        raise UnsupportedError("This needs DuckDB, which is not installed here: pip install tftracer[tables]") from None
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    connection.execute("SET enable_progress_bar = false")
    return connection


def quoted(text: str) -> str:
    """Return the text as a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def select(table: str, source: str, *more: str) -> str:
    """Return SQL that reads the columns of ``source`` and casts them to the table's types; ``more``: SQL of further columns."""
    return f"SELECT {', '.join([*map(_cast, TABLES[table]), *more])} FROM {source}"


def _cast(field: Field) -> str:
    """Return SQL that casts a column. Values under masks (export/tables/table.py), which DuckDB may read, become NULL."""
    column = f'"{field.name}"::{_SQL_TYPES[field.type]}'
    if field.unknown and field.type == "int":
        column = f"nullif({column}, (-9223372036854775807 - 1)::BIGINT)"
    elif field.unknown and field.type == "float":
        column = f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    return f'{column} AS "{field.name}"'


def plain(columns: dict[str, Array]) -> dict[str, Array]:
    """Return the columns, masked ones as plain NumPy masked arrays: DuckDB before 2.0 ignores the masks of ``MaskedColumn``."""
    return {name: column.view(np.ma.MaskedArray) if np.ma.isMaskedArray(column) else column for name, column in columns.items()}


def write(connection: DuckDBPyConnection, table: str, columns: dict[str, Array], path: Path) -> None:
    """Write one file, with the schema's version in its metadata. Raises ``StorageError`` if it cannot be written."""
    metadata = {"tftracer_schema": str(SCHEMA_VERSION), "tftracer_table": table, "tftracer_version": __version__}
    pairs = ", ".join(f"{name}: {quoted(value)}" for name, value in metadata.items())
    options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{pairs}}}"
    registered: Any = plain(columns)
    connection.register("written", registered)
    try:
        connection.execute(f"COPY ({select(table, 'written')}) TO {quoted(str(path))} ({options})")
    except Exception as error:
        raise StorageError(f"{path}: cannot be written ({error}).") from error
    finally:
        connection.unregister("written")
