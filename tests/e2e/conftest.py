"""A browser, a page and a training job for the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.gallery import write_gallery
from e2e.rig import FLAGS, Process, Watch, start_job, start_viewer
from e2e.tracepage import LONG, TracePage
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

#: Playwright's own is 5 s, which a busy machine may need for one click.
expect.set_options(timeout=LONG)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile whose pages may not throw, log broken rules, open dialogs or ask another machine for anything."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True, reduced_motion="reduce")
    context.set_default_timeout(LONG)
    watch = Watch(context)
    yield context
    context.close()
    assert watch.complaints == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[tuple[Process, str]]:
    process, url = start_job(tmp_path)
    yield process, url
    process.kill()


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a viewer of real traces; one for all tests, which therefore change nothing in it."""
    folder = tmp_path_factory.mktemp("gallery")
    viewer, url = start_viewer(folder, write_gallery(folder))
    yield url
    viewer.kill()


@pytest.fixture
def traced(page: Page, gallery: str) -> TracePage:
    return TracePage(page, gallery)
