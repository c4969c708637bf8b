"""Ops over a run's traces, and the table of these traces, in a browser: from the run to the op in one trace."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from e2e.gallery import DENSE, IDS, OTHER_HOROVOD
from e2e.rig import picture
from e2e.tracepage import LONG, TracePage, engine
from playwright.sync_api import Locator, expect


def rows(table: Locator) -> list[Locator]:
    expect(table.get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    return table.get_by_role("row").all()[1:]


def test_from_the_run_to_the_op_in_one_trace(traced: TracePage) -> None:
    """Allreduces are in two of the five traces: their time in each is that of the trace's own table of ops."""
    page = traced.page
    page.goto(f"{traced.base}/runs/1")
    page.get_by_role("link", name="Ops over 5 traces").click()
    expect(page.get_by_role("heading", name="Ops over 5 traces")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("From 5 traces of the run.")).to_be_visible()
    table = page.get_by_role("grid", name="Ops over traces, by op type")
    page.get_by_role("searchbox").fill("HorovodAllreduce")
    row = table.get_by_role("row", name=re.compile("HorovodAllreduce")).first
    expect(row).to_contain_text("2 of 5", timeout=LONG)
    row.click()
    figure = page.get_by_role("figure", name="HorovodAllreduce in each trace")
    expect(figure.get_by_role("link")).to_have_count(2)
    expect(figure.get_by_text("did not run")).to_have_count(3)
    picture(page, "run-ops")
    traced.has("op", "HorovodAllreduce")
    page.reload()
    expect(figure.get_by_role("link")).to_have_count(2, timeout=LONG)
    longest = {row["key"]: row["node"] for row in engine(OTHER_HOROVOD).ops("type")["rows"]}["HorovodAllreduce"]
    figure.get_by_role("link").last.click()
    expect(page).to_have_url(re.compile(rf"/traces/{IDS[OTHER_HOROVOD]}\?"), timeout=LONG)
    traced.painted()
    traced.has("node", longest)
    traced.has("tab", "ops")


def test_the_order_is_in_the_url_and_keys_choose_an_op(traced: TracePage) -> None:
    page = traced.page
    page.goto(f"{traced.base}/runs/1/ops?by=name")
    table = page.get_by_role("grid", name="Ops over traces, by node")
    rows(table)
    head = table.get_by_role("columnheader", name="Longest")
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    traced.has("sort", "-longest")
    expect(head).to_have_attribute("aria-sort", "descending")
    longest = max((row["total_ns"], row["key"]) for step in IDS for row in engine(step).ops("name")["rows"])[1]
    page.reload()
    assert longest in rows(table)[0].inner_text()
    table.focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("figure", name=f"{longest} in each trace")).to_be_visible(timeout=LONG)


def test_the_traces_of_a_run_sort_and_are_flagged(traced: TracePage) -> None:
    page = traced.page
    page.goto(f"{traced.base}/runs/1?sort=-nodes")
    table = page.get_by_role("grid", name="Traces of this run")
    counts = [int(row.get_by_role("gridcell").nth(6).inner_text().replace(",", "")) for row in rows(table)]
    assert counts == sorted(counts, reverse=True) and len(counts) == len(IDS)
    dense = table.get_by_role("row", name=re.compile("Open the trace of step 20")).first
    expect(dense).to_contain_text("by tracing every step")
    head = table.get_by_role("columnheader", name="Step", exact=True)
    head.get_by_role("button").click()
    head.get_by_role("button").click()
    assert parse_qs(urlsplit(page.url).query)["sort"] == ["step"]
    table.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/traces/{IDS[DENSE]}"), timeout=LONG)
