"""axe-core finds nothing serious or critical on any view, in light and in dark colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gallery import COST, DENSE, HOROVOD, IDS, PS
from playwright.sync_api import Browser, Page, expect
from rig import ROOT
from tracepage import LONG, TracePage

AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
TRACE_VIEWS: dict[str, tuple[int, dict[str, str | int]]] = {
    "ops": (DENSE, {"tab": "ops", "node": 20}),
    "budget": (PS, {"tab": "budget"}),
    "critical-path": (DENSE, {"tab": "critical-path"}),
    "memory": (DENSE, {"tab": "memory"}),
    "communication": (HOROVOD, {"tab": "communication", "range": "0-2000000"}),
    "scheduling": (COST, {"tab": "scheduling", "q": "MatMul"}),
    "graph": (DENSE, {"tab": "graph", "node": 20}),
    "cost": (COST, {"tab": "cost"}),
}


@pytest.fixture(params=["light", "dark"])
def reader(request: pytest.FixtureRequest, browser: Browser, gallery: str) -> Iterator[TracePage]:
    """A page into which axe may be put, whatever the page's own policy forbids."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, bypass_csp=True, color_scheme=request.param, reduced_motion="reduce"
    )
    context.set_default_timeout(LONG)
    yield TracePage(context.new_page(), gallery)
    context.close()


def serious(page: Page) -> list[str]:
    page.add_script_tag(path=AXE)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {[node['html'][:160] for node in each['nodes'][:3]]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("path", ["/", "/runs/1", "/runs/1?table=1", "/runs/99", f"/compare?a={IDS[PS]}&b={IDS[HOROVOD]}"])
def test_lists_and_runs(reader: TracePage, path: str) -> None:
    reader.page.goto(reader.base + path)
    page = reader.page
    there = page.get_by_role("article").or_(page.locator("canvas")).or_(page.get_by_text("no such run"))
    expect(there.first).to_be_visible()
    assert serious(reader.page) == []


@pytest.mark.parametrize("view", TRACE_VIEWS)
def test_a_trace(reader: TracePage, view: str) -> None:
    step, query = TRACE_VIEWS[view]
    reader.open(step, **query)
    expect(reader.panel.locator("[role=grid], svg, p, dl").first).to_be_visible()
    assert serious(reader.page) == []


def test_what_opens_over_the_trace(reader: TracePage) -> None:
    reader.open(PS)
    page = reader.page
    page.get_by_test_id("findings-more").click()
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_test_id("filter-scope")).to_be_visible()
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_test_id("help").click()
    expect(page.get_by_test_id("keys-help")).to_be_visible()
    assert serious(page) == []


def test_the_login(reader: TracePage) -> None:
    reader.page.context.clear_cookies()
    reader.page.goto(reader.base)
    expect(reader.page.get_by_label("Token")).to_be_visible()
    assert serious(reader.page) == []
