"""The main job in a real browser: runs count live, a step is traced and opened, the session is saved and reopened."""

from __future__ import annotations

import re
from pathlib import Path

from e2e.rig import PICTURES, RETRIES, Process, bearer, picture, start_viewer
from playwright.sync_api import BrowserContext, Locator, Page, expect

#: Generous: two cores are shared with training, server and browser.
LONG = 60_000


def run_card(page: Page, index: int = 0) -> Locator:
    return page.get_by_role("article").nth(index)


def steps_of(card: Locator) -> Locator:
    return card.locator("dt", has_text=re.compile("^Steps$")).locator("xpath=following-sibling::dd")


def trace_once(page: Page) -> Locator:
    """Traces the next step of the first run; the link that opens the trace."""
    card = run_card(page)
    card.get_by_role("button", name="Trace next step").click()
    link = card.get_by_role("link", name=re.compile("^Open the trace of step")).first
    expect(link).to_be_visible(timeout=LONG)
    return link


def test_runs_appear_and_count_live(page: Page, job: tuple[Process, str]) -> None:
    page.goto(job[1])
    expect(page).not_to_have_url(re.compile("token="))  # the token does not stay in the address bar
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)
    steps = steps_of(run_card(page))
    before = steps.inner_text()
    expect(steps).not_to_have_text(before, timeout=LONG)
    expect(page.get_by_text("Training", exact=True)).to_be_visible()


def test_a_step_is_traced_opened_saved_and_reopened_without_tensorflow(
    page: Page, job: tuple[Process, str], tmp_path: Path, context: BrowserContext
) -> None:
    page.goto(job[1])
    link = trace_once(page)
    first = page.get_by_role("link", name=link.get_attribute("aria-label") or link.inner_text(), exact=True)
    run_card(page).get_by_role("button", name=re.compile("Trace 5 steps")).click()
    expect(first).to_have_count(0, timeout=LONG)  # five are kept: it has made way for the last of them
    expect(run_card(page).get_by_role("link", name=re.compile("^Open the trace"))).to_have_count(5, timeout=LONG)
    expect(run_card(page).get_by_text("Analyzing")).to_have_count(0, timeout=LONG)
    picture(page, "overview")
    link.click()
    expect(page).to_have_url(re.compile(r"/traces/\d+"))
    expect(page.locator("canvas").first).to_be_visible(timeout=LONG)
    page.go_back()

    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save", exact=True).click()
    saved = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    assert saved.suffix == ".tftrace"
    live = page.request.get(page.url.rstrip("/") + "/api/session", headers=bearer(job[1]), max_retries=RETRIES).json()

    viewer, url = start_viewer(tmp_path, saved)
    try:
        again = context.new_page()
        again.goto(url)
        expect(again.get_by_role("article")).to_have_count(2, timeout=LONG)
        expect(again.get_by_role("button", name="Trace next step")).to_have_count(0)
        session = again.url.rstrip("/") + "/api/session"
        reopened = again.request.get(session, headers=bearer(url), max_retries=RETRIES).json()
        assert [run["title"] for run in reopened["runs"]] == [run["title"] for run in live["runs"]]
        traces = [[(t["step"], t["nodes"], t["bytes"], bool(t["headline"])) for t in r["traces"]] for r in reopened["runs"]]
        assert traces == [[(t["step"], t["nodes"], t["bytes"], bool(t["headline"])) for t in r["traces"]] for r in live["runs"]]
        ledger = again.get_by_test_id("ledger")
        texts = [text for text in ledger.locator("summary .number").all_inner_texts() if text.endswith("%")]
        shares = [0.0 if text == "<0.1%" else float(text.rstrip("%")) for text in texts]
        assert len(shares) > 2 and round(sum(shares), 1) == 100.0, shares
        ledger.screenshot(path=PICTURES / "ledger.png", animations="disabled")
        again.get_by_role("link", name=re.compile("^Open the trace")).first.click()
        expect(again.locator("canvas").first).to_be_visible(timeout=LONG)
    finally:
        viewer.kill()


def test_tracing_every_step_asks_first_and_can_be_ended(page: Page, job: tuple[Process, str]) -> None:
    page.goto(job[1])
    switch = page.get_by_role("switch", name="Trace every step")
    switch.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("slow")
    dialog.get_by_role("button", name="Cancel").click()
    expect(switch).to_have_attribute("aria-checked", "false")
    switch.click()
    dialog.get_by_role("button", name="Trace every step").click()
    expect(switch).to_have_attribute("aria-checked", "true", timeout=LONG)
    expect(run_card(page).get_by_role("link", name=re.compile("^Open the trace"))).to_have_count(5, timeout=LONG)
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "false", timeout=LONG)


def test_the_end_of_the_script_is_said(page: Page, job: tuple[Process, str]) -> None:
    page.goto(job[1])
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)
    standing = page.get_by_role("banner").get_by_role("status")
    expect(standing).to_have_text("Training", timeout=LONG)
    job[0].end_training()
    job[0].word("ENDED")
    expect(standing).to_have_text("Idle", timeout=LONG)


def test_a_lost_server_is_said_and_what_was_received_stays(page: Page, job: tuple[Process, str]) -> None:
    page.goto(job[1])
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)
    job[0].kill()
    expect(page.get_by_text("The connection is lost.")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("article")).to_have_count(2)


def test_two_browsers_see_the_same(page: Page, job: tuple[Process, str], context: BrowserContext) -> None:
    page.goto(job[1])
    other = context.new_page()
    other.goto(job[1])
    trace_once(page)
    expect(run_card(other).get_by_role("link", name=re.compile("^Open the trace"))).to_have_count(1, timeout=LONG)


def test_a_stranger_meets_the_login_and_nothing_else(page: Page, job: tuple[Process, str]) -> None:
    page.goto(job[1].split("?")[0])
    expect(page.get_by_role("article")).to_have_count(0)
    field = page.get_by_label(re.compile("token", re.I))
    field.fill(job[1].split("token=")[1])
    field.press("Enter")
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)


def test_shutting_down_ends_the_page_and_not_the_training(page: Page, job: tuple[Process, str]) -> None:
    page.goto(job[1])
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)
    page.get_by_role("button", name="Shut down").click()
    page.get_by_role("dialog").get_by_role("button", name="Shut down").click()
    expect(page.get_by_text(re.compile("server (has closed|is shut down)")).first).to_be_visible(timeout=LONG)
    assert job[0].child.stdin
    job[0].child.stdin.write("steps\n")
    job[0].child.stdin.flush()
    before = int(job[0].word("STEPS"))
    job[0].child.stdin.write("steps\n")
    job[0].child.stdin.flush()
    assert int(job[0].word("STEPS")) >= before
