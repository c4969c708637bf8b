"""The process that exports a session while it is recorded (live_export.py), as the training's process sees it."""

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

#: Between two looks at the session.
ROUND_S = 20.0
#: How long the script's end waits for the last files. After that, or when they cannot be written, the process goes on by itself:
#: it tries again.
END_S = 20.0


class ExportProcess:
    """``report`` is told what goes wrong while it exports, on a thread of its own; "" when all is well again."""

    def __init__(self, session: Session, job: str, place: str, report: Callable[[str], None], round_s: float = ROUND_S) -> None:
        """``UnsupportedError``: it cannot run here; the message says why, and the remedy."""
        if importlib.util.find_spec("duckdb") is None:
            raise UnsupportedError("export_dir needs DuckDB, which is not installed here: pip install tftracer[tables].")
        if not session["file"]:
            raise UnsupportedError("export_dir needs the session's file, and none can be written. Set spool_dir.")
        target = place if "://" in place else str(Path(place).absolute())
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
        self._over = threading.Event()  # the process has ended, or says what keeps it from writing the last files
        threading.Thread(target=self._listen, name="tftracer-export", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            is_last = self._ending
            self._report(line.decode("utf-8", "replace").strip())
            if is_last:
                self._over.set()
        if self._process.wait() and not self._ending:
            self._report("The process that exports the session has ended. Save the session, and export the file.")
        self._over.set()

    def stop(self) -> None:
        """After the session's end: its last rows are written. Does nothing in a forked child."""
        if os.getpid() != self._owner or self._ending:
            return
        self._ending = True
        with contextlib.suppress(OSError), self._process.stdin or contextlib.nullcontext() as line:
            if line is not None:
                line.write(b"\n")  # said, for a forked child of the training may hold the pipe open
        self._over.wait(END_S)


def partition_rank(place: LauncherInfo) -> int:
    """The process's own rank; parameter servers follow the workers, evaluators them."""
    if place["rank"] is not None:
        return place["rank"]
    behind = 5000 if place["role"] == "evaluator" else 0
    return (place["size"] or 0) + behind + (place["task"] or 0)


def _credentials() -> dict[str, str]:
    """What storage elsewhere may ask for."""
    return {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "AZURE_", "FSSPEC_", "GOOGLE_"))}
