"""A browser, a page and a training job for the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from rig import FLAGS, Process, start_job, watched


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page that fails its test when it logs an error or asks another machine for anything."""
    page = context.new_page()
    page.set_default_timeout(60_000)
    return watched(page)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[tuple[Process, str]]:
    process, url = start_job(tmp_path)
    yield process, url
    process.kill()
