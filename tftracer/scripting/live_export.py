"""The program that ``export_dir`` starts: it writes a process's partition of an exported folder while the process records.

It reads the file that the session is written to, so the training never waits for it. If the training is killed, the program
writes the remaining rows and ends. New traces are written to new files; the files of other tables are replaced when the tables
grow. A file appears only when it is complete. The clocks of a job's processes are not aligned: for that, export the saved
sessions.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from tftracer.errors import TracerError
from tftracer.export import parquet
from tftracer.export.tables.schema import OF_TRACES, TABLES
from tftracer.export.write_files import Folder, folder
from tftracer.memory_limit import limit_memory
from tftracer.scripting.session import Session
from tftracer.scripting.write_partition import new_manifest, older_parts, partition_name, publish, write_manifest, write_parts
from tftracer.session.files.saved import open_session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NICE = 10
#: Maximum number of attempts at the last round. If an earlier round fails, the next round writes its rows, too.
_LAST_ROUNDS = 15


class LivePartition:
    """The partition. ``spool``: the session's file. Raises ``StorageError`` if the folder has another session's partition."""

    def __init__(self, connection: DuckDBPyConnection, target: Folder, spool: Path, job: str, rank: int) -> None:
        self._connection = connection
        self._folder = target
        self._spool = spool
        self._job, self._rank = job, rank
        self._partition = partition_name(job, rank)
        self._parts: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        self._exported: set[int] = set()  # ids of exported traces
        self._seen = (0, 0, False)  # size and time of the session's file at the last round, and whether the session had ended

    def write(self, ended: bool = False) -> bool:
        """Write new rows; return False if there are none.

        ``ended``: whether the session has ended, so that no more traces are analyzed.
        """
        try:
            status = self._spool.stat()
        except FileNotFoundError:  # nothing was recorded
            return False
        seen = (status.st_size, status.st_mtime_ns, ended)
        if self._seen == seen:
            return False
        with Session(open_session(self._spool), str(self._spool)) as session:
            self._write(session, ended)
        self._seen = seen
        return True

    def _write(self, session: Session, ended: bool) -> None:
        older = [] if any(self._parts.values()) else older_parts(self._folder, session.facts["id"], self._partition)
        traces = [
            number for number in session.trace_ids() if number not in self._exported and self._is_ready(session, number, ended)
        ]
        writers = write_parts(self._connection, session, self._folder, self._partition, self._first_part, traces)
        for name, writer in writers.items():
            self._parts[name] = [*self._parts[name][: writer.first_part], *(part for _, part in writer.written)]
        publish(self._folder, writers.values(), older)
        write_manifest(self._folder, self._partition, new_manifest(session, self._job, self._rank, self._parts))
        self._exported.update(traces)

    def _first_part(self, table: str) -> int:
        """Return the number of the next part: tables of traces get new parts, other tables are replaced."""
        return len(self._parts[table]) if table in OF_TRACES else 0

    @staticmethod
    def _is_ready(session: Session, trace: int, ended: bool) -> bool:
        """Return whether a trace can be read and was analyzed. Until the session ends, a trace may wait for its analysis."""
        if session.source.trace_record(trace)["state"] == "pending" and not ended:
            return False
        return bool(session.table("traces", trace)["state"][0] == "ready")


def _wait(parent: int, seconds: float) -> bool:
    """Wait. Return whether the session has ended: its process has written to stdin, or has ended."""
    waited = 0.0
    while waited < seconds:
        if select.select([0], [], [], min(1.0, seconds))[0] or os.getppid() != parent:
            return True
        waited += 1.0
    return False


def main(spool: str, export_dir: str, job: str, rank: str, parent: str, round_s: str) -> None:
    """Export until the session ends. Problems are printed, one per line."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    reported, last_rounds, target, connection = "", 0, folder(export_dir), parquet.connect()
    partition = LivePartition(connection, target, Path(spool), job, int(rank))
    connection.execute("SET threads = 1")
    try:
        while not last_rounds or (reported and last_rounds < _LAST_ROUNDS):
            if last_rounds:
                sleep(float(round_s))
            if last_rounds or _wait(int(parent), float(round_s)):
                last_rounds += 1
            problem = ""
            try:
                partition.write(ended=last_rounds > 0)
            except TracerError as error:  # for example a full disk: the next round tries again
                problem = " ".join(str(error).split())
            if problem != reported or (problem and last_rounds == 1):
                reported = problem
                with contextlib.suppress(OSError):  # the training was killed
                    print(reported, flush=True)  # noqa: T201 (export_process.py listens)
    finally:
        target.close()
        connection.close()


if __name__ == "__main__":
    limit_memory()
    main(*sys.argv[1:])
