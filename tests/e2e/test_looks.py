"""Narrow, huge, dark: every view in pictures, and nothing that makes a narrow page scroll sideways."""

from __future__ import annotations

import re

import pytest
from e2e.gallery import DENSE, HOROVOD, IDS, OTHER_HOROVOD, PS
from e2e.rig import Process, picture
from e2e.tracepage import HALF_ROW, LONG, RULER, TracePage
from playwright.sync_api import Page, expect

VIEWS = {
    "overview": "/",
    "run": "/runs/1",
    "trace": f"/traces/{IDS[HOROVOD]}",
    "trace-ops": f"/traces/{IDS[DENSE]}?tab=ops&node=20",
    "memory": f"/traces/{IDS[DENSE]}?tab=memory",
    "compare": f"/compare?a={IDS[HOROVOD]}&b={IDS[OTHER_HOROVOD]}",
}


def there(page: Page) -> None:
    """Waits until the view shows its data."""
    data = page.get_by_role("article").or_(page.locator("canvas[data-painted], .uplot canvas, .pair canvas"))
    expect(data.first).to_be_visible(timeout=LONG)
    if page.get_by_role("tabpanel").count():
        expect(page.get_by_role("tabpanel").locator("[role=grid]").first).to_be_visible(timeout=LONG)
    if page.get_by_test_id("verdict").count():
        expect(page.locator(".sentence").first).to_be_visible(timeout=LONG)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [320, 400, 3840])
def test_narrow_and_huge(traced: TracePage, view: str, width: int) -> None:
    page = traced.page
    page.set_viewport_size({"width": width, "height": 2160 if width == 3840 else 800})
    page.goto(traced.base + VIEWS[view])
    there(page)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    picture(page, f"{view}-{width}")


def test_a_live_page_fits_a_phone(page: Page, job: tuple[Process, str]) -> None:
    """The buttons that ask for traces, which no file has, are beside each other only where there is room."""
    page.set_viewport_size({"width": 320, "height": 640})
    for path in (job[1], job[1].partition("?")[0] + "runs/1"):
        page.goto(path)
        expect(page.get_by_role("button", name="Trace next step").first).to_be_visible(timeout=LONG)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("width", [700, 768, 820, 900, 1024, 1180, 1440])
def test_a_runs_numbers_stand_beside_each_other(traced: TracePage, width: int) -> None:
    page = traced.page
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(traced.base)
    names = page.get_by_role("article").first.get_by_role("term")
    expect(names.first).to_be_visible(timeout=LONG)
    boxes = names.evaluate_all("names => names.map((name) => Math.round(name.getBoundingClientRect().top))")
    assert len(boxes) > 5 and len(set(boxes)) == 1, boxes


def uncovered(traced: TracePage, y: float) -> None:
    """That height of the canvas is in the window, and nothing lies over it; what scrolls has its time to."""
    seen = """([canvas, y]) => {
        const box = canvas.getBoundingClientRect();
        return document.elementFromPoint(box.left + box.width / 2, box.top + y) === canvas;
    }"""
    traced.page.wait_for_function(seen, arg=[traced.canvas.element_handle(), y], timeout=LONG)


@pytest.mark.parametrize("size", [(400, 800), (860, 420)])
def test_the_lanes_stay_in_sight_in_little_room(traced: TracePage, size: tuple[int, int]) -> None:
    """An op is tapped: its details come beside or under the lanes. An analysis is opened: so does it; its rows are walked."""
    page = traced.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    node, name = traced.longest(HOROVOD)
    traced.open(HOROVOD)
    there(page)
    traced.canvas.scroll_into_view_if_needed()
    narrow = size[0] < 720
    y = RULER + HALF_ROW + (24 if narrow else 0)  # there a lane's name lies over its rows
    traced.canvas.click(position={"x": traced.middle_of(HOROVOD, node), "y": y})
    expect(traced.details(name)).to_be_in_viewport()
    uncovered(traced, y)
    picture(page, f"selected-{size[0]}")
    page.get_by_test_id("tab-critical-path").click()
    row = traced.panel.get_by_role("grid", name="Critical path").get_by_role("row").nth(2)
    expect(traced.panel).to_be_in_viewport(ratio=0.9)
    if narrow:
        expect(row).to_be_in_viewport()
        uncovered(traced, y)
        row.click()
        expect(page).not_to_have_url(re.compile(f"node={node}(&|$)"))
        expect(row).to_be_in_viewport()
        uncovered(traced, y)
    picture(page, f"selected-tab-{size[0]}")


def test_the_chosen_tab_is_in_sight(traced: TracePage) -> None:
    traced.page.set_viewport_size({"width": 400, "height": 800})
    traced.open(DENSE, tab="cost")
    bar = traced.page.get_by_role("tablist").bounding_box()
    tab = traced.page.get_by_test_id("tab-cost").bounding_box()
    assert bar and tab
    assert bar["x"] <= tab["x"] and tab["x"] + tab["width"] <= bar["x"] + bar["width"]


@pytest.mark.parametrize("view", VIEWS)
def test_dark(traced: TracePage, view: str) -> None:
    """As the system has it; each text stands on a dark ground."""
    page = traced.page
    page.emulate_media(color_scheme="dark")
    page.goto(traced.base + VIEWS[view])
    there(page)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number)")
    assert max(ground) < 60
    picture(page, f"{view}-dark")


def test_the_colours_are_the_readers_choice(traced: TracePage) -> None:
    """Light, dark, as the system's; kept over a reload; the canvas follows."""
    page = traced.page
    traced.open(PS)
    ground = "getComputedStyle(document.body).backgroundColor"
    light, drawn = page.evaluate(ground), traced.drawn()
    switch = page.get_by_role("button", name="Colours:")
    switch.click()
    switch.click()
    expect(page.get_by_role("button", name="Colours: dark.")).to_be_visible()
    assert page.evaluate(ground) != light
    traced.until_redrawn(drawn)
    page.reload()
    traced.painted()
    expect(page.get_by_role("button", name="Colours: dark.")).to_be_visible()
    assert page.evaluate(ground) != light


def test_pictures(traced: TracePage) -> None:
    """What the README shows."""
    traced.open(HOROVOD)
    there(traced.page)
    picture(traced.page, "trace")
    traced.open(DENSE, tab="memory")
    there(traced.page)
    picture(traced.page, "memory")
