"""CONTRIBUTING.rst is short. With the pages that it leads to it names files that are there, every folder and a test to run."""

from __future__ import annotations

import re
from pathlib import Path

from test_architecture import HEIGHT

ROOT = Path(__file__).parents[1]
ROOT_MODULES = {path.stem for path in (ROOT / "tftracer").glob("*.py")}
CONTRIBUTING = (ROOT / "CONTRIBUTING.rst").read_text(encoding="utf-8")
CODE_MAP = (ROOT / "docs/code-map.rst").read_text(encoding="utf-8")
#: With the pages that it leads to.
PAGES = re.findall(r"``(docs/[\w-]+\.rst)``", CONTRIBUTING)
TEXT = "\n".join([CONTRIBUTING, *((ROOT / page).read_text(encoding="utf-8") for page in dict.fromkeys(PAGES))])


def test_it_has_two_screens_and_leads_to_the_rest() -> None:
    assert len(CONTRIBUTING.splitlines()) <= 100
    assert {f"docs/{page}.rst" for page in ("code-map", "threads", "glossary", "releasing")} <= set(PAGES)


def test_every_path_that_it_names_exists() -> None:
    named = re.findall(r"``((?:tftracer|tests|frontend|docs|benchmarks)/[\w./-]+)``", TEXT)
    assert len(named) > 40
    made = ("frontend/node_modules", "docs/_build")  # not in a fresh clone
    assert [path for path in named if not ((ROOT / path).exists() or "NAME" in path or path.startswith(made))] == []


def test_it_tells_of_every_folder() -> None:
    folders = {path.name for path in (ROOT / "tftracer").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(re.findall(r"^``tftracer/(\w+)/``", CODE_MAP, re.MULTILINE))


def test_the_modules_that_it_names_within_a_folder_exist() -> None:
    table = CODE_MAP[: CODE_MAP.index("Where do I look for")]
    rows = re.findall(r"^``(tftracer/\w+)/`` (.*(?:\n +.*)*)", table, re.MULTILINE)
    named = [(folder, name) for folder, text in rows for name in re.findall(r"``([a-z_]+)(?:\.py)?``", text)]
    assert len(named) > 20
    there = {(folder, path.stem) for folder, _ in rows for path in (ROOT / folder).iterdir()}
    assert [each for each in named if each not in there and each[1] not in ROOT_MODULES] == []


def test_the_folders_stand_in_the_order_of_imports() -> None:
    parts = [part for part in re.findall(r"^``tftracer/(\w+)(?:/|\.py)``", CODE_MAP, re.MULTILINE) if part in HEIGHT]
    heights = [HEIGHT[part] for part in parts]
    assert len(heights) > 15 and heights == sorted(heights, reverse=True), parts


def test_the_one_test_to_run_is_there() -> None:
    commands = re.findall(r"-m pytest (\S+) -k (\w+)", TEXT)
    assert commands
    for path, name in commands:
        assert re.search(rf"^def test_\w*{name}", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)


def test_a_newcomer_is_led_to_twenty_behaviours() -> None:
    table = CODE_MAP[CODE_MAP.index("Where do I look for") :]
    assert len(re.findall(r"``$", table, re.MULTILINE)) >= 20
