"""What installing and importing the package does, and does not do."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def in_a_new_interpreter(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_asks_for_no_tensorflow_and_nothing_heavy() -> None:
    """Everywhere these five, and on Linux, where stacks can be read from outside, py-spy."""
    requirements = [line for line in metadata.requires("tftracer") or [] if "extra ==" not in line]
    conditions = {re.match(r"[\w-]+", line)[0].lower(): line.partition(";")[2].strip() for line in requirements}
    everywhere = dict.fromkeys(("tornado", "msgpack", "protobuf", "numpy", "zstandard"), "")
    assert conditions in ({**everywhere, "py-spy": f"sys_platform == {quote}linux{quote}"} for quote in "'\"")


def test_the_extra_for_tables_is_duckdb_alone() -> None:
    of_the_extra = [line for line in metadata.requires("tftracer") or [] if re.search("extra == .tables.", line)]
    extras = [re.match(r"[\w-]+", line)[0] for line in of_the_extra]
    assert extras == ["duckdb"]


def test_the_extra_for_fleets_is_duckdb_and_dask_without_its_dataframes() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^fleet = \[(.*?)\]", project, re.MULTILINE) == ['"duckdb>=1.2", "distributed>=2023.5"']


def test_the_metadata_are_those_of_a_package_index() -> None:
    about = metadata.metadata("tftracer")
    assert (about["Author"], about["License-Expression"]) == ("The tftracer developers", "Apache-2.0")
    assert set(about.get_all("Provides-Extra")) == {"dev", "fleet", "tables", "test"}
    versions = {f"3.{minor}" for minor in range(9, 14)}
    classified = {
        line.rpartition(" ")[2] for line in about.get_all("Classifier") if line.startswith("Programming Language :: Python :: 3.")
    }
    assert about["Requires-Python"] == ">=3.9" and classified == versions


def test_importing_it_imports_neither_tensorflow_nor_tornado() -> None:
    loaded = in_a_new_interpreter(
        "import sys, tftracer; print([m for m in ('tensorflow', 'tornado', 'numpy', 'google.protobuf') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_the_engine_needs_neither_tensorflow_nor_tornado() -> None:
    engine = ROOT / "tftracer/trace"
    paths = [path.relative_to(ROOT).with_suffix("") for path in engine.rglob("*.py") if path.stem != "__init__"]
    modules = [".".join(path.parts) for path in paths]
    loaded = in_a_new_interpreter(
        f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\n"
        "print([m for m in ('tensorflow', 'tornado') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_the_public_names_are_there_without_tensorflow() -> None:
    assert in_a_new_interpreter("import tftracer; print(tftracer.TracingServer.__name__, tftracer.Timeline.__name__)") == (
        "TracingServer Timeline"
    )


@pytest.mark.parametrize("name", ["index.html", "standalone.script", "standalone.css"])
def test_the_page_is_committed_so_that_pip_needs_no_node(name: str) -> None:
    assert (ROOT / "tftracer/static" / name).stat().st_size > 0


def test_the_licences_of_the_page_s_packages_are_shipped() -> None:
    """Of all that the page is built with, in the versions of the lock file, each with its text."""
    notices = (ROOT / "tftracer/static/THIRD_PARTY_NOTICES.txt").read_text(encoding="utf-8")
    shipped = re.findall(r"^(\S+) (\S+) \(([\w.-]+)\)\n\n(?:.*\n){0,9}.*Copyright", notices, re.MULTILINE)
    locked = json.loads((ROOT / "frontend/package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {name: version for name, version, _ in shipped} == {
        name: locked[f"node_modules/{name}"]["version"] for name, *_ in shipped
    }
    assert len(shipped) == notices.count("-" * 80)
    assert set(locked[""]["dependencies"]) <= {name for name, *_ in shipped} | {"vue"}
    assert {"@vue/runtime-dom", "@vue/reactivity", "@vue/runtime-core"} <= {name for name, *_ in shipped}, "vue is these"
    assert notices.count("Permission is hereby granted") + notices.count("Permission to use, copy, modify") == len(shipped)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'license-files = ["LICENSE", "tftracer/static/THIRD_PARTY_NOTICES.txt"]' in project


#: What is made, not written: in .gitignore, and in no source distribution.
MADE = (
    "node_modules",
    "out",
    "_build",
    "dist",
    "build",
    "__pycache__",
    "*.pyc",
    "*.egg-info",
    ".*_cache",
    ".hypothesis",
    "demo-*",
)


def test_the_source_distribution_has_all_that_the_repository_has(tmp_path: Path) -> None:
    """Docs, changelog, tests, and the source of the page, from which it can be built again."""
    tree, target = tmp_path / "tree", tmp_path / "sdist"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".envs", ".venv", *MADE))
    expected = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()} - {".gitignore", ".coverage"}
    build = f"import setuptools.build_meta as backend; print(backend.build_sdist({str(target)!r}))"
    target.mkdir()
    done = subprocess.run([sys.executable, "-c", build], cwd=tree, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (archive,) = target.iterdir()
    with tarfile.open(archive) as packed:
        members = {member.name.partition("/")[2] for member in packed if member.isfile()}
    assert expected - members == set()
    assert {
        "docs/index.rst",
        "CHANGELOG.rst",
        "frontend/package.json",
        "frontend/src/main.ts",
        "frontend/vite.config.ts",
    } <= members
    assert {name.partition("/")[0] for name in members - expected} <= {"PKG-INFO", "setup.cfg", "tftracer.egg-info"}


def test_the_page_is_small() -> None:
    """All of it, scripts and styles, as a server that compresses sends it."""
    parts = [path for path in (ROOT / "tftracer/static").rglob("*") if path.is_file() and "standalone" not in path.name]
    assert len(parts) > 10
    assert sum(len(gzip.compress(path.read_bytes())) for path in parts) < 300_000


def test_the_page_asks_nothing_of_the_internet() -> None:
    html = (ROOT / "tftracer/static/index.html").read_text(encoding="utf-8")
    assert "http://" not in html
    assert "https://" not in html
