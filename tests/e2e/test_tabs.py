"""Every analysis of every kind of trace in a browser: it opens with data, its rows lead to the timeline, its tables sort."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from e2e.gallery import COST, DENSE, HOROVOD, PS
from e2e.rig import picture, tabs_of_a_trace
from e2e.tracepage import LONG, TracePage, engine
from playwright.sync_api import Locator, Route, expect

#: What a tab says that has nothing to show of a trace.
WHY_NOTHING = re.compile("This (trace|step) (records|has|communicates|does not say)|No op of this trace")


def grid(traced: TracePage, name: str) -> Locator:
    """A table in the open tab, with its rows."""
    table = traced.panel.get_by_role("grid", name=name, exact=True)
    expect(table.get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    return table


def column(table: Locator, index: int) -> list[str]:
    """The texts of one column of the rows in sight."""
    return [row.get_by_role("gridcell").nth(index).inner_text() for row in table.get_by_role("row").all()[1:]]


# ------------------------------------------------------------------------------------------------ each tab of each trace


@pytest.mark.parametrize("step", [DENSE, COST, PS, HOROVOD])
def test_every_tab_opens(traced: TracePage, step: int) -> None:
    """With a table of the trace's own data, or with a word about why there is none."""
    traced.open(step)
    for tab in tabs_of_a_trace("timeline", "graph"):  # one has no panel, the other no table but a test of its own
        traced.page.get_by_test_id(f"tab-{tab}").click()
        traced.has("tab", tab)
        content = traced.panel.get_by_role("gridcell").or_(traced.panel.get_by_text(WHY_NOTHING))
        expect(content.first).to_be_visible(timeout=LONG)
        expect(traced.panel.get_by_role("alert")).to_have_count(0)
        picture(traced.page, f"{step}-{tab}")


def test_ops_are_those_of_the_engine(traced: TracePage) -> None:
    expected = engine(DENSE).ops("type")["rows"]
    traced.open(DENSE, tab="ops")
    table = grid(traced, "Ops by op type")
    assert column(table, 0)[: len(expected)] == [row["key"] for row in expected][: len(column(table, 0))]
    assert column(table, 1)[0] == f"{expected[0]['count']:,}"
    traced.panel.get_by_text("By scope").click()
    traced.has("by", "scope")
    scopes = {row["key"] for row in engine(DENSE).ops("scope")["rows"]}
    expect(grid(traced, "Ops by scope").get_by_text("gradients", exact=True)).to_be_visible(timeout=LONG)
    assert set(column(grid(traced, "Ops by scope"), 0)) <= scopes | {"(no scope)"}


def test_no_row_of_another_grouping_stands_under_the_new_one(traced: TracePage) -> None:
    held: list[Route] = []
    traced.page.route(re.compile(r"ops\?by=scope"), lambda route: held.append(route))  # a server that takes its time
    traced.open(DENSE, tab="ops")
    grid(traced, "Ops by op type")
    traced.panel.get_by_text("By scope").click()
    table = traced.panel.get_by_role("grid", name="Ops by scope", exact=True)
    expect(table).to_contain_text("Computing")
    expect(table.get_by_role("gridcell")).to_have_count(0)
    expect(table).to_have_attribute("aria-rowcount", "1")
    held[0].continue_()
    expect(table.get_by_text("gradients", exact=True)).to_be_visible(timeout=LONG)


def test_the_budget_adds_up(traced: TracePage) -> None:
    traced.open(PS, tab="budget")
    grid(traced, "Budget")
    whole = traced.panel.locator(".line", has_text="Whole step").locator("[style*=width]")
    shares = [float(re.search(r"width: ([\d.]+)%", part.get_attribute("style") or "")[1]) for part in whole.all()]
    assert len(shares) > 1 and sum(shares) == pytest.approx(100, abs=0.1)
    titles = column(grid(traced, "Budget"), 0)
    assert titles[0] == "Whole step" and len(titles) == 1 + len(engine(PS).budget()["devices"])


def test_the_critical_path_walks_the_timeline(traced: TracePage) -> None:
    traced.open(DENSE, tab="critical-path")
    table = grid(traced, "Critical path")
    path = {each["node"] for each in engine(DENSE).critical_path()["steps"]}
    table.get_by_role("row").nth(1).click()
    expect(traced.page).to_have_url(re.compile("node="))
    first = int(traced.parameter("node") or -1)
    table.press("ArrowDown")
    traced.has("tab", "critical-path")
    expect(traced.page).not_to_have_url(re.compile(rf"node={first}(&|$)"))
    assert {first, int(traced.parameter("node") or -1)} <= path
    expect(traced.page.get_by_test_id("details").get_by_text("critical path")).to_be_visible(timeout=LONG)


def test_memory_shows_the_peak_and_what_is_alive_at_the_cursor(traced: TracePage) -> None:
    traced.open(DENSE, tab="memory")
    grid(traced, "Tensors alive at the cursor")
    word = traced.panel.get_by_role("status").filter(has_text="alive; the")
    at_peak = re.compile(re.escape(word.inner_text().split(" alive")[0]))
    sums = re.search(r": (.+) alive; the .+ listed below hold (.+) of that", " ".join(word.inner_text().split()))
    assert sums and sums[1] == sums[2], "all that is alive is listed"
    slider = traced.panel.get_by_label("Time of the cursor")
    slider.press("Home")
    expect(word).not_to_have_text(at_peak)
    traced.panel.get_by_role("button", name="Go to the peak").click()
    expect(word).to_have_text(at_peak)
    traced.panel.get_by_role("button", name="Show on the timeline").click()
    peak = engine(DENSE).memory()["curves"][0]["peak_ns"]
    expect(traced.page).to_have_url(re.compile("range="))
    start, end = (float(t) for t in (traced.parameter("range") or "").split("-"))
    assert start <= peak <= end


def test_communication_lists_links_and_transfers(traced: TracePage) -> None:
    expected = engine(PS).communication()
    traced.open(PS, tab="communication")
    links = grid(traced, "Links")
    shown = {"/job:ps/replica:0/task:0/device:CPU:0": "ps/0 CPU:0", "/job:worker/replica:0/task:0/device:CPU:0": "worker/0 CPU:0"}
    assert column(links, 0) == [shown[link["source"]] for link in expected["links"]]
    matrix = traced.panel.get_by_role("table", name=re.compile("Bytes by link"))
    expect(matrix.get_by_role("button")).to_have_count(len(expected["links"]))
    heaviest = expected["links"][0]
    matrix.get_by_role("button").nth(0).click()
    expect(traced.page).to_have_url(re.compile("node="))
    assert int(traced.parameter("node") or -1) in {link["longest"] for link in expected["links"]}, heaviest
    transfers = grid(traced, "Transfers")
    transfers.get_by_role("row").nth(1).click()
    traced.selected(expected["transfers"][0]["node"])
    traced.details("RecvTensor" if expected["transfers"][0]["op"] == "RecvTensor" else expected["transfers"][0]["tensor"])


def test_collectives_of_horovod(traced: TracePage) -> None:
    traced.open(HOROVOD, tab="communication")
    collectives = grid(traced, "Collectives")
    assert all("HorovodAllreduce" in name for name in column(collectives, 0))
    assert set(column(collectives, 1)) == {"HorovodAllreduce"}


def test_the_roofline_is_a_plot_and_a_table(traced: TracePage) -> None:
    expected = engine(HOROVOD).roofline("name")
    traced.open(HOROVOD, tab="roofline")
    table = grid(traced, "Roofline by node")
    assert column(table, 0)[:5] == [row["key"] for row in expected["rows"][:5]]
    points = [row for row in expected["rows"] if row["flops_per_s"] > 0]
    expect(traced.panel.locator("circle")).to_have_count(len(points))
    best = re.compile(r"Best rates of \d traces of this run, not the machine's peak rates\.")
    expect(traced.panel.get_by_label("Roofs")).to_contain_text(best)
    expect(traced.panel.get_by_label("Roofs")).to_contain_text("tftracer roof --save")
    expect(traced.panel.locator(".titles")).to_contain_text("best reached, float32")
    small = traced.panel.locator("circle").last  # it lies above the others
    name = small.get_attribute("data-key")
    assert name
    small.hover()
    expect(traced.panel.locator("figcaption")).to_contain_text(f"{name}: ")
    small.click()
    traced.selected(next(row["node"] for row in points if row["key"] == name))
    traced.details(name)
    expect(traced.panel.locator("circle.selected")).to_have_attribute("data-key", name)
    expect(table.locator("[aria-selected=true]")).to_contain_text(name)
    traced.panel.get_by_text("By op type").click()
    types = engine(HOROVOD).roofline("type")["rows"]
    assert column(grid(traced, "Roofline by op type"), 0)[:3] == [row["key"] for row in types[:3]]
    picture(traced.page, "roofline")


def test_scheduling_delays(traced: TracePage) -> None:
    expected = engine(COST).scheduling()
    traced.open(COST, tab="scheduling")
    table = grid(traced, "Ops that waited longest")
    assert column(table, 1)[0] == expected["rows"][0]["name"]
    expect(traced.panel.locator(".histogram li")).to_have_count(len(expected["histogram_count"]))


def test_the_cost_graph_beside_what_was_measured(traced: TracePage) -> None:
    expected = engine(COST).cost()["rows"]
    traced.open(COST, tab="cost")
    assert column(grid(traced, "Cost graph"), 0)[0] == expected[0]["name"]


def test_the_graph_around_an_op_leads(traced: TracePage) -> None:
    node, _ = traced.longest(DENSE)
    traced.open(DENSE, tab="graph")
    expect(traced.panel).to_contain_text("Select an op")
    traced.click_slice(traced.middle_of(DENSE, node))
    around = engine(DENSE).neighbourhood(node)
    boxes = traced.panel.locator("g.box")
    expect(boxes).to_have_count(len(around["nodes"]), timeout=LONG)
    picture(traced.page, "graph")
    other = next(ref for ref in around["nodes"] if ref["node"] >= 0 and ref["node"] != node)
    title = f"{other['name']} ({other['op']}) on CPU:0"
    box = boxes.filter(has=traced.page.locator("title", has_text=title))
    box.first.press("Enter")
    traced.selected(other["node"])
    expect(boxes.filter(has=traced.page.locator("title", has_text=engine(DENSE).node(node)["name"])).first).to_be_visible()
    traced.page.go_back()
    traced.selected(node)
    box.first.press("Space")
    traced.selected(other["node"])


# -------------------------------------------------------------------------------------------- tables, and the other way


@pytest.mark.parametrize(("tab", "name"), [("critical-path", "Critical path"), ("communication", "Transfers")])
def test_columns_stand_under_their_heads(traced: TracePage, tab: str, name: str) -> None:
    traced.open(PS, tab=tab)
    rows = grid(traced, name).get_by_role("row")
    heads = [box["x"] for cell in rows.nth(0).get_by_role("columnheader").all() if (box := cell.bounding_box())]
    cells = [box["x"] for cell in rows.nth(1).get_by_role("gridcell").all() if (box := cell.bounding_box())]
    assert len(cells) > 4 and cells == heads


def test_tables_sort_by_a_click(traced: TracePage) -> None:
    expected = engine(DENSE).ops("type")["rows"]
    traced.open(DENSE, tab="ops")
    table = grid(traced, "Ops by op type")
    head = table.get_by_role("columnheader", name="Count")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    counts = [int(text.replace(",", "")) for text in column(table, 1)]
    assert counts == sorted((row["count"] for row in expected), reverse=True)[: len(counts)]
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    by_name = table.get_by_role("columnheader", name="Op type")
    by_name.get_by_role("button").click()
    expect(by_name).to_have_attribute("aria-sort", "ascending")
    names = column(table, 0)
    assert names == sorted(names, key=str.lower)


def test_a_table_is_filtered_and_the_timeline_is_not(traced: TracePage) -> None:
    length = engine(DENSE).trace.duration_ns
    traced.open(DENSE, tab="ops", range=f"0-{length}")
    table = grid(traced, "Ops by op type")
    counted = traced.page.get_by_test_id("range-count").inner_text()
    box = traced.panel.get_by_label("Filter Ops by op type")
    box.fill("matmul")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table.get_by_role("row").nth(1)).to_contain_text("MatMul")
    expect(traced.page.get_by_test_id("range-count")).to_have_text(counted)
    expect(traced.page.get_by_test_id("filters-active")).to_have_count(0)
    box.fill("/^Re/")
    wanted = [row["key"] for row in engine(DENSE).ops("type")["rows"] if row["key"].startswith("Re")]
    expect(table.get_by_role("row")).to_have_count(1 + len(wanted))
    assert sorted(column(table, 0)) == sorted(wanted)
    box.fill("/(/")
    expect(traced.panel.get_by_text("not a valid expression")).to_be_visible()


def test_a_table_is_copied_as_csv(traced: TracePage) -> None:
    traced.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    traced.open(DENSE, tab="ops")
    grid(traced, "Ops by op type")
    traced.panel.get_by_role("button", name="Copy CSV").click()
    expect(traced.page.get_by_text("copied", exact=False).first).to_be_visible(timeout=LONG)
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(traced.page.evaluate("navigator.clipboard.readText()"))))
    expected = engine(DENSE).ops("type")["rows"]
    assert [row["Op type"] for row in rows] == [row["key"] for row in expected]
    assert [float(row["Total (ns)"]) for row in rows] == [row["total_ns"] for row in expected]


def test_a_row_selects_on_the_timeline_and_the_timeline_its_row(traced: TracePage) -> None:
    rows = engine(PS).communication()["transfers"]
    traced.open(PS, tab="communication", node=rows[-1]["node"])
    table = grid(traced, "Transfers")
    chosen = table.locator('[role="row"][aria-selected="true"]')
    expect(chosen).to_have_count(1, timeout=LONG)
    expect(chosen).to_contain_text(rows[-1]["tensor"])
    table.scroll_into_view_if_needed()
    expect(chosen).to_be_in_viewport(timeout=LONG)
    table.get_by_role("row").nth(2).click()
    expect(traced.page).not_to_have_url(re.compile(rf"node={rows[-1]['node']}(&|$)"))
    assert int(traced.parameter("node") or -1) in {row["node"] for row in rows}
    expect(traced.page.get_by_test_id("announcement")).to_contain_text("RecvTensor")
