"""The documentation: a page for each way in, pictures that are there, and what the theme refuses."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from docutils.core import publish_doctree

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS.parent / "frontend/src"
#: How a script, or a file, comes to be looked at: the page that tells it, and what a reader would look for.
WAYS_IN = {
    "run": "tftracer run",
    "keras": "server.callback",
    "functions": "tf.function",
    "custom-loops": "server.step",
    "sessions": "hook_inject()",
    "estimator": "Estimator",
    "launching": "Horovod",
    "opening-files": "tftracer LOGDIR",
    "timeline": "tftracer.Timeline",
    "notebooks": "%%trace",
    "scripts": "tftracer.open",
}
INCLUDE = re.compile(r"^\.\. literalinclude:: (\S+)\n((?:   :.*\n)*)", re.MULTILINE)
FIGURE = re.compile(r"^\.\. (?:image|figure):: (\S+)", re.MULTILINE)
PAGES = sorted(path for path in DOCS.rglob("*.rst") if "_build" not in path.parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_no_page_carries_an_error_box(page: Path) -> None:
    """Furo shows a page's contents at its side, and an error in the place of the directive."""
    assert ".. contents::" not in page.read_text(encoding="utf-8")


def test_pages_show_pictures_and_all_of_them_are_there() -> None:
    names = [(page, name) for page in PAGES for name in FIGURE.findall(page.read_text(encoding="utf-8"))]
    shown = [(page.parent / name).resolve() for page, name in names]
    assert len(shown) >= 5
    assert [path for path in shown if not path.is_file()] == []


@pytest.mark.parametrize("page", WAYS_IN)
def test_each_way_in_has_a_page_that_is_found(page: str) -> None:
    assert WAYS_IN[page] in (DOCS / f"{page}.rst").read_text(encoding="utf-8")
    assert f"   {page}\n" in (DOCS / "index.rst").read_text(encoding="utf-8")
    assert f"``docs/{page}.rst``" in (DOCS.parent / "README.rst").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.rst", "CHANGELOG.rst", "CONTRIBUTING.rst"])
def test_the_texts_beside_the_docs_are_sound_restructuredtext(name: str) -> None:
    """A package index refuses a README with one error in it. It shows no file and no HTML that a page includes."""
    warnings = io.StringIO()
    strict = {
        "report_level": 1,
        "halt_level": 5,
        "warning_stream": warnings,
        "file_insertion_enabled": False,
        "raw_enabled": False,
    }
    publish_doctree((DOCS.parent / name).read_text(encoding="utf-8"), name, settings_overrides=strict)
    assert warnings.getvalue() == ""


def test_the_first_example_of_the_readme_installs_and_needs_no_change_of_the_script() -> None:
    readme = (DOCS.parent / "README.rst").read_text(encoding="utf-8")
    first, second = readme.split("::\n\n", 1)[1].splitlines()[:2]
    assert first.startswith("    pip install tftracer ") and second == "    tftracer run train.py"


def test_code_that_pages_show_is_in_the_examples_that_tests_run() -> None:
    ran = "".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "tests/tf").glob("test_*.py"))
    shown = [(page, name, options) for page in PAGES for name, options in INCLUDE.findall(page.read_text(encoding="utf-8"))]
    assert len(shown) >= 7
    for page, name, options in shown:
        path = (page.parent / name).resolve()
        assert path.name in ran or path.parent.name == "schemas", name  # tests/test_json_schemas.py holds those
        for marker in re.findall(r":(?:start-at|end-at): (.*)", options):
            assert marker in path.read_text(encoding="utf-8"), (page.name, marker)


def test_the_page_of_links_lists_all_that_the_page_reads() -> None:
    sources = [
        path.read_text(encoding="utf-8")
        for suffix in ("ts", "vue")
        for path in PAGE.rglob(f"*.{suffix}")
        if ".test." not in path.name
    ]
    read = {name for source in sources for name in re.findall(r'\buseParameter\("([\w-]+)"', source)}
    viewer = (DOCS / "viewer.rst").read_text(encoding="utf-8")
    links = viewer[viewer.index("Links\n-----") : viewer.index("A note on a trace is kept")]
    assert len(read) > 30
    assert read == set(re.findall(r"``([\w-]+)=", links))
