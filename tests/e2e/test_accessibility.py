"""axe-core finds nothing serious or critical on any view, in light and in dark colours; each has one first heading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.gallery import COST, DENSE, HOROVOD, IDS, PS, write_session
from e2e.rig import RETRIES, ROOT, Process, start_viewer, tabs_of_a_trace
from e2e.tracepage import LONG, TracePage
from playwright.sync_api import Browser, Page, Route, expect

from tftracer.trace.decode.descriptors import message_class

AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
TRACE_VIEWS: dict[str, tuple[int, dict[str, str | int]]] = {
    "timeline": (HOROVOD, {"highlight": "idle"}),
    "ops": (DENSE, {"tab": "ops", "node": 20}),
    "layers": (COST, {"tab": "layers", "layer": "conv"}),
    "budget": (PS, {"tab": "budget"}),
    "critical-path": (DENSE, {"tab": "critical-path"}),
    "roofline": (HOROVOD, {"tab": "roofline"}),
    "memory": (DENSE, {"tab": "memory"}),
    "communication": (PS, {"tab": "communication", "range": "0-2000000"}),
    "collectives": (HOROVOD, {"tab": "communication", "range": "0-2000000", "node": 3}),
    "scheduling": (COST, {"tab": "scheduling", "q": "MatMul"}),
    "graph": (DENSE, {"tab": "graph", "node": 20}),
    "cost": (COST, {"tab": "cost"}),
}


@pytest.fixture(params=["light", "dark"])
def reading(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """A page into which axe may be put, whatever the page's own policy forbids."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, bypass_csp=True, color_scheme=request.param, reduced_motion="reduce"
    )
    context.set_default_timeout(LONG)
    yield context.new_page()
    context.close()


@pytest.fixture
def reader(reading: Page, gallery: str) -> TracePage:
    return TracePage(reading, gallery)


def serious(page: Page) -> list[str]:
    """What axe finds; and that the view has one heading of the first order."""
    page.add_script_tag(path=AXE)
    report: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    headings = page.locator("h1").all_inner_texts()
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {[node['html'][:160] for node in each['nodes'][:3]]}"
        for each in report["violations"]
        if each["impact"] in ("serious", "critical")
    ] + ([] if len(headings) == 1 else [f"not one h1: {headings}"])


# ------------------------------------------------------------------------------------------------------- lists and runs

LISTS = {
    "/": "trainer-1",
    "/runs/1": "Step times",
    "/runs/1?table=1": "Show as table",
    "/runs/1/ops?by=name": "From 5 traces of the run",
    "/runs/99": "There is no such run",
    "/compare": "Choose two traces",
    f"/compare?a={IDS[PS]}&b={IDS[HOROVOD]}": "Budgets|appeared",
    "/what/is/this": "There is nothing at this address",
}


@pytest.mark.parametrize("path", LISTS)
def test_lists_and_runs(reader: TracePage, path: str) -> None:
    page = reader.page
    page.goto(reader.base + path)
    expect(page.get_by_text(re.compile(LISTS[path])).first).to_be_visible()
    if path.startswith("/runs/1") and "/ops" not in path:
        expect(page.locator(".uplot canvas").first).to_be_visible()
    assert serious(page) == []


def test_what_opens_over_the_lists(reader: TracePage) -> None:
    """A note being written, traces picked to be compared, a message, the question before the server shuts down."""
    page = reader.page
    page.goto(reader.base)
    page.get_by_role("button", name=re.compile("Add a note")).first.click()
    page.get_by_role("checkbox", name=re.compile("^Compare the trace")).first.check()
    page.locator("input[type=file]").set_input_files({"name": "no.tftrace", "mimeType": "", "buffer": b"no trace"})
    expect(page.get_by_role("list", name="Messages").get_by_role("listitem").first).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Shut down").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert serious(page) == []


def test_a_live_session(reading: Page, job: tuple[Process, str]) -> None:
    reading.goto(job[1])
    expect(reading.get_by_role("article")).to_have_count(2)
    reading.get_by_role("button", name="Trace next step").first.click()
    expect(reading.get_by_role("link", name=re.compile("^Open the trace of step")).first).to_be_visible()
    assert serious(reading) == []
    reading.get_by_role("switch", name="Trace every step").click()
    expect(reading.get_by_role("dialog")).to_be_visible()
    assert serious(reading) == []
    reading.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    job[0].kill()
    expect(reading.get_by_text("The connection is lost.")).to_be_visible()
    assert serious(reading) == []


def test_the_login(reader: TracePage) -> None:
    reader.page.context.clear_cookies()
    reader.page.goto(reader.base)
    expect(reader.page.get_by_label("Token")).to_be_visible()
    assert serious(reader.page) == []


# -------------------------------------------------------------------------------------------------------------- a trace


def test_every_tab_is_among_the_views() -> None:
    assert {query.get("tab", "timeline") for _, query in TRACE_VIEWS.values()} == set(tabs_of_a_trace())


@pytest.mark.parametrize("view", TRACE_VIEWS)
def test_a_trace(reader: TracePage, view: str) -> None:
    step, query = TRACE_VIEWS[view]
    reader.open(step, **query)
    if "tab" in query:
        expect(reader.panel.locator("[role=grid], svg, p, dl").first).to_be_visible()
    if "node" in query:
        expect(reader.page.get_by_test_id("details-name")).to_be_visible()
    assert serious(reader.page) == []


@pytest.mark.parametrize("size", [(400, 800), (900, 420)])
def test_a_trace_in_little_room(reader: TracePage, size: tuple[int, int]) -> None:
    reader.page.set_viewport_size({"width": size[0], "height": size[1]})
    reader.open(DENSE, tab="ops", node=20, range="0-2000000")
    expect(reader.panel.get_by_role("gridcell").first).to_be_visible()
    assert serious(reader.page) == []


def test_what_opens_over_the_trace(reader: TracePage) -> None:
    reader.open(PS)
    page = reader.page
    page.get_by_test_id("findings-more").click()
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_test_id("filter-scope")).to_be_visible()
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add note", exact=True).click()
    expect(page.get_by_test_id("note-text")).to_be_visible()
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Download").click()
    expect(page.get_by_test_id("download-html")).to_be_visible()
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.get_by_test_id("help").click()
    expect(page.get_by_test_id("keys-help")).to_be_visible()
    assert serious(page) == []


def test_a_trace_that_comes_late_or_not_at_all(reader: TracePage) -> None:
    page = reader.page
    held: list[Route] = []
    page.route(re.compile("/timeline$"), lambda route: held.append(route))
    page.goto(reader.url(PS))
    expect(page.get_by_test_id("loading")).to_be_visible()
    assert serious(page) == []
    page.get_by_test_id("cancel-load").click()
    expect(page.get_by_test_id("load-cancelled")).to_be_visible()
    assert serious(page) == []
    page.unroute_all()
    answer = json.dumps({"error": {"code": "storage", "message": "The disk is gone. Mount it again."}})
    page.route(re.compile("/timeline$"), lambda route: route.fulfill(status=500, body=answer))
    page.goto(reader.url(DENSE))
    expect(page.get_by_test_id("load-failed")).to_be_visible()
    assert serious(page) == []


def test_an_empty_trace(reading: Page, tmp_path: Path) -> None:
    file = write_session(tmp_path, "empty.tftrace", {20: message_class("RunMetadata")(partition_graphs=[{}]).SerializeToString()})
    viewer, url = start_viewer(tmp_path, file)
    try:
        reading.goto(url)
        expect(reading.get_by_test_id("trace-empty")).to_be_visible()
        assert serious(reading) == []
    finally:
        viewer.kill()


# ------------------------------------------------------------------------------------------------------ a file of its own


def test_the_html_export(reader: TracePage, tmp_path: Path) -> None:
    page = reader.page
    file_url = f"{reader.base}/api/traces/{IDS[PS]}/file?format=html"
    answer = page.context.request.get(file_url, headers=reader.headers, max_retries=RETRIES)
    file = tmp_path / "step.html"
    file.write_bytes(answer.body())
    page.goto(file.as_uri())
    reader.painted()
    page.get_by_test_id("search").fill("RecvTensor")
    page.get_by_test_id("search").press("Enter")
    expect(page.get_by_test_id("details-name")).to_contain_text("RecvTensor")
    for tab in tabs_of_a_trace("timeline"):  # which is open from the start
        page.get_by_test_id(f"tab-{tab}").click()
        expect(reader.panel.locator("[role=grid], p, svg").first).to_be_visible()
        assert serious(page) == [], tab
