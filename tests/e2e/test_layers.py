"""The layers of a step in a browser: what is drawn is what the engine says, by mouse and by keys, and it leads to the ops."""

from __future__ import annotations

import re

from e2e.gallery import COST, DENSE
from e2e.rig import picture
from e2e.tracepage import LONG, TracePage, engine
from playwright.sync_api import Locator, expect


def boxes(traced: TracePage, name: str = "Layers by time") -> Locator:
    """The boxes of the flame graph, once they are there."""
    found = traced.panel.get_by_role("tree", name=name).get_by_role("treeitem")
    expect(found.first).to_be_visible(timeout=LONG)
    return found


def largest(step: int) -> str:
    """The outermost layer with the most time."""
    return next(layer["name"] for layer in engine(step).layers()["layers"] if layer["parent"] < 0)


def test_a_layer_is_looked_at_closer_and_its_ops_are_found(traced: TracePage) -> None:
    traced.open(COST, tab="layers")
    all_boxes, name = boxes(traced), largest(COST)
    shown = all_boxes.count()
    expect(all_boxes.first).to_have_attribute("aria-label", re.compile(rf"{name}: .*%.* \(forward .*, backward .*\)"))
    picture(traced.page, "layers")
    all_boxes.first.click()
    expect(all_boxes.first).to_have_attribute("aria-label", re.compile(f"^{name}: "))
    expect(all_boxes).not_to_have_count(shown)
    expect(traced.panel.get_by_role("row", selected=True)).to_contain_text(name)
    traced.panel.get_by_role("button", name="Show all").click()
    expect(all_boxes).to_have_count(shown)
    traced.panel.get_by_role("grid", name="Layers by time").get_by_role("row").nth(1).click()
    expect(traced.panel.get_by_role("button", name="Show its ops")).to_be_visible()
    traced.panel.get_by_role("button", name="Show all").click()
    expect(all_boxes).to_have_count(shown)
    all_boxes.first.focus()
    traced.panel.get_by_role("button", name="Show its ops").click()
    traced.has("tab", "ops")
    rows = traced.panel.get_by_role("grid", name="Ops by node").get_by_role("row")
    expect(rows.filter(has_text=f"gradients/{name}_grad").first).to_be_visible(timeout=LONG)
    names = [row.get_by_role("gridcell").first.inner_text() for row in rows.all()[1:]]
    assert len(names) > 1 and all(re.search(rf"(^|/){name}(_grad)?(/|$)", each) for each in names)
    traced.page.go_back()
    traced.has("tab", "layers")


def test_layers_are_walked_and_opened_by_keys(traced: TracePage) -> None:
    traced.open(DENSE, tab="layers")
    all_boxes = boxes(traced)
    shown = all_boxes.count()
    first = all_boxes.first.get_attribute("aria-label") or "-"
    focused = traced.panel.locator("[role=treeitem]:focus")
    all_boxes.first.focus()
    expect(traced.panel.get_by_text(first, exact=True)).to_be_visible()
    focused.press("ArrowRight")
    expect(focused).to_have_attribute("aria-level", "1")
    expect(focused).not_to_have_attribute("aria-label", first)
    expect(traced.panel.get_by_text(focused.get_attribute("aria-label") or "-", exact=True)).to_be_visible()
    focused.press("Enter")
    expect(all_boxes).not_to_have_count(shown)
    expect(focused).to_have_count(1)
    focused.press("Escape")
    expect(all_boxes).to_have_count(shown)


def test_the_search_dims_what_it_does_not_find_and_adds_up_what_it_does(traced: TracePage) -> None:
    traced.open(COST, tab="layers")
    boxes(traced)
    name = largest(COST)
    traced.panel.get_by_label("Search layers").fill(f"/^{name}$/")
    traced.has("layer", f"/^{name}$/")
    expect(traced.panel.get_by_role("status").filter(has_text="1 found")).to_contain_text("%")
    tree = traced.panel.get_by_role("tree")
    expect(tree.locator(".box:not(.other)")).to_have_count(1)
    rows = traced.panel.get_by_role("grid", name="Layers by time").get_by_role("row")
    expect(rows).to_have_count(2)
    traced.panel.get_by_label("Search layers").fill("/(/")
    expect(traced.panel.get_by_text("not a valid expression")).to_be_visible()
    expect(tree.locator(".other")).to_have_count(0)


def test_memory_by_layer_and_the_table_sorts(traced: TracePage) -> None:
    answer = engine(DENSE).layers("memory")
    traced.open(DENSE, tab="layers")
    boxes(traced)
    traced.panel.get_by_text("Memory at the peak").click()
    traced.has("of", "memory")
    boxes(traced, "Layers by memory at the peak")
    expect(traced.panel).to_contain_text(f"at the peak of {answer['allocator']}")
    table = traced.panel.get_by_role("grid", name="Layers by memory at the peak")
    head = table.get_by_role("columnheader", name="Variables")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    variables = answer["phases"].index("variables")
    most = max(layer["own"][variables] for layer in answer["layers"])
    largest_of = [layer["name"] for layer in answer["layers"] if layer["own"][variables] == most]
    expect(table.get_by_role("row").nth(1)).to_contain_text(re.compile("|".join(largest_of)))
    picture(traced.page, "layers-memory")
