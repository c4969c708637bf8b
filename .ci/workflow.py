"""Runs the steps of .github/workflows/ci.yml on this machine: ``python .ci/workflow.py [JOB...]``, all jobs by default.

Each job of a matrix runs in a copy of the committed files, with the Python that the job names (``python3.9``
on PATH, or of pyenv). What an action would install must be there; a job whose Python is missing fails.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github/workflows/ci.yml"


def workflow() -> dict[str, Any]:
    import yaml

    return dict(yaml.safe_load(WORKFLOW.read_text(encoding="utf-8")))


def variants(job: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The values of the matrix, one dict for each machine that the job would take."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = matrix.pop("include", None)
    if included is not None:
        yield from included
    else:
        yield from (dict(zip(matrix, values)) for values in itertools.product(*matrix.values()))


def filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ *matrix\.(\w+) *\}\}", lambda name: values[name[1]], text)


def python(version: str) -> str:
    found = shutil.which(f"python{version}") or next(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")), None)
    return found or sys.exit(f"Python {version} is not installed here")


def run(name: str, job: dict[str, Any], values: dict[str, str], out: Path) -> bool:
    """Whether every command of the job passes."""
    subprocess.run(f"git -C '{ROOT}' archive HEAD | tar -x -C '{out}'", shell=True, check=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "PYTHONPATH"))}
    for step in job["steps"]:
        version = filled(step.get("with", {}).get("python-version", ""), values)
        if version:
            environment["PYTHON"] = environment["PYTHONS"] = python(version)
        command = filled(step.get("run", ""), values)
        if command and subprocess.run(["bash", "-ec", command], cwd=out, env=environment, check=False).returncode:
            print(f"FAILED: {name} {' '.join(values.values())}: {command}", flush=True)
            return False
    print(f"passed: {name} {' '.join(values.values())}", flush=True)
    return True


def main(wanted: list[str]) -> int:
    jobs = workflow()["jobs"]
    needed = jobs["gate"]["needs"]
    passed = []
    for name in wanted or needed:
        for values in variants(jobs[name]):
            with tempfile.TemporaryDirectory(prefix="ci-") as folder:
                passed.append(run(name, jobs[name], values, Path(folder)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
