"""Scripts run with ``tftracer run`` and without, at the same time, and what they leave."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from tftracer.session.files.saved import open_session

SCRIPTS = Path(__file__).with_name("user_scripts")
RUN = [sys.executable, "-m", "tftracer", "run", "--port", "0"]


class Outcome(NamedTuple):
    code: int
    output: str
    errors: str

    @property
    def url(self) -> str:
        return re.findall(r"watch and trace this training at (http://127\.0\.0\.1:\d+/\?token=\S+)", self.errors)[0]

    @property
    def traceback(self) -> str:
        """From its first line to the error's."""
        lines = self.errors.splitlines()
        first = lines.index("Traceback (most recent call last):")
        # An interrupt at a function's first line has an empty line under it.
        last = next(number for number, line in enumerate(lines) if number > first and line and not line.startswith(" "))
        return "\n".join(lines[first : last + 1])


class Page:
    """What a page does with the server: its URL logs in."""

    def __init__(self, url: str) -> None:
        self._address, _, token = url.strip().partition("?token=")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    @classmethod
    def of(cls, script: subprocess.Popen[str], url: str = "") -> Page:
        """``url``: "" reads it from what ``tftracer run`` says."""
        assert script.stderr is not None
        while not url:
            line = script.stderr.readline()
            assert line, "the script ended"
            url = line.split()[-1] if "tftracer: watch and trace" in line else ""
        return cls(url)

    def __call__(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self._address + path, data, self._headers)) as answer:
            return json.loads(answer.read() or b"null")

    def runs(self) -> dict[str, Any]:
        return {run["title"]: run for run in self("api/session")["runs"]}


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """With folders of the test's own for sessions and temporary files."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    own = {"TFTRACER_SPOOL_DIR": str(folder / "spool"), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **own, **variables}


def start(folder: Path, command: list[str], cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    environ = environment(folder, **variables)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd or folder, env=environ, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def outcome(process: subprocess.Popen[str], typed: str = "") -> Outcome:
    """What became of it when it has ended."""
    output, errors = process.communicate(typed)
    return Outcome(process.returncode, output, errors)


def run(folder: Path, *arguments: str, cwd: Path | None = None, typed: str = "", **variables: str) -> Outcome:
    return outcome(start(folder, [*RUN, *arguments], cwd, **variables), typed)


def run_both(folder: Path, *arguments: str, cwd: Path | None = SCRIPTS, typed: str = "") -> Outcome:
    """The traced one, after a look whether it did as the plain one; ``typed`` is its input."""
    plain = start(folder, [sys.executable, *arguments], cwd)
    traced = run(folder, *arguments, cwd=cwd, typed=typed)
    code, output, errors = outcome(plain, typed)
    assert (traced.code, traced.output) == (code, output), errors + traced.errors
    return traced


def sessions(folder: Path) -> list[dict[str, int]]:
    """What each process recorded, as run title -> steps."""
    recorded = [runs_of(path) for path in (folder / "spool").glob("*.tftrace")]
    return sorted((runs for runs in recorded if runs), key=str)


def runs_of(path: Path) -> dict[str, int]:
    return {run["title"]: run["steps"] for run in open_session(str(path)).runs()}
