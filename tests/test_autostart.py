"""What ``tftracer run`` puts in the way of the script's children: nothing that they print, whichever Python they run on."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tftracer.commands.run import AUTOSTART, environment_of, parser

SOURCE = AUTOSTART / "sitecustomize.py"
CHILD = "import sys; sys.stdout.write('output')"


def pythons() -> Iterator[str]:
    """Of other versions, where this machine has some."""
    for folder in (Path("~/.pyenv/versions").expanduser(), Path("/usr/bin"), Path("/usr/local/bin")):
        yield from map(str, folder.glob("*/bin/python"))
        yield from (str(folder / name) for name in ("python2", "python3") if (folder / name).exists())


def output_of(python: str, folder: str = "") -> tuple[str, str]:
    """What a child of a traced script prints: to stdout, to stderr."""
    environment = environment_of(parser().parse_args([]), folder)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run([python, "-c", CHILD], env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.parametrize("python", sorted(set(pythons())))
def test_a_child_on_another_python_prints_what_it_does_untraced(python: str) -> None:
    assert output_of(python) == ("output", "")


def test_a_child_in_an_environment_without_tftracer_prints_what_it_does_untraced(tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True, with_pip=False)
    assert output_of(str(tmp_path / "bin/python")) == ("output", "")


def test_a_sitecustomize_of_the_scripts_own_runs_as_well(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.stdout.write('its own, ')")
    assert output_of(sys.executable, os.pathsep.join([str(tmp_path)])) == ("its own, output", "")


def test_it_is_written_in_what_all_pythons_read() -> None:
    """For machines without an old one: no annotations, no f-strings, no print with arguments by name."""
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        assert not isinstance(node, (ast.AnnAssign, ast.JoinedStr, ast.AsyncFunctionDef, ast.NamedExpr, ast.Nonlocal))
        assert not isinstance(node, ast.FunctionDef) or node.returns is None
        assert not isinstance(node, ast.arg) or node.annotation is None
        assert not (isinstance(node, ast.Name) and node.id == "print")
        assert not (isinstance(node, ast.Raise) and node.cause)
