"""Bookmarks of a trace, and lanes by their names: kept over a reload, a saved file, a standalone page and a link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.gallery import DATA, DENSE, PS, write_session
from e2e.rig import RETRIES, Process, bearer, picture, start_viewer
from e2e.tracepage import LONG, RULER, TracePage, engine
from playwright.sync_api import Page, expect

RANGE = (1_000_000, 3_000_000)
HOSTILE = "<img src=x onerror=alert(1)> a:b,c"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Process, str]]:
    """A viewer for one test, which changes what it shows."""
    viewer, url = start_viewer(
        tmp_path, write_session(tmp_path, "own.tftrace", {20: (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()})
    )
    yield viewer, url
    viewer.kill()


def names(page: Page) -> list[str]:
    return [text.split("\n")[0] for text in page.get_by_test_id("bookmark").all_inner_texts()]


def open_menu(page: Page) -> None:
    page.get_by_test_id("bookmarks").get_by_role("button").first.click()
    expect(page.get_by_test_id("bookmark-name")).to_be_visible()


def test_bookmarks_are_added_renamed_deleted_and_saved(page: Page, own: tuple[Process, str], tmp_path: Path) -> None:
    url = own[1]
    own_page = TracePage(page, url)
    page.goto(f"{own_page.base}/traces/1?range={RANGE[0]}-{RANGE[1]}")
    own_page.painted()
    open_menu(page)
    page.get_by_test_id("bookmark-name").fill(HOSTILE)
    page.get_by_test_id("bookmark-add").click()
    expect(page.get_by_test_id("bookmark")).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_test_id("range-clear").click()
    own_page.has("range", None)
    box = own_page.canvas.bounding_box()
    assert box
    own_page.canvas.hover(position={"x": box["width"] / 2, "y": RULER + 4})
    page.keyboard.press("m")
    page.get_by_test_id("bookmark-name").fill("middle")
    page.get_by_test_id("bookmark-add").click()
    expect(page.get_by_test_id("bookmark")).to_have_count(2)
    assert names(page) == [HOSTILE, "middle"]
    expect(page.get_by_test_id("bookmarks-kept")).to_contain_text("Kept until this viewer ends")

    page.get_by_role("button", name="Rename middle").click()
    page.get_by_test_id("bookmark-rename").fill("the middle")
    page.get_by_test_id("bookmark-rename").press("Enter")
    expect(page.get_by_test_id("bookmark").nth(1)).to_contain_text("the middle")
    answer = page.request.get(f"{own_page.base}/api/traces/1", headers=bearer(url), max_retries=RETRIES).json()
    saved = answer["bookmarks"]
    assert [bookmark["name"] for bookmark in saved] == [HOSTILE, "the middle"]
    assert (saved[0]["start_ns"], saved[0]["end_ns"], saved[1]["end_ns"]) == (*RANGE, None)
    duration = engine(PS).trace.duration_ns
    assert saved[1]["start_ns"] == pytest.approx(duration / 2, rel=0.01)

    page.reload()
    own_page.painted()
    expect(page.get_by_test_id("bookmarks-count")).to_have_text("2", timeout=LONG)
    open_menu(page)
    page.get_by_test_id("bookmark").first.get_by_role("button").first.click()  # shows it
    own_page.has("range", f"{RANGE[0]}-{RANGE[1]}")
    page.get_by_role("button", name="Delete the middle").click()
    expect(page.get_by_test_id("bookmark")).to_have_count(1)

    file = page.request.get(f"{own_page.base}/api/session/file", headers=bearer(url), max_retries=RETRIES).body()
    (tmp_path / "saved.tftrace").write_bytes(file)
    viewer, url = start_viewer(tmp_path, tmp_path / "saved.tftrace")
    try:
        reopened = TracePage(page, url)
        page.goto(f"{reopened.base}/traces/1")
        reopened.painted()
        expect(page.get_by_test_id("bookmarks-count")).to_have_text("1", timeout=LONG)
        html = page.request.get(f"{reopened.base}/api/traces/1/file?format=html", headers=bearer(url), max_retries=RETRIES).body()
    finally:
        viewer.kill()
    (tmp_path / "step.html").write_bytes(html)
    page.goto((tmp_path / "step.html").as_uri())
    reopened.painted()
    open_menu(page)
    assert names(page) == [HOSTILE]
    expect(page.get_by_role("button", name=f"Delete {HOSTILE}")).to_have_count(0)  # a copy keeps what it has
    page.get_by_test_id("bookmark-name").fill("mine")
    page.get_by_test_id("bookmark-add").click()
    expect(page.get_by_test_id("bookmark")).to_have_count(2)
    expect(page.get_by_test_id("bookmarks")).to_contain_text("gone when the page is closed")


def test_a_link_carries_bookmarks(traced: TracePage) -> None:
    traced.open(DENSE, bookmarks="warm%20up:0-2000000,peak:5000000,wrong:9-5,:1")
    expect(traced.page.get_by_test_id("bookmarks-count")).to_have_text("2", timeout=LONG)
    open_menu(traced.page)
    assert names(traced.page) == ["warm up", "peak"]


def test_lanes_are_filtered_by_name(traced: TracePage) -> None:
    lanes = [lane["title"] for lane in engine(PS).timeline()["lanes"] if lane["rows"]]
    wanted = [title for title in lanes if "ps/0" in title]
    assert 0 < len(wanted) < len(lanes)
    traced.open(PS)
    shown = traced.page.locator("[data-testid^=lane-]")  # those that are scrolled away, too
    expect(shown).to_have_count(len(lanes))
    traced.page.get_by_role("button", name="Filters").click()
    field = traced.page.get_by_test_id("filter-lanes")
    field.fill("^PS/\\d")
    expect(shown).to_have_count(len(wanted), timeout=LONG)
    field.fill("^PS/(")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(shown).to_have_count(len(lanes))
    field.fill("^ps")
    traced.has("lanes", "^ps")
    traced.page.reload()
    traced.painted()
    expect(shown).to_have_count(len(wanted), timeout=LONG)
    expect(traced.page.get_by_test_id("filters-active")).to_have_text("1")
    traced.open(PS, lanes="nomatch")
    expect(traced.page.get_by_test_id("no-lane")).to_contain_text("No lane matches “nomatch”.", timeout=LONG)
    picture(traced.page, "no-lane")
    traced.page.get_by_role("button", name="Show all lanes").click()
    expect(shown).to_have_count(len(lanes))
    expect(traced.page.get_by_test_id("no-lane")).to_have_count(0)
    traced.has("lanes", None)
