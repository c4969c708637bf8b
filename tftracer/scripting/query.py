"""SQL over the tables of sessions, or of an exported folder, for ``tftracer query``. It is not available over HTTP."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tftracer.errors import FormatError, UnsupportedError
from tftracer.export import parquet
from tftracer.export.tables.schema import OF_TRACES, TABLES
from tftracer.export.tables.table import Array, joined
from tftracer.scripting.export import each_session
from tftracer.scripting.find_partitions import Partition, partitions, read_parquet
from tftracer.scripting.write_partition import MANIFESTS
from tftracer.trace.units import counted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tftracer.scripting.session import Session


_log = logging.getLogger(__name__)

#: Statements that find damaged Parquet files: the first reads only the metadata that DuckDB needs before it answers, the second
#: the whole file.
_READ_METADATA = "DESCRIBE SELECT * FROM {}"
_READ_WHOLE = "SELECT max(hash(COLUMNS(*))) FROM {}"


@dataclass(frozen=True)
class Result:
    columns: list[str]
    rows: list[tuple[Any, ...]]


def query(files: Sequence[str], sql: str, job: str | None = None, external: bool = False) -> Result:
    """Return the answer to the last SQL statement that returns rows; see :func:`answers`."""
    return (answers(files, sql, job, external) or [Result([], [])])[-1]


def answers(files: Sequence[str], sql: str, job: str | None = None, external: bool = False) -> list[Result]:
    """Return the answers to SQL statements, separated by ``;``, that return rows.

    Each table has the additional columns ``job`` and ``rank``. ``files``: sessions, or one exported folder. ``external``: the
    statements may read and write other files, use the network and load DuckDB's extensions. Raises FormatError with DuckDB's
    message for a statement that is invalid or not allowed; later statements are not executed.
    """
    tables = [table for table in TABLES if re.search(rf"\b{table}\b", sql, re.IGNORECASE)]
    if len(files) != 1 or not (Path(files[0]) / MANIFESTS).is_dir():
        return _answers(partial(_load, files=files, tables=tables, job=job), sql, external)
    view = partial(_view_folder, folder=Path(files[0]), tables=tables)
    try:
        return _answers(partial(view, reading=_READ_METADATA), sql, external)
    except _UnansweredError:  # a file may be damaged outside its metadata
        return _answers(partial(view, reading=_READ_WHOLE), sql, external)


class _UnansweredError(FormatError):
    """DuckDB cannot answer a valid statement."""


def _answers(make_tables: Callable[[DuckDBPyConnection], None], sql: str, external: bool) -> list[Result]:
    connection = parquet.connect()
    try:
        make_tables(connection)
        connection.execute("SET TimeZone = 'UTC'")
        if not external:  # read only the files of an exported folder's tables, no Python variables
            connection.execute("SET python_enable_replacements = false")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        return _execute_statements(connection, sql, external)
    finally:
        connection.close()


def _execute_statements(connection: DuckDBPyConnection, sql: str, external: bool) -> list[Result]:
    import duckdb

    invalid = (duckdb.ParserException, duckdb.SyntaxException, duckdb.BinderException, duckdb.CatalogException)
    # These could overwrite files of an exported folder.
    writing = () if external else (duckdb.StatementType.COPY, duckdb.StatementType.EXPORT)
    try:
        statements = [(statement.query, statement.type) for statement in connection.extract_statements(sql)]
        results = []
        for text, kind in statements:
            if kind in writing:
                raise duckdb.PermissionException(f"{kind.name} writes files.")
            results.append(_answer(connection, text, kind == duckdb.StatementType.SELECT))
    except duckdb.PermissionException as error:
        raise FormatError(f"{error}\nA query may use only the tables of the sessions. To allow more: --external.") from error
    except duckdb.Error as error:
        kind_of_error = FormatError if isinstance(error, invalid) else _UnansweredError
        raise kind_of_error(f"{error}\nThe tables: {', '.join(TABLES)}. docs/tables lists their columns.") from error
    return [result for result in results if result is not None]


def _answer(connection: DuckDBPyConnection, statement: str, is_select: bool) -> Result | None:
    """Execute a statement and return its rows; None if it returns no rows."""
    if re.match(r"\s*(explain|describe|summarize|show|call|pragma)\b", statement, re.IGNORECASE):
        pass  # some releases of DuckDB count these as SELECT
    elif is_select:
        statement = _with_zones_as_text(connection, statement.rstrip("; \n"))
    else:
        connection.execute(statement)
        return None
    cursor = connection.execute(statement)
    return Result([column[0] for column in cursor.description or []], cursor.fetchall())


def _with_zones_as_text(connection: DuckDBPyConnection, statement: str) -> str:
    """Cast times with a time zone to text: DuckDB converts them with pytz, which may not be installed."""
    columns = [(name, kind) for name, kind, *_ in connection.execute(f"DESCRIBE {statement}").fetchall()]
    if not any("TIME ZONE" in kind for _, kind in columns):
        return statement
    names = [f"column{number}" for number in range(len(columns))]
    shown = (f'{name}::VARCHAR AS "{quoted}"' if "TIME ZONE" in kind else f'{name} AS "{quoted}"'
             for name, (column, kind) in zip(names, columns) for quoted in [column.replace('"', '""')])  # fmt: skip
    return f"SELECT {', '.join(shown)} FROM (\n{statement}\n) AS answer({', '.join(names)})"


def _view_folder(connection: DuckDBPyConnection, folder: Path, tables: Sequence[str], reading: str) -> None:
    """Create views of the complete and readable partitions; log the problems of the other partitions."""
    exported = partitions(folder)
    readable, damaged = _readable(connection, exported.whole, tables, reading)
    for text in exported.left_out + damaged:
        _log.warning("Left out: %s", text)
    for table in tables:
        files = [file for each in readable for file in each.files.get(table, ())]
        if not files:
            raise UnsupportedError(f"{folder} has no table {table}: it was exported by another version, or not to its end.")
        place = parquet.quoted(f"{folder.absolute()}/{table}/")
        connection.execute(f"SET allowed_directories = list_append(current_setting('allowed_directories'), {place})")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {read_parquet(files)}")


def _readable(
    connection: DuckDBPyConnection, whole: Sequence[Partition], tables: Sequence[str], reading: str
) -> tuple[Sequence[Partition], list[str]]:
    """Return (the partitions whose files the statement ``reading`` can read, the problems of the other partitions)."""
    import duckdb

    def check(some: Sequence[Partition]) -> str:
        try:
            for table in tables:
                if files := [file for each in some for file in each.files.get(table, ())]:
                    connection.execute(reading.format(read_parquet(files)))
        except duckdb.Error as error:
            return f"{some[0].where}: it cannot be read ({str(error).partition(chr(10))[0]}). Export its session again."
        return ""

    if not check(whole):
        return whole, []
    problems = [check([each]) for each in whole]
    return [each for each, problem in zip(whole, problems) if not problem], list(filter(None, problems))


def _load(connection: DuckDBPyConnection, files: Sequence[str], tables: Sequence[str], job: str | None) -> None:
    """Load the tables of the sessions into memory."""
    of_traces = [table for table in tables if table in OF_TRACES]
    of_sessions = [table for table in tables if table not in OF_TRACES]
    for table in tables:
        empty = {field.name: joined(field, []) for field in TABLES[table]}
        _insert(connection, table, empty, f"CREATE TABLE {table} AS", "", 0)
    for name, session in each_session(files, job):
        for table in of_sessions:
            for columns in session.table(table).parts():
                _insert(connection, table, columns, f"INSERT INTO {table}", name, session.rank)
        for table, columns in session.trace_rows(*of_traces) if of_traces else ():
            _insert(connection, table, columns, f"INSERT INTO {table}", name, session.rank)
        _log_damage(name, session, of_traces)


def _log_damage(name: str, session: Session, of_traces: Sequence[str]) -> None:
    """Log how many traces are damaged. Such traces have no rows."""
    traces = (trace for run in session.source.runs() for trace in run["traces"])
    broken = sum(trace["state"] == "broken" for trace in traces)
    if broken and of_traces:
        traces_of = f"{counted(broken, 'trace')} of {name}"
        _log.warning("Left out: %s, which cannot be read. Copy the file again, or trace again.", traces_of)


def _insert(connection: DuckDBPyConnection, table: str, columns: dict[str, Array], into: str, job: str, rank: int) -> None:
    registered: Any = parquet.plain(columns)
    connection.register("part", registered)
    rows = parquet.select(table, "part", f"{parquet.quoted(job)} AS job", f"{rank}::BIGINT AS rank")
    connection.execute(f"{into} {rows}")
    connection.unregister("part")
