"""The page around a timeline: verdict, findings, what the URL keeps, notes, downloads, loads that fail, keys alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from e2e.gallery import DATA, DENSE, HOROVOD, PS, write_session
from e2e.rig import RETRIES, start_viewer
from e2e.tracepage import LONG, TracePage, engine
from playwright.sync_api import Page, Route, expect

from tftracer.trace.decode.descriptors import message_class

# ----------------------------------------------------------------------------------------------- verdict and findings


@pytest.mark.parametrize("step", [DENSE, PS, HOROVOD])
def test_each_sentence_of_the_verdict_leads_to_its_evidence(traced: TracePage, step: int) -> None:
    traced.open(step)
    answer = traced.page.request.get(
        f"{traced.base}/api/traces/{traced.page.url.rsplit('/', 1)[1]}/verdict", headers=traced.headers, max_retries=RETRIES
    ).json()
    assert answer["sentences"]
    region = traced.page.get_by_test_id("verdict")
    expect(region.locator(".sentence").first).to_be_visible(timeout=LONG)
    more = region.get_by_role("button", name=re.compile("more$"))
    if more.count():
        more.click()
    for place, sentence in enumerate(answer["sentences"]):
        button = region.locator(".sentence").nth(place)
        expect(button).to_contain_text(sentence["text"])
        evidence = sentence["evidence"]
        if button.is_disabled():
            assert not evidence["nodes"] and not evidence.get("tab") and not evidence.get("op")
            continue
        button.click()
        if evidence["nodes"]:
            traced.selected(evidence["nodes"][0])
        if evidence.get("end_ns", 0) > evidence.get("start_ns", 0):
            expect(traced.page).to_have_url(re.compile("range="))
        if evidence.get("op"):
            expect(traced.page.get_by_test_id("search")).to_have_value(evidence["op"])
        if evidence.get("tab"):
            expect(traced.page.get_by_test_id(f"tab-{evidence['tab']}")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize("height", [700, 600])
def test_the_evidence_of_a_sentence_can_be_seen(traced: TracePage, height: int) -> None:
    """The analysis that a sentence opens leaves the timeline room, and what the sentence points at is on it."""
    start, end = (engine(HOROVOD).verdict()["sentences"][0]["evidence"][key] for key in ("start_ns", "end_ns"))
    traced.page.set_viewport_size({"width": 1400, "height": height})
    traced.page.emulate_media(reduced_motion="no-preference")
    traced.open(HOROVOD)
    traced.page.get_by_test_id("verdict").locator(".sentence", has_text="Allreduce").first.click()
    expect(traced.panel.get_by_role("gridcell").first).to_be_visible(timeout=LONG)
    expect(traced.page.get_by_role("complementary", name="Selection")).to_be_visible()
    expect(traced.canvas).to_be_in_viewport(ratio=1, timeout=LONG)
    box = traced.canvas.bounding_box()
    assert box and box["height"] >= 160
    view = re.compile(r"[?&]view=(\d+)-(\d+)")
    expect(traced.page).to_have_url(view, timeout=LONG)
    traced.page.wait_for_function(
        """([start, end]) => {
            const [from, to] = new URL(location.href).searchParams.get("view").split("-").map(Number);
            return from <= start && to >= end;
        }""",
        arg=[start, end],
        timeout=LONG,
    )
    grip = traced.page.get_by_role("separator", name="Height of the analysis")
    grip.focus()
    grip.press("ArrowDown")
    grip.press("ArrowDown")
    expect(grip).to_have_attribute("aria-valuenow", "40")


def test_findings_stand_above_the_trace_and_limits_are_no_mark_on_its_row(traced: TracePage) -> None:
    findings = engine(HOROVOD).findings()
    traced.open(HOROVOD)
    banner = traced.page.get_by_test_id("findings")
    expect(banner).to_be_visible(timeout=LONG)
    traced.page.get_by_test_id("findings-more").click()
    for finding in findings:
        expect(banner).to_contain_text(finding["message"])
        expect(banner).to_contain_text(finding["remedy"])
    traced.page.goto(traced.base)
    row = traced.page.get_by_role("row").filter(has=traced.page.get_by_role("link", name=f"Open the trace of step {HOROVOD}"))
    expect(row).to_be_visible()
    assert all(finding["severity"] == "info" for finding in findings)
    expect(row.get_by_text(re.compile("finding"))).to_have_count(0)


# -------------------------------------------------------------------------------------------------------- what URLs keep


def test_a_sent_url_shows_the_same(traced: TracePage) -> None:
    """Tab, selection, range, view, filter, highlight and search: a reload and another browser restore them."""
    node, name = traced.longest(DENSE)
    state: dict[str, str | int] = {
        "tab": "ops",
        "node": node,
        "range": "10000000-20000000",
        "view": "8000000-30000000",
        "q": "MatMul",
    }
    traced.open(DENSE, highlight="critical", scope="gradients", **state)
    for again in range(2):
        traced.details(name)
        page = traced.page
        expect(page.get_by_test_id("tab-ops")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_test_id("search")).to_have_value("MatMul")
        expect(page.get_by_test_id("search-count")).to_contain_text("1,999")
        expect(page.get_by_test_id("highlight")).to_have_value("critical")
        expect(page.get_by_test_id("filters-active")).to_have_text("1")
        page.get_by_role("button", name="Range", exact=True).click()
        expect(page.get_by_test_id("range-panel")).to_contain_text("10.0")
        for key, value in state.items():
            traced.has(key, value)
        if not again:
            page.reload()
            traced.painted()


def test_a_selected_op_in_a_deep_row_is_in_sight_when_its_url_is_opened(traced: TracePage) -> None:
    """So it is after a reload, after the lanes were scrolled elsewhere, and when Back leads to it."""
    answers = engine(HOROVOD)
    last = int(answers.layout.order[answers.layout.row_offsets[-2]])
    first = traced.longest(HOROVOD)[0]
    traced.page.set_viewport_size({"width": 1440, "height": 640})
    traced.open(HOROVOD, node=last)
    expect(traced.page).to_have_url(re.compile(r"[?&]row=\d+"), timeout=LONG)  # scrolled, and that is kept, too
    row = int(traced.parameter("row") or 0)
    assert 0 < row <= len(answers.layout.row_offsets) - 2
    traced.page.reload()
    traced.painted()
    traced.has("row", row)
    traced.canvas.hover(position={"x": 300, "y": 100})
    traced.page.mouse.wheel(0, -5000)
    traced.has("row", None)
    traced.click_slice(traced.middle_of(HOROVOD, first))
    traced.selected(first)
    traced.page.go_back()
    traced.selected(last)
    expect(traced.page).to_have_url(re.compile(r"[?&]row=\d+"), timeout=LONG)


def test_an_op_stays_shown_when_the_view_moves_beside_a_marked_range(traced: TracePage) -> None:
    node, name = traced.longest(DENSE)
    traced.open(DENSE, range="10000000-20000000", node=node, view="8000000-30000000")
    traced.page.get_by_role("button", name="Op", exact=True).click()
    traced.details(name)
    for way in (200, -100):
        before = traced.parameter("view")
        traced.drag((700, 60), (700 - way, 60))
        expect(traced.page).not_to_have_url(re.compile(f"view={before}"), timeout=LONG)
        traced.details(name)
        expect(traced.page.get_by_test_id("range-panel")).to_have_count(0)
    traced.page.get_by_test_id("highlight").select_option("communication")
    traced.has("highlight", "communication")
    traced.details(name)


def test_back_and_forward_walk_what_was_looked_at(traced: TracePage) -> None:
    traced.page.goto(f"{traced.base}/")
    traced.page.get_by_role("link", name=f"Open the trace of step {DENSE}", exact=True).click()
    traced.painted()
    node, name = traced.longest(DENSE)
    traced.click_slice(traced.middle_of(DENSE, node))
    traced.details(name)
    traced.page.get_by_test_id("tab-budget").click()
    traced.has("tab", "budget")
    traced.page.go_back()
    traced.has("tab", None)
    traced.selected(node)
    traced.page.go_back()
    traced.selected(None)
    expect(traced.page.get_by_test_id("details")).to_have_count(0)
    traced.page.go_forward()
    traced.details(name)
    traced.page.go_back()
    traced.page.go_back()
    expect(traced.page.get_by_role("article")).to_have_count(1, timeout=LONG)


def test_a_url_that_leads_nowhere_says_so(traced: TracePage) -> None:
    traced.page.goto(f"{traced.base}/traces/99")
    missing = traced.page.get_by_test_id("load-failed")
    expect(missing).to_contain_text("This session has no trace 99", timeout=LONG)
    expect(missing.get_by_role("link", name="All runs and traces")).to_be_visible()
    expect(missing).not_to_contain_text("RunMetadata")  # there is none to download
    expect(traced.page.get_by_role("button", name="Download")).to_have_count(0)
    traced.page.goto(f"{traced.base}/runs/99")
    expect(traced.page.get_by_text("There is no such run")).to_be_visible(timeout=LONG)
    traced.page.goto(f"{traced.base}/what/is/this")
    expect(traced.page.get_by_text("There is nothing at this address")).to_be_visible(timeout=LONG)


# --------------------------------------------------------------------------------------------- loads that fail or take long


def test_a_long_load_is_cancelled_and_taken_up_again(traced: TracePage) -> None:
    held: list[Route] = []
    traced.page.route(re.compile("/timeline$"), lambda route: held.append(route))  # a server that takes its time
    traced.page.goto(traced.url(DENSE))
    expect(traced.page.get_by_test_id("loading")).to_be_visible(timeout=LONG)
    traced.page.get_by_test_id("cancel-load").click()
    expect(traced.page.get_by_test_id("load-cancelled")).to_contain_text("Nothing is lost")
    expect(traced.page.get_by_text("Analyzing the step")).to_have_count(0)
    traced.page.unroute_all()
    traced.page.get_by_role("button", name="Load it").click()
    traced.painted()


def test_a_failed_load_says_why_and_is_tried_again(traced: TracePage) -> None:
    answer = json.dumps({"error": {"code": "storage", "message": "The disk is gone. Mount it again."}})
    traced.page.route(re.compile("/timeline$"), lambda route: route.fulfill(status=500, body=answer))
    traced.page.goto(traced.url(PS))
    expect(traced.page.get_by_test_id("load-failed")).to_contain_text("Mount it again", timeout=LONG)
    expect(traced.page.get_by_role("button", name="Download")).to_be_visible()  # the RunMetadata may still be had
    expect(traced.page.get_by_text("Analyzing the step")).to_have_count(0)
    traced.page.unroute_all()
    traced.page.get_by_role("button", name="Try again").first.click()
    traced.painted()


def test_an_empty_trace_teaches(page: Page, tmp_path: Path) -> None:
    empty = message_class("RunMetadata")()
    empty.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
    file = write_session(tmp_path, "empty.tftrace", {20: empty.SerializeToString()})
    viewer, url = start_viewer(tmp_path, file)
    try:
        page.goto(url)  # a file with one trace opens on it
        expect(page.get_by_test_id("trace-empty")).to_contain_text("tf.function", timeout=LONG)
        expect(page.get_by_test_id("findings")).to_contain_text("recorded nothing")
        expect(page.locator(".sentence").first).to_be_visible(timeout=LONG)
        expect(page.get_by_text("Analyzing the step")).to_have_count(0)
        expect(page.get_by_role("button", name="Download")).to_be_visible()
    finally:
        viewer.kill()


# -------------------------------------------------------------------------------------------------------- notes and files


def test_a_note_that_was_not_saved_is_still_there(traced: TracePage) -> None:
    """A press beside the popover closes it, and loses nothing; *Cancel* does."""
    traced.open(PS)
    traced.page.get_by_role("button", name="Add note", exact=True).click()
    traced.page.get_by_test_id("note-text").fill("half a thought")
    traced.page.get_by_role("button", name="Fit").click()
    expect(traced.page.get_by_test_id("note-text")).to_have_count(0)
    traced.page.get_by_role("button", name="Add note (not saved)").click()
    expect(traced.page.get_by_test_id("note-text")).to_have_value("half a thought")
    traced.page.get_by_role("button", name="Cancel").click()
    traced.page.get_by_role("button", name="Add note", exact=True).click()
    expect(traced.page.get_by_test_id("note-text")).to_have_value("")
    expect(traced.page.get_by_test_id("note-save")).to_be_disabled()


def test_a_note_is_kept_through_save_and_reopen(page: Page, tmp_path: Path) -> None:
    note = "slow since the <new> input & 'co' — measured"
    file = write_session(tmp_path, "noted.tftrace", {20: (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()})
    viewer, url = start_viewer(tmp_path, file)
    try:
        page.goto(url)  # a file with one trace opens on it
        page.get_by_role("button", name="Add note", exact=True).click()
        page.get_by_test_id("note-text").fill(note)
        page.get_by_test_id("note-save").click()
        expect(page.get_by_test_id("note-shown")).to_have_text(note, timeout=LONG)
        page.get_by_role("link", name="tftracer: overview").click()
        expect(page.get_by_role("button", name=f"{note} (edit the note)")).to_be_visible(timeout=LONG)
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Save", exact=True).click()
        saved = tmp_path / "again.tftrace"
        waiting.value.save_as(saved)
    finally:
        viewer.kill()
    viewer, url = start_viewer(tmp_path, saved)
    try:
        page.goto(url)
        expect(page.get_by_test_id("note-shown")).to_have_text(note, timeout=LONG)
        page.get_by_role("link", name="tftracer: overview").click()
        page.get_by_role("button", name=f"{note} (edit the note)").click()
        page.get_by_label("Note on trace 1").fill("other words")
        page.get_by_label("Note on trace 1").press("Enter")
        page.get_by_role("link", name="Open the trace of step 20").click()
        expect(page.get_by_test_id("note-shown")).to_have_text("other words", timeout=LONG)
    finally:
        viewer.kill()


@pytest.mark.parametrize("form", ["run_metadata", "chrome", "html"])
def test_downloads(traced: TracePage, tmp_path: Path, form: str) -> None:
    traced.open(PS)
    traced.page.get_by_role("button", name="Download").click()
    with traced.page.expect_download() as waiting:
        traced.page.get_by_test_id(f"download-{form}").click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    content = path.read_bytes()
    if form == "run_metadata":
        assert content == (DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes()
    elif form == "chrome":
        assert json.loads(content)["traceEvents"]
    else:
        assert len(content) > 1000


# ---------------------------------------------------------------------------------------------------------- keys alone


def test_the_keyboard_alone_reaches_everything(traced: TracePage) -> None:
    """Tab visits each part of the page; the tabs, a table and an op's links are worked by keys."""
    traced.open(PS)
    seen = set()
    for _ in range(60):
        traced.page.keyboard.press("Tab")
        seen.add(traced.page.evaluate("document.activeElement.getAttribute('data-testid') ?? document.activeElement.className"))
    for wanted in ("timeline-canvas", "search", "search-next", "search-regex", "highlight", "fit", "help", "tab-timeline"):
        assert wanted in seen, (wanted, seen)
    traced.page.get_by_test_id("tab-timeline").press("ArrowRight")
    traced.has("tab", "ops")
    expect(traced.page.get_by_test_id("tab-ops")).to_be_focused()
    table = traced.panel.get_by_role("grid", name="Ops by op type")
    expect(table.get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    table.focus()
    table.press("ArrowDown")
    expect(traced.page.get_by_test_id("details")).to_be_visible(timeout=LONG)
    expect(table).to_have_attribute("aria-activedescendant", re.compile("-0$"))
    table.press("End")
    expect(table).not_to_have_attribute("aria-activedescendant", re.compile("-0$"))
    link = traced.page.get_by_test_id("details").get_by_role("button", name="Zoom to it")
    link.focus()
    link.press("Enter")
    expect(traced.page).to_have_url(re.compile("view="), timeout=LONG)
