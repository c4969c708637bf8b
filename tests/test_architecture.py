"""The arrows between the package's parts run one way, no file stands in a circle, and each module can be imported alone."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tftracer"

#: From the ground up: a part may import what stands before it, and never what comes after.
LAYERS = [
    ["errors", "version"],
    ["call_in_child", "memory_limit", "run_handle"],
    ["contract"],
    ["trace"],
    ["storage"],
    ["display"],
    ["importers", "export", "comparison"],
    ["slow"],
    ["ledger", "input_pipelines", "memory_growth"],
    ["capture", "engine"],
    ["session"],
    ["web"],
    ["job"],
    ["scripting"],
    ["fleet", "roof"],
    [
        "server",
        "timeline",
        "cli",
        "record_all_sessions",
        "commands",
        "subcommand_parser",
        "terminal",
        "run_in_script",
        "sessions_of_one_command",
        "unattended_traces",
        "viewer",
        "arguments",
        "notebook",
        "__init__",
        "__main__",
    ],
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}

ALONE = """
import importlib, os, sys
import google.protobuf.message, msgpack, numpy, tornado.web, tornado.websocket, zstandard  # once, for all children
for module in sys.argv[1:]:
    child = os.fork()
    if not child:
        importlib.import_module(module)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(module)
"""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


#: autostart/ holds no module of the package but a file that Python looks for.
MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "autostart"}


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module of ours that a file imports, for annotations and inside functions too, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tftracer":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in MODULES else str(node.module)), node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in MODULES)


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def allowed(module: str, target: str) -> bool:
    """Inside a part files may import each other; so may the files at the top (no circles: the next test but one)."""
    one, other = part_of(module), part_of(target)
    return one == other or HEIGHT[other] < HEIGHT[one] or HEIGHT[one] == HEIGHT["server"] == HEIGHT[other]


def test_every_part_has_a_layer() -> None:
    assert {part_of(module) for module in MODULES} == set(HEIGHT)


def test_imports_run_one_way() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {target}"
        for module, path in MODULES.items()
        for target, line in imports_of(path)
        if not allowed(module, target)
    ]
    assert not wrong, "\n".join(["against the arrows:", *wrong])


def test_no_file_stands_in_a_circle() -> None:
    arrows = {module: {target for target, _ in imports_of(path)} - {module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        raise AssertionError("a circle: " + " <- ".join(error.args[1])) from None


def test_each_module_can_be_imported_alone() -> None:
    modules = [module for module in MODULES if not module.endswith("__main__")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", ALONE, *modules], capture_output=True, text=True, env=environment, check=True)
    assert not done.stdout, f"cannot be imported alone: {done.stdout}\n{done.stderr}"


def test_no_thread_of_ours_hashes_in_numpy() -> None:
    """A process that exits while a daemon thread is in NumPy's hash tables (2.3 and later) is aborted: see ``distinct``."""
    hashing = re.compile(r"\bnp\.(?:isin|in1d|intersect1d|union1d|setdiff1d|setxor1d)\(|\bnp\.unique\((?!.*return_)")
    wrong = [
        f"{module}:{number}"
        for module, path in MODULES.items()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if hashing.search(line)
    ]
    assert not wrong, f"use distinct() and is_in() of trace/arrays/intervals.py: {wrong}"


def test_no_file_and_no_function_is_too_long() -> None:
    """400 lines a file, 60 a function: what is longer holds more than one idea."""
    long = [f"{module}: {lines} lines" for module, path in MODULES.items() if (lines := len(path.read_text().splitlines())) > 400]
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 60:
                long.append(f"{module}.{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines")
    assert not long, "\n".join(["too long: move a part that can be named into a file or function of its own", *long])


def test_no_thread_lists_all_python_objects() -> None:
    """CPython fails to build a tuple that another thread holds unfinished, as a list of all objects does: a training crashed.

    object_counts.py lets the list live within one call of C code, during which no other thread runs Python
    (memory_growth/test_object_counts.py).
    """
    lists = re.compile(r"\bget_(objects|referrers)\b")
    assert [path.name for path in PACKAGE.rglob("*.py") if lists.search(path.read_text())] == ["object_counts.py"]
    within_one_call = re.compile(r"\bmap\(gc\.get_objects, ")  # lazily
    counts = (PACKAGE / "memory_growth" / "object_counts.py").read_text()
    assert len(lists.findall(counts)) == len(within_one_call.findall(counts))


#: Names of others that a test cannot avoid: of named tuples, of os, a method of TensorFlow that is recorded, what Jupyter calls.
OTHERS_PRIVATES = {"_replace", "_exit", "_make_callable_from_options", "_repr_html_"}
#: Runs with the original tensorflow-tracer, which has no public way to its traces.
RUNS_THE_ORIGINAL = ROOT / "tests" / "data" / "legacy" / "record.py"
PRIVATE_IN_TEXT = re.compile(r"(?<!\bself)(?<!\bcls)\._(?!_)\w+")


def private_accesses(path: Path) -> Iterator[tuple[str, int]]:
    """Names with a leading underscore that a test takes from somebody else: as an attribute, imported, patched, in a script."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tftracer"):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("setattr", "getattr", "hasattr", "patch")):
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            yield from ((name.rpartition(".")[2], node.lineno) for name in names[:1] if isinstance(name, str))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from ((match[0][1:], node.lineno) for match in PRIVATE_IN_TEXT.finditer(node.value))


def test_tests_use_what_is_public() -> None:
    """A test that must reach into a private name shows that a module lacks a parameter, a result or a public attribute."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} uses {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path not in (RUNS_THE_ORIGINAL, Path(__file__))
        for name, line in private_accesses(path)
        if name.startswith("_") and not name.startswith("__") and name not in OTHERS_PRIVATES
    ]
    assert not wrong, "\n".join(["private names in tests:", *wrong])


def test_scripts_within_tests_import_what_exists() -> None:
    """A script in a string is no code for the type checker: a name that moved would show only where TensorFlow runs it."""
    imports = [(path, *found) for path in sorted((ROOT / "tests").rglob("*.py")) for found in imports_in_strings(path)]
    assert len({(module, name) for _, module, name in imports}) > 40
    wrong = [
        f"{path.relative_to(ROOT)}: from {module} import {name}"
        for path, module, name in imports
        if not hasattr(importlib.import_module(module), name) and importlib.util.find_spec(f"{module}.{name}") is None
    ]
    assert not wrong, "\n".join(["imports of what does not exist:", *wrong])


def imports_in_strings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import from this package in a string of the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in re.findall(r"^ *from (tftracer[\w.]*) import ([\w, ]+)$", node.value, re.MULTILINE):
                yield from ((module, name.split()[0]) for name in names.split(","))
