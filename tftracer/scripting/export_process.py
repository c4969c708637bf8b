"""Starts, listens to and stops the process (live_export.py) that exports a session while it is recorded."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from tftracer.contract.session import LauncherInfo, Session
from tftracer.engine.helper_process import Unusable, environment, interpreter
from tftracer.errors import UnsupportedError

#: Seconds between two rounds; in each round the process exports what is new.
ROUND_S = 20.0
#: Maximum seconds that the end of the script waits for the last files. After that, the process continues to write them.
END_S = 20.0


class ExportProcess:
    """The process. ``report`` is called on a separate thread with each problem, and with "" when the problem is solved."""

    def __init__(
        self, session: Session, job: str, export_dir: str, report: Callable[[str], None], round_s: float = ROUND_S
    ) -> None:
        """Start the process. Raises ``UnsupportedError`` with reason and remedy if it cannot work here."""
        if importlib.util.find_spec("duckdb") is None:
            raise UnsupportedError("export_dir needs DuckDB, which is not installed here: pip install tftracer[tables].")
        if not session["file"]:
            raise UnsupportedError("export_dir needs the session's file, and none can be written. Set spool_dir.")
        target = export_dir if "://" in export_dir else str(Path(export_dir).absolute())
        name, rank = job or Path(session["file"]).stem, partition_rank(session["place"])
        arguments = [session["file"], target, name, str(rank), str(os.getpid()), str(round_s)]
        self._report = report
        self._owner = os.getpid()
        try:
            self._process = subprocess.Popen(
                [interpreter(), "-m", "tftracer.scripting.live_export", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=os.sep,
                env={**environment("duckdb", "fsspec"), **_credentials()},
            )
        except (OSError, Unusable) as error:
            raise UnsupportedError(f"export_dir: no process can be started for it ({error}).") from error
        self._ending = False
        self._over = threading.Event()  # the process has ended, or has reported why it cannot write the last files
        threading.Thread(target=self._listen, name="tftracer-export", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                is_last = self._ending
                self._report(line.decode("utf-8", "replace").strip())
                if is_last:
                    self._over.set()
        if self._process.wait() and not self._ending:
            self._report("The process that exports the session has ended. Save the session, and export the file.")
        self._over.set()

    def stop(self) -> None:
        """Export the last rows, after the session's end. Does nothing in a forked child."""
        if os.getpid() != self._owner or self._ending:
            return
        self._ending = True
        with contextlib.suppress(OSError), self._process.stdin or contextlib.nullcontext() as line:
            if line is not None:
                line.write(b"\n")  # closing the pipe is not enough: a forked child of the training may have it open
        self._over.wait(END_S)


def partition_rank(place: LauncherInfo) -> int:
    """Return the process's rank. Without a rank, parameter servers get numbers above the workers', evaluators above both."""
    if place["rank"] is not None:
        return place["rank"]
    offset = 5000 if place["role"] == "evaluator" else 0
    return (place["size"] or 0) + offset + (place["task"] or 0)


def _credentials() -> dict[str, str]:
    """Return the environment variables that remote storage may need."""
    return {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "AZURE_", "FSSPEC_", "GOOGLE_"))}
