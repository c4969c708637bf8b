"""The job's page and its traces: narrow, huge, dark, and in the eyes of axe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e.jobs import LONG, SIZE, Job, painted, trace_on_all
from e2e.rig import picture, sign_in
from e2e.test_accessibility import serious
from playwright.sync_api import Browser, BrowserContext, Page, expect

VIEWS = {"job": "job", "job-trace": "job/traces/{}", "job-ranks": "job/traces/{}?tab=ranks"}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Job]:
    """A job with one step that was traced on all; the tests change nothing in it."""
    started = Job(tmp_path_factory.mktemp("job"))
    page = browser.new_page()
    started.open(page)
    started.traced = (trace_on_all(page).get_attribute("href") or "").rpartition("/")[2]
    page.close()
    yield started
    started.kill()


def show(page: Page, job: Job, view: str) -> None:
    """Opens a view and waits until it shows its data."""
    base = job.urls[0].partition("?")[0]
    sign_in(page.context, job.urls[0])
    page.goto(base + VIEWS[view].format(job.traced))
    if view == "job":
        expect(page.get_by_text(f"{SIZE} of {SIZE} ranks").first).to_be_visible(timeout=LONG)
        return
    painted(page)
    if view == "job-ranks":
        expect(page.get_by_role("grid", name="Clocks").get_by_role("row")).to_have_count(1 + SIZE, timeout=LONG)
    else:
        expect(page.locator(".sentence").first).to_be_visible(timeout=LONG)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [400, 3840])
def test_narrow_and_huge(job: Job, page: Page, view: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800 if width == 400 else 2160})
    show(page, job, view)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    picture(page, f"{view}-{width}")


@pytest.mark.parametrize("view", VIEWS)
def test_dark(job: Job, page: Page, view: str) -> None:
    page.emulate_media(color_scheme="dark")
    show(page, job, view)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number)")
    assert max(ground) < 60
    picture(page, f"{view}-dark")


@pytest.fixture(params=["light", "dark"])
def inspected(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    """Pages into which axe may be put, whatever the page's own policy forbids."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, bypass_csp=True, color_scheme=request.param, reduced_motion="reduce"
    )
    context.set_default_timeout(LONG)
    yield context
    context.close()


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(job: Job, inspected: BrowserContext, view: str) -> None:
    page = inspected.new_page()
    show(page, job, view)
    assert serious(page) == []
