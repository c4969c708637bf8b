"""The benchmarks run by hand alone: what they import of the package is there, and ``make bench`` runs each of them."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.glob("*.py"))


def imported(script: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of what is imported from the package."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tftracer":
            yield from ((node.module or "", alias.name) for alias in node.names)


def names_in(module: str) -> set[str]:
    """What a module defines or imports, and the modules within it. The module is not run: some need TensorFlow."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    source = Path(spec.origin)
    names = {path.stem for path in source.parent.iterdir()} if spec.submodule_search_locations else set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and module == "tftracer":
            names.add(node.value)  # its public names are loaded when they are asked for
    return names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(script: Path) -> None:
    missing = [f"{module}.{name}" for module, name in imported(script) if name not in names_in(module)]
    assert not missing


def test_make_bench_runs_each() -> None:
    run = (BENCHMARKS / "run.sh").read_text(encoding="utf-8")
    scripts = [path.name for path in SCRIPTS if path.name.startswith(("bench_", "kill_"))]
    assert len(scripts) > 15 and all(f" {name}" in run for name in scripts)
