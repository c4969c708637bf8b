"""``tftracer.open`` opens a file, a live page's URL, or a folder of sessions or of the tables that ``tftracer export`` wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tftracer.errors import FormatError, UnknownError, UnsupportedError
from tftracer.export import parquet
from tftracer.export.tables.schema import SCRIPT_TABLES, TABLES, Field
from tftracer.export.tables.table import Part, Table
from tftracer.scripting.download import is_url
from tftracer.scripting.find_partitions import read_parquet
from tftracer.scripting.session import Session
from tftracer.scripting.session import open as open_session
from tftracer.scripting.write_partition import MANIFESTS
from tftracer.session.files.reading import new_facts
from tftracer.session.files.saved import SavedSession
from tftracer.session.model import SessionModel
from tftracer.trace.analyses.ops import By, check_grouping

_PROCESS_FIELDS = (Field("job", "text", "the session's file, or its job"), Field("rank", "int", "the process's rank in its job"))


def open(path: str | os.PathLike[str], token: str | None = None, certificate: str | None = None) -> Session:
    """Open a session: any file that ``tftracer FILE`` opens, or the URL of a live page or of one of its views.

    A live session is copied in its current state. It needs the page's token: in the URL (``?token=``), as ``token``, or in the
    environment as TFTRACER_TOKEN. ``certificate``: a file with the server's certificate, if the system does not trust its issuer.
    The URL of a job's hub opens the whole job.

    If ``path`` is a folder of ``.tftrace`` files, each table has the rows of all files, and ``processes`` are those of all files.
    If it is a folder that ``tftracer export`` wrote, the tables are read with DuckDB. In both cases, tables have the additional
    columns ``job`` and ``rank``, as in ``tftracer query``.

    Raises ``StorageError`` if ``path`` cannot be read or reached, ``FormatError`` if it has no data that tftracer can open.
    """
    name = os.fspath(path)
    folder = Path(name).expanduser()
    if not is_url(name) and (folder / MANIFESTS).is_dir():
        return ExportedFolder(name, folder)
    files = [] if is_url(name) or not folder.is_dir() else sorted(folder.glob("*.tftrace"))
    return SessionFolder(name, files) if files else open_session(path, token, certificate)


class _Tables(Session):
    """A session that only has tables."""

    def __init__(self, name: str) -> None:
        super().__init__(SavedSession(SessionModel(new_facts())), name)

    def _table(self, name: str, trace: int | None = None, run: int | str | None = None, by: By = "name") -> Table:
        check_grouping(by)
        return Table(name, lambda: self._parts(name, trace, run, by), (*SCRIPT_TABLES[name], *_PROCESS_FIELDS))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self.runs()):,} runs, {len(self.traces()):,} traces>"

    def _as_html(self) -> str:
        return self.runs()._repr_html_()


class SessionFolder(_Tables):
    """Saved sessions in one folder; ``processes``: those of all files, one clock per file. Created by ``tftracer.open``."""

    def __init__(self, name: str, files: Sequence[Path]) -> None:
        super().__init__(name)
        self._files = [(file.stem, open_session(file)) for file in files]
        self._processes = tuple(process for _, session in self._files for process in session.processes)

    def _parts(self, name: str, trace: int | None, run: int | str | None, by: By) -> Iterator[Part]:
        known = False
        for job, session in ((job, process) for job, opened in self._files for process in opened.processes):
            if trace is not None and trace not in session.trace_ids():
                continue
            if run is not None and run not in {value for row in session.runs() for value in (row["title"], row["run_id"])}:
                continue
            known = True
            table = session._table(name, trace, run, by)
            for columns in table.parts():
                rows = len(next(iter(columns.values())))
                yield _part({**columns, "job": np.full(rows, job, object), "rank": np.full(rows, session.rank)})
            session.forget_traces()
        if not known:
            raise UnknownError(
                f"No session in {self.name} has {'this run' if run is not None else 'this trace'}: {run or trace!r:.80}."
            )

    def trace(self, number: int | None = None) -> Any:
        raise UnsupportedError(f"{self.name} holds several sessions: use one of them, such as .processes[0].trace().")

    def close(self) -> None:
        for _, session in self._files:
            session.close()


class ExportedFolder(_Tables):
    """The tables that ``tftracer export`` wrote, read from Parquet files by DuckDB. Created by ``tftracer.open``."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self._folder = folder
        parquet.connect().close()  # raises UnsupportedError without DuckDB

    def _parts(self, name: str, trace: int | None, run: int | str | None, by: By) -> Iterator[Part]:
        if name == "ops_over_traces" or (name == "ops" and by != "name"):
            raise UnsupportedError(
                "Exported tables hold ops by node name: ops('name'). For other groupings, open the session's file."
            )
        condition = "true" if trace is None else f"trace_id = {int(trace)}"
        if isinstance(run, str):
            runs = f"SELECT (job, rank, run_id) FROM {self._read('runs')} WHERE title = {parquet.quoted(run)}"
            condition += f" AND (job, rank, run_id) IN ({runs})"
        elif run is not None:
            condition += f" AND run_id = {int(run)}"
        fields = (*TABLES[name], *_PROCESS_FIELDS)
        listed = ", ".join(f'"{field.name}"' for field in fields)
        connection = parquet.connect()
        try:
            result = connection.execute(f"SELECT {listed} FROM {self._read(name)} WHERE {condition}").fetchnumpy()
        except Exception as error:
            raise FormatError(f"{self.name}: its table {name} cannot be read ({error}).") from error
        finally:
            connection.close()
        columns = {
            name: np.ma.filled(column, np.datetime64("NaT")) if column.dtype.kind == "M" else column
            for name, column in result.items()
        }
        yield _part(columns)

    def _read(self, table: str) -> str:
        return read_parquet([f"{self._folder}/{table}/*/*/*.parquet"])

    def trace(self, number: int | None = None) -> Any:
        raise UnsupportedError(f"{self.name} holds tables, and no trace to show: open the session's file.")


def _part(columns: dict[str, Any]) -> Part:
    return Part(len(next(iter(columns.values()))), {name: partial(columns.__getitem__, name) for name in columns})
