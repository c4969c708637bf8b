"""SQL over the tables of sessions, or of an exported folder: what ``tftracer query`` does. Nothing of it is served over HTTP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tftracer.errors import FormatError, UnsupportedError
from tftracer.export import parquet
from tftracer.export.tables.schema import OF_TRACES, TABLES
from tftracer.export.tables.table import Array, joined
from tftracer.scripting.export import each_session
from tftracer.scripting.partition import MANIFESTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Result:
    columns: list[str]
    rows: list[tuple[Any, ...]]


def query(files: Sequence[str], sql: str, job: str | None = None) -> Result:
    """The answer to one SQL statement. Each table has the columns ``job`` and ``rank`` beside its own.

    ``files``: sessions, or one folder that was exported. FormatError: the statement is wrong; it says what DuckDB says.
    """
    connection = parquet.connect()
    try:
        wanted = [table for table in TABLES if re.search(rf"\b{table}\b", sql, re.IGNORECASE)]
        if len(files) == 1 and (Path(files[0]) / MANIFESTS).is_dir():
            _view_folder(connection, Path(files[0]), wanted)
        else:
            _load(connection, files, wanted, job)
        return _answer(connection, sql)
    finally:
        connection.close()


def _answer(connection: DuckDBPyConnection, sql: str) -> Result:
    import duckdb

    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            return Result([], [])
        return Result([column[0] for column in cursor.description], cursor.fetchall())
    except duckdb.Error as error:
        raise FormatError(f"{error}\nThe tables: {', '.join(TABLES)}. docs/tables lists their columns.") from error


def _view_folder(connection: DuckDBPyConnection, folder: Path, tables: Sequence[str]) -> None:
    for table in tables:
        if not any(folder.glob(f"{table}/*/*/*.parquet")):
            raise UnsupportedError(f"{folder} has no table {table}: it was exported by another version, or not to its end.")
        files = parquet.quoted(f"{folder}/{table}/*/*/*.parquet")
        types = "hive_partitioning = true, hive_types = {job: VARCHAR, rank: BIGINT}, union_by_name = true"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({files}, {types})")


def _load(connection: DuckDBPyConnection, files: Sequence[str], tables: Sequence[str], job: str | None) -> None:
    """The tables that the statement names, in memory."""
    of_traces, others = ([table for table in tables if (table in OF_TRACES) == wanted] for wanted in (True, False))
    for table in tables:
        empty = {field.name: joined(field, []) for field in TABLES[table]}
        _insert(connection, table, empty, f"CREATE TABLE {table} AS", "", 0)
    for name, session in each_session(files, job):
        for table in others:
            for columns in session.table(table).parts():
                _insert(connection, table, columns, f"INSERT INTO {table}", name, session.rank)
        for table, columns in session.trace_rows(*of_traces) if of_traces else ():
            _insert(connection, table, columns, f"INSERT INTO {table}", name, session.rank)


def _insert(connection: DuckDBPyConnection, table: str, columns: dict[str, Array], into: str, job: str, rank: int) -> None:
    registered: Any = columns
    connection.register("part", registered)
    rows = parquet.select(table, "part", f"{parquet.quoted(job)} AS job", f"{rank}::BIGINT AS rank")
    connection.execute(f"{into} {rows}")
    connection.unregister("part")
