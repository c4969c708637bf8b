"""Every 97th step of a real training is slow: found, explained, traced and shown, with nobody asking for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.rig import ROOT, TENSORFLOW, Process, picture, sign_in, start_viewer
from e2e.test_accessibility import serious
from e2e.tracepage import LONG
from job_page import JobPage, wait_for
from playwright.sync_api import Browser, BrowserContext, Page, expect

EVERY = re.compile(r"Every 97th step: a Python function that TensorFlow calls: read_batch\(\) \(train.py:[\d, ]+\)")


class Training(JobPage):
    """Of stalling.py, until it is ended; its server's answers."""

    def __init__(self, folder: Path) -> None:
        shutil.copy(ROOT / "tests/e2e/stalling.py", folder / "train.py")
        self.process = Process([str(TENSORFLOW), "train.py"], folder, TFTRACER_SPOOL_DIR="spool")
        self.url = self.process.word("URL")
        self.base = self.url.partition("/?")[0]
        super().__init__(self.url)

    def regular_stalls(self) -> list[Any]:
        """Slow reads that came regularly and were traced ahead."""
        return regular(self.get("api/runs/1/stalls")) if self.get("api/session")["runs"] else []

    def says_what_is_regular(self) -> bool:
        return "Every 97th step" in self.get("api/session")["runs"][0]["slow_steps"]["text"]


def regular(answer: Any) -> list[Any]:
    return [stall for stall in answer["stalls"] if stall["every"] == 97 and stall["trace_id"] and "read_batch" in stall["place"]]


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """Once a slow step was expected and traced."""
    training = Training(tmp_path_factory.mktemp("stalling"))
    try:
        wait_for(training.regular_stalls, "a slow step that was traced ahead")
        yield training
    finally:
        training.process.kill()


@pytest.fixture(scope="module")
def file(training: Training, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The session as it was then: while it goes on, newer slow steps take the place of older ones, and on a busy machine others
    than the regular ones may be the longest."""
    wait_for(training.says_what_is_regular, "the regular slow steps in the overview")
    path = tmp_path_factory.mktemp("file") / "session.tftrace"
    path.write_bytes(training.ask("api/session/file"))
    return path


@pytest.fixture(scope="module")
def viewer(file: Path) -> Iterator[str]:
    viewer, url = start_viewer(file.parent, file)
    yield url
    viewer.kill()


@pytest.fixture
def run_page(context: BrowserContext, page: Page, training: Training) -> Page:
    sign_in(context, training.url)
    page.goto(f"{training.base}/runs/1")
    return page


def test_the_overview_says_so(context: BrowserContext, page: Page, training: Training) -> None:
    sign_in(context, training.url)
    page.goto(training.base)
    expect(page.get_by_text(re.compile("Every 97th step"))).to_be_visible()
    page.get_by_role("link", name=re.compile(r"^[\d,]+ slow steps?$")).click()
    expect(page.get_by_role("heading", name="Slow steps", exact=True)).to_be_visible()


def test_a_slow_step_is_listed_with_its_cause_its_line_its_trace_and_its_stacks(run_page: Page, training: Training) -> None:
    page = run_page
    section = page.locator("#slow-steps")
    expect(section.get_by_text(EVERY)).to_be_visible()
    table = section.get_by_role("grid", name="Slow steps")
    section.get_by_role("searchbox").fill("read_batch graph")
    row = table.get_by_role("row").filter(has=page.get_by_role("link", name=re.compile("Open the trace"))).first
    expect(row).to_contain_text("Python function in the graph")
    row.get_by_text("read_batch").click()
    tree = page.get_by_role("tree", name=re.compile("Stacks of Step"))
    named = tree.get_by_role("treeitem", name=re.compile(r"^read_batch \(train.py:\d+\)"))
    expect(named.first).to_be_visible()
    named.first.hover()
    expect(section.get_by_text("time.sleep(STALL_S)")).to_be_visible()
    tree.get_by_role("treeitem").first.focus()
    page.keyboard.press("ArrowDown")
    expect(tree.get_by_role("treeitem").nth(1)).to_be_focused()
    page.set_viewport_size({"width": 1440, "height": 1330})
    page.evaluate("scrollTo(0, 0)")  # the focus has scrolled to the stacks
    picture(page, "slow-steps")  # without the table of lines, which has the paths of a machine
    section.get_by_role("button", name="Show as table").click()
    expect(section.get_by_role("grid", name="Lines of the stacks")).to_contain_text("read_batch")
    expect(section.get_by_role("link", name="Open its trace")).to_have_attribute("href", re.compile(r"/traces/\d+"))
    # Slower steps that were traced meanwhile may have taken its place: then another one's.
    page.goto(f"{training.base}/traces/{training.regular_stalls()[-1]['trace_id']}")
    expect(page.get_by_text(re.compile("A Python function runs in the graph")).first).to_be_visible()


def test_the_time_between_steps_is_sampled_again(run_page: Page) -> None:
    section = run_page.locator("section", has=run_page.get_by_role("heading", name="Between steps"))
    expect(section.get_by_role("grid", name="Lines between steps")).to_contain_text("train.py")
    before = section.get_by_text(re.compile("sampled at")).inner_text()
    section.get_by_role("button", name=re.compile("^Sample again")).click()
    expect(section.get_by_role("button", name=re.compile("Sampling for 20 s"))).to_be_disabled()
    expect(section.get_by_text(before, exact=True)).to_have_count(0)
    expect(section.get_by_role("button", name=re.compile("^Sample again"))).to_be_enabled()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 420)])
def test_axe_finds_nothing_serious(browser: Browser, viewer: str, scheme: Any, width: int) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, bypass_csp=True, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(LONG)
    sign_in(context, viewer)
    page, base = context.new_page(), viewer.partition("/?")[0]
    page.goto(f"{base}/runs/1?stall={regular(JobPage(viewer).get('api/runs/1/stalls'))[0]['id']}&stacks=1&marks=1")
    expect(page.get_by_role("grid", name="Lines of the stacks")).to_be_visible()
    expect(page.locator(".uplot canvas").first).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture(page, f"slow-steps-{scheme}-{width}", full=True)
    page.goto(base)
    expect(page.get_by_text(re.compile("Every 97th step"))).to_be_visible()
    assert serious(page) == []
    context.close()


def test_the_file_shows_the_same_without_source_lines(context: BrowserContext, page: Page, viewer: str) -> None:
    (first, *_) = regular(JobPage(viewer).get("api/runs/1/stalls"))
    sign_in(context, viewer)
    page.goto(f"{viewer.partition('/?')[0]}/runs/1?stall={first['id']}")
    expect(page.get_by_role("treeitem", name=re.compile("^read_batch")).first).to_be_visible()
    expect(page.get_by_text("time.sleep(STALL_S)")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("Sample"))).to_have_count(0)


def test_the_summary_says_it(file: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "tftracer", file, "--summary"], capture_output=True, text=True, check=True)
    assert EVERY.search(" ".join(done.stdout.split()))
