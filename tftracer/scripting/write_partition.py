"""Writes one process's tables as Parquet files, ``TABLE/job=J/rank=RRRR/part-N.parquet``, and a manifest that lists them.

Files are written under temporary names, and renamed when all are complete; the manifest comes last. So if a manifest exists, all
files that it lists exist.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tftracer.errors import StorageError
from tftracer.export import parquet
from tftracer.export.tables.schema import OF_TRACES, SCHEMA_VERSION, TABLES
from tftracer.export.tables.table import Array, joined
from tftracer.export.write_files import Folder
from tftracer.scripting.session import Session
from tftracer.storage.whole_file import writing
from tftracer.version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A file is written when at least this many rows are gathered. The rows of a trace are never split.
PART_ROWS = 1 << 20
MANIFESTS = "manifests"

Columns = dict[str, Array]


def partition_name(job: str, rank: int) -> str:
    """Return ``job=J/rank=RRRR``; characters that a path may not contain are percent-encoded."""
    return f"job={quote(job, safe=' ()+,@')}/rank={rank:04d}"


@dataclass
class PartWriter:
    """Gathers a table's rows and writes them to temporary files, numbered from ``first_part``. ``where``: partition name."""

    connection: DuckDBPyConnection
    folder: Folder
    table: str
    where: str
    first_part: int = 0
    waiting: list[Columns] = field(default_factory=list)
    rows: int = 0
    written: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)

    def add(self, columns: Columns) -> None:
        self.waiting.append(columns)
        self.rows += len(next(iter(columns.values())))
        if self.rows >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the gathered rows. A table without rows also gets a file, so that readers find its columns."""
        if not self.rows and (self.written or self.first_part):
            return
        columns = {each.name: joined(each, [part[each.name] for part in self.waiting]) for each in TABLES[self.table]}
        path = f"{self.table}/{self.where}/part-{self.first_part + len(self.written)}.parquet"
        temporary = self.folder.temporary_path(path)
        parquet.write(self.connection, self.table, columns, temporary)
        self.written.append((temporary, {"path": path, "rows": self.rows, "bytes": temporary.stat().st_size}))
        self.waiting, self.rows = [], 0


def write_parts(
    connection: DuckDBPyConnection,
    session: Session,
    folder: Folder,
    where: str,
    first_part: Callable[[str], int],
    traces: Sequence[int] | None,
) -> dict[str, PartWriter]:
    """Write the session's tables to temporary files, and return the writers by table.

    ``traces``: the numbers of the traces whose rows are written; None: all traces.
    """
    writers = {name: PartWriter(connection, folder, name, where, first_part(name)) for name in TABLES}
    for name in TABLES:
        if name not in OF_TRACES:
            for columns in session.table(name).parts():
                writers[name].add(columns)
    for name, columns in session.trace_rows(traces=traces):
        writers[name].add(columns)
    for writer in writers.values():
        writer.flush()
    return writers


def export_session(connection: DuckDBPyConnection, session: Session, folder: Folder, job: str) -> dict[str, Any]:
    """Write the session's partition in place of an older one, and return its manifest."""
    where = partition_name(job, session.rank)
    older = older_parts(folder, session.facts["id"], where)
    writers = write_parts(connection, session, folder, where, lambda table: 0, None)
    publish(folder, writers.values(), older)
    parts = {name: [part for _, part in writer.written] for name, writer in writers.items()}
    manifest = new_manifest(session, job, session.rank, parts)
    write_manifest(folder, where, manifest)
    return manifest


def manifest_path(where: str) -> str:
    return f"{MANIFESTS}/{where}/manifest.json"


def older_parts(folder: Folder, session_id: str, where: str) -> list[str]:
    """Remove the old manifest, and return the old partition's files. (While a partition is incomplete, it must have no manifest.)

    Raises StorageError if the old partition holds another session."""
    content = folder.read(manifest_path(where))
    if content is None:
        return []
    try:
        older = json.loads(content)
        paths = [str(part["path"]) for parts in older["tables"].values() for part in parts]
        other = str(older["session_id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        paths, other = [], ""
    if other and other != session_id:
        raise StorageError(f"{where} exists and holds another session. Choose another name: --job NAME, or TFTRACER_JOB.")
    folder.remove(manifest_path(where))
    return [path for path in paths if is_part(path, where)]


def is_part(path: str, where: str) -> bool:
    """Return whether a path is a file of the partition. A damaged or forged manifest must not cause other files to be removed."""
    table, _, rest = path.partition("/")
    return table in TABLES and re.fullmatch(rf"{re.escape(where)}/part-\d+\.parquet", rest) is not None


def publish(folder: Folder, writers: Iterable[PartWriter], older: Sequence[str] = ()) -> None:
    """Rename the written files to their final names, and remove the other files of ``older``."""
    paths = set()
    for writer in writers:
        for temporary, part in writer.written:
            folder.publish(temporary, part["path"])
            paths.add(part["path"])
    for path in older:
        if path not in paths:
            folder.remove(path)


def new_manifest(session: Session, job: str, rank: int, tables: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Make a manifest. ``tables``: table -> its parts."""
    return {
        "schema": SCHEMA_VERSION,
        "tftracer": __version__,
        "job": job,
        "rank": rank,
        "title": session.title,
        "session_id": session.facts["id"],
        "written_at": time.time(),
        "tables": tables,
    }


def write_manifest(folder: Folder, where: str, manifest: dict[str, Any]) -> None:
    path = manifest_path(where)
    temporary = folder.temporary_path(path)
    with writing(path):
        temporary.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    folder.publish(temporary, path)
