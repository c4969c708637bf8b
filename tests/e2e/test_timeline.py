"""The timeline by mouse and keys: looking closer, selecting, searching, filtering, ranges, lanes; each sum against the engine."""

from __future__ import annotations

import re

import numpy as np
import pytest
from e2e.gallery import DENSE, HOROVOD, PS
from e2e.tracepage import LONG, RULER, TracePage, engine
from playwright.sync_api import Page, expect

from tftracer.trace.model import NodeKind

#: The colours of the arrows in light colours.
FROM_INPUTS, TO_CONSUMERS = (47, 91, 234), (194, 65, 12)


def view_of(traced: TracePage) -> list[float]:
    """The part in view as the URL has it, when it has one."""
    expect(traced.page).to_have_url(re.compile(r"[?&]view=\d+-\d+"), timeout=LONG)
    return [float(t) for t in (traced.parameter("view") or "").split("-")]


def matches(step: int, text: str) -> int:
    """How many slices the engine's strings match: by name or op type, whatever the case."""
    trace = engine(step).trace
    pattern = re.compile(text, re.IGNORECASE)
    names = np.array([bool(pattern.search(name)) for name in trace.names])
    ops = np.array([bool(pattern.search(op)) for op in trace.ops])
    return int((names[trace.name] | ops[trace.op]).sum())


# ------------------------------------------------------------------------------------------------------------ selecting


def test_a_click_selects_shows_details_and_links_lead(traced: TracePage) -> None:
    traced.open(DENSE)
    node, name = traced.longest(DENSE)
    x = traced.middle_of(DENSE, node)
    traced.canvas.hover(position={"x": x, "y": RULER + 8})
    expect(traced.page.get_by_test_id("tooltip")).to_contain_text(name)
    traced.click_slice(x)
    traced.selected(node)
    details = traced.details(name)
    expected = engine(DENSE).node(node)
    expect(details).to_contain_text(expected["op"])
    expect(details).to_contain_text(expected["device_title"])
    outputs = details.locator(".outputs tr")
    expect(outputs).to_have_count(len(expected["outputs"]))
    for row, output in zip(outputs.all(), expected["outputs"]):
        expect(row).to_contain_text(f"{output['dtype']} {output['shape']}")
    for what in ("Start", "End", "In the op itself", "Scheduling delay", "Slack", "Of the step", f"Of all {expected['op']}"):
        expect(details.get_by_text(what, exact=True)).to_be_visible()
    expect(traced.page.get_by_test_id("announcement")).to_contain_text(name)

    consumer = next(ref for ref in expected["consumers"] if ref["node"] >= 0)
    traced.page.get_by_role("button", name=consumer["name"]).first.click()
    traced.selected(consumer["node"])
    details = traced.details(consumer["name"])
    assert any(ref["node"] == node for ref in engine(DENSE).node(consumer["node"])["inputs"])
    details.get_by_role("button", name=name).first.click()  # and back, as its input
    traced.selected(node)
    traced.page.get_by_test_id("side-close").click()
    traced.selected(None)


def test_arrows_lead_from_the_selected_op_to_its_consumers(traced: TracePage) -> None:
    node, name = traced.longest(DENSE)
    expected = engine(DENSE).node(node)
    assert expected["consumers"] and expected["inputs"]
    traced.open(DENSE)
    for some in (False, True, False):
        if some:
            traced.click_slice(traced.middle_of(DENSE, node))
            traced.details(name)
        else:
            traced.page.keyboard.press("Escape")
            traced.selected(None)
        traced.until_drawn(TO_CONSUMERS, some=some)
        traced.until_drawn(FROM_INPUTS, some=some)


# --------------------------------------------------------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("text", "regex"), [("MATMUL", False), ("^gradients/.*MatMul_\\d+_grad", True), ("nothing like it", False)]
)
def test_search_finds_and_counts(traced: TracePage, text: str, regex: bool) -> None:
    traced.open(DENSE)
    if regex:
        traced.page.get_by_test_id("search-regex").click()
    count = traced.search(text)
    wanted = matches(DENSE, text if regex else re.escape(text))
    expect(count).to_have_text(f"{wanted:,} found" if wanted else "nothing found", timeout=LONG)


def test_next_and_previous_walk_the_matches_in_time(traced: TracePage) -> None:
    traced.open(PS)
    trace = engine(PS).trace
    recv = [i for i in np.lexsort((np.arange(trace.n), trace.start)) if trace.ops[trace.op[i]] == "RecvTensor"]
    count = traced.search("RecvTensor")
    expect(count).to_have_text(f"{len(recv)} found", timeout=LONG)
    traced.page.get_by_test_id("search").press("Enter")
    expect(count).to_have_text(f"1 of {len(recv)}", timeout=LONG)
    traced.page.get_by_test_id("search-next").click()
    expect(count).to_have_text(f"2 of {len(recv)}", timeout=LONG)
    first = trace.start[recv[1]]
    assert trace.start[int(traced.parameter("node") or -1)] == first
    traced.page.get_by_test_id("search-previous").click()
    traced.page.get_by_test_id("search-previous").click()  # from the first on to the last
    expect(count).to_have_text(f"{len(recv)} of {len(recv)}", timeout=LONG)


def test_the_rest_is_dimmed(traced: TracePage) -> None:
    traced.open(DENSE)
    node, _ = traced.longest(DENSE)
    x = traced.middle_of(DENSE, node)
    trace = engine(DENSE).trace
    plain = traced.colour(x)
    expect(traced.search("RandomUniform")).to_contain_text("found", timeout=LONG)
    traced.until_colour(x, plain, same=False)
    expect(traced.search(trace.ops[trace.op[node]])).to_have_text(
        f"{matches(DENSE, trace.ops[trace.op[node]]):,} found", timeout=LONG
    )
    traced.until_colour(x, plain, same=True)


def test_a_broken_expression_is_said(traced: TracePage) -> None:
    traced.open(PS, q="(", regex=1)
    expect(traced.page.get_by_test_id("search-count")).to_have_text("not a valid expression", timeout=LONG)
    expect(traced.page.get_by_test_id("search")).to_have_attribute("aria-invalid", "true")


# --------------------------------------------------------------------------------------------------------------- ranges


def range_sums(step: int, start: float, end: float) -> tuple[int, float, dict[str, tuple[int, float]]]:
    """What the engine's columns hold between two times: (slices, ns inside, (slices, ns) by op type)."""
    trace = engine(step).trace
    inside = np.minimum(trace.end, end) - np.maximum(trace.start, start)
    touching = (trace.kind != NodeKind.REPEAT) & (trace.start < end) & (trace.end > start)
    by_op = {}
    for op in np.unique(trace.op[touching]):
        chosen = touching & (trace.op == op)
        by_op[trace.ops[op]] = (int(chosen.sum()), float(inside[chosen].sum()))
    return int(touching.sum()), float(inside[touching].sum()), by_op


@pytest.mark.parametrize("step", [DENSE, PS])
def test_a_dragged_range_sums_right(traced: TracePage, step: int) -> None:
    traced.open(step)
    box = traced.canvas.bounding_box()
    assert box
    traced.drag((box["width"] * 0.2, 8), (box["width"] * 0.7, 8))  # on the ruler
    panel = traced.page.get_by_test_id("range-panel")
    expect(panel).to_be_visible(timeout=LONG)
    start, end = (float(t) for t in (traced.parameter("range") or "").split("-"))
    length = engine(step).trace.duration_ns
    assert start == pytest.approx(0.194 * length, rel=0.03) and end == pytest.approx(0.704 * length, rel=0.03)

    count, total, by_op = range_sums(step, start, end)
    expect(panel.get_by_test_id("range-count")).to_have_text(f"{count:,}")
    assert float(panel.get_by_test_id("range-total").get_attribute("data-ns") or 0) == pytest.approx(total)
    rows = panel.get_by_role("grid", name="Op types in the range")
    heaviest = max(by_op, key=lambda op: by_op[op][1])
    first = rows.get_by_role("row").nth(1)
    expect(first).to_contain_text(heaviest)
    expect(first.get_by_role("gridcell").nth(1)).to_have_text(f"{by_op[heaviest][0]:,}")

    panel.get_by_role("button", name="Zoom to it").click()
    view = view_of(traced)
    assert view[0] <= start and view[1] >= end and view[1] - view[0] < 0.7 * length
    traced.page.get_by_test_id("range-clear").click()
    expect(panel).to_have_count(0)


def test_a_filter_hides_from_view_and_range(traced: TracePage) -> None:
    length = engine(DENSE).trace.duration_ns
    traced.open(DENSE, range=f"0-{length}")
    count, _, by_op = range_sums(DENSE, 0, length)
    shown = traced.page.get_by_test_id("range-count")
    expect(shown).to_have_text(f"{count:,}")
    traced.page.get_by_role("button", name="Filters").click()
    traced.page.get_by_label("Find an op type").fill("matm")
    traced.page.get_by_label("MatMul", exact=True).check()
    expect(shown).to_have_text(f"{by_op['MatMul'][0]:,}")
    expect(traced.page.get_by_test_id("filters-active")).to_have_text("1")
    traced.page.get_by_test_id("filter-least").fill("50")
    traced.page.get_by_test_id("filter-least").press("Tab")
    trace = engine(DENSE).trace
    long = (trace.end - trace.start >= 50_000) & (np.array([op == "MatMul" for op in trace.ops])[trace.op])
    expect(shown).to_have_text(f"{int(long.sum()):,}")
    traced.page.get_by_test_id("filters-clear").click()
    expect(shown).to_have_text(f"{count:,}")
    traced.page.get_by_test_id("filter-scope").fill("gradients")
    traced.page.get_by_test_id("filter-scope").press("Tab")
    scoped = np.array([name.startswith("gradients/") for name in trace.names])[trace.name]
    expect(shown).to_have_text(f"{int(scoped.sum()):,}")


def test_a_device_alone_is_shown(traced: TracePage) -> None:
    lanes = engine(PS).timeline()["lanes"]
    wanted = lanes[-1]["device"]
    traced.open(PS)
    traced.page.get_by_role("button", name="Filters").click()
    traced.page.get_by_role("group", name="Devices").locator(f'[title="{wanted}"]').get_by_role("checkbox").check()
    traced.page.keyboard.press("Escape")
    kept = [lane["id"] for lane in lanes if lane["device"] == wanted and lane["rows"]]
    expect(traced.page.get_by_role("list", name="Lanes").get_by_role("listitem")).to_have_count(len(kept))
    for lane in kept:
        expect(traced.page.get_by_test_id(f"lane-{lane}")).to_be_attached()
    assert 0 < len(kept) < len(lanes)


# ----------------------------------------------------------------------------------------------------- looking closer


def test_keys_zoom_pan_and_fit(traced: TracePage) -> None:
    traced.open(DENSE)
    length = engine(DENSE).trace.duration_ns
    keyboard = traced.page.keyboard

    def hold(key: str) -> list[float]:
        before = traced.page.url
        keyboard.press(key, delay=100)
        expect(traced.page).not_to_have_url(before, timeout=LONG)
        return view_of(traced)

    traced.canvas.focus()
    near = hold("w")
    assert near[1] - near[0] < length
    right = hold("d")
    assert right[0] > near[0]
    left = hold("a")
    assert left[0] < right[0]
    keyboard.press("f")
    traced.has("view", None)
    traced.canvas.hover(position={"x": 300, "y": 60})
    traced.page.mouse.wheel(0, -400)
    wheeled = view_of(traced)
    assert wheeled[1] - wheeled[0] < length
    hold("s")
    traced.page.get_by_test_id("fit").click()
    traced.has("view", None)


def test_keys_walk_from_op_to_op(traced: TracePage) -> None:
    node, name = traced.longest(DENSE)
    traced.open(DENSE, node=node)
    traced.details(name)
    answers = engine(DENSE)
    row = list(answers.layout.order[: answers.layout.row_offsets[1]])
    at = row.index(node)
    keyboard = traced.page.keyboard
    traced.canvas.focus()
    keyboard.press("]")
    traced.selected(int(row[at + 1]))
    keyboard.press("[")
    traced.selected(node)
    keyboard.press("z")
    view = view_of(traced)
    trace = answers.trace
    assert view[0] <= trace.start[node] < trace.end[node] <= view[1]
    keyboard.press("Alt+ArrowDown")
    expect(traced.page).not_to_have_url(re.compile(f"node={node}(&|$)"))
    keyboard.press("Escape")
    traced.selected(None)
    keyboard.press("/")
    expect(traced.page.get_by_test_id("search")).to_be_focused()
    keyboard.type("MatMul")
    keyboard.press("Escape")
    expect(traced.page.get_by_test_id("search")).to_have_value("")
    keyboard.press("Escape")
    expect(traced.canvas).to_be_focused()
    keyboard.press("?")
    help_list = traced.page.get_by_test_id("keys-help")
    expect(help_list).to_contain_text("Fit the whole step")
    keyboard.press("Escape")
    expect(help_list).to_have_count(0)


def test_dragging_pans_and_two_fingers_zoom(traced: TracePage) -> None:
    traced.open(DENSE, view="10000000-20000000")
    traced.drag((700, 60), (400, 60))
    expect(traced.page).not_to_have_url(re.compile("view=10000000-"), timeout=LONG)
    panned = view_of(traced)
    assert panned[0] > 10_000_000 and panned[1] - panned[0] == pytest.approx(10_000_000, rel=0.01)
    traced.selected(None)  # to drag is not to click
    box = traced.canvas.bounding_box()
    assert box
    fingers = traced.page.context.new_cdp_session(traced.page)

    def touch(kind: str, *xs: float) -> None:
        points = [{"x": box["x"] + x, "y": box["y"] + 60, "id": finger} for finger, x in enumerate(xs)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 400, 600)
    touch("touchMove", 350, 650)
    touch("touchMove", 300, 700)
    touch("touchEnd")
    expect(traced.page).not_to_have_url(re.compile(f"view={panned[0]:.0f}-"), timeout=LONG)
    near = view_of(traced)
    assert near[1] - near[0] == pytest.approx((panned[1] - panned[0]) / 2, rel=0.1)
    assert panned[0] < near[0] and near[1] < panned[1]


def test_double_click_and_the_minimap(traced: TracePage) -> None:
    traced.open(DENSE)
    node, _ = traced.longest(DENSE)
    x = traced.middle_of(DENSE, node)
    traced.canvas.dblclick(position={"x": x, "y": RULER + 8})
    near = view_of(traced)
    trace = engine(DENSE).trace
    assert near[0] <= trace.start[node] and near[1] >= trace.end[node] and near[1] - near[0] < 3 * (trace.end - trace.start)[node]
    box = traced.page.get_by_test_id("minimap").bounding_box()
    assert box
    traced.page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2)
    expect(traced.page).not_to_have_url(re.compile(f"view={int(near[0])}-"))
    moved = view_of(traced)
    assert moved[0] > near[1] and moved[1] - moved[0] == pytest.approx(near[1] - near[0], rel=0.1)


# ---------------------------------------------------------------------------------------------------------------- lanes


def test_lanes_fold_pin_and_change_places(traced: TracePage) -> None:
    traced.page.set_viewport_size({"width": 1440, "height": 1300})  # a pinned lane of thirty rows leaves room for others
    traced.open(PS)
    lanes = engine(PS).timeline()["lanes"]
    first, second = lanes[0], lanes[1]
    header = traced.page.get_by_test_id(f"lane-{first['id']}")
    fold = header.get_by_role("button", name="fold; Alt and arrows reorder")
    expect(fold).to_have_attribute("aria-expanded", "true")
    fold.click()
    expect(fold).to_have_attribute("aria-expanded", "false")
    traced.has("fold", first["id"])
    other = traced.page.get_by_test_id(f"lane-{second['id']}")
    pin = other.get_by_role("button", name=re.compile("^Pin"))
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "true")
    assert tops(traced.page, second["id"]) < tops(traced.page, first["id"])
    pin.click()
    assert tops(traced.page, second["id"]) > tops(traced.page, first["id"])
    fold.focus()
    traced.page.keyboard.press("Alt+ArrowDown")
    expect(traced.page).to_have_url(re.compile("order="))
    assert tops(traced.page, second["id"]) < tops(traced.page, first["id"])
    traced.page.reload()
    traced.painted()
    expect(fold).to_have_attribute("aria-expanded", "false")
    assert tops(traced.page, second["id"]) < tops(traced.page, first["id"])
    spelled = traced.parameter("order")
    other.drag_to(header)
    expect(traced.page).not_to_have_url(re.compile(f"order={spelled}"))
    assert tops(traced.page, second["id"]) > tops(traced.page, first["id"])


def tops(page: Page, lane: int) -> float:
    box = page.get_by_test_id(f"lane-{lane}").bounding_box()
    assert box
    return box["y"]


def test_a_lane_says_its_name_when_its_first_rows_are_scrolled_away(traced: TracePage) -> None:
    traced.page.set_viewport_size({"width": 1440, "height": 640})
    traced.open(HOROVOD)
    expect(traced.page.get_by_test_id("verdict").get_by_role("listitem").first).to_be_visible(timeout=LONG)  # takes room
    name = traced.page.get_by_test_id("lane-1").locator(".title")
    expect(name).to_be_in_viewport()
    before = name.bounding_box()
    traced.canvas.hover(position={"x": 300, "y": 100})
    for _ in range(3):
        traced.page.mouse.wheel(0, 80)
    expect(traced.page).to_have_url(re.compile(r"[?&]row=\d+"), timeout=LONG)
    expect(name).to_be_in_viewport(ratio=1)
    after, canvas = name.bounding_box(), traced.canvas.bounding_box()
    assert before and after and canvas
    assert canvas["y"] + RULER <= after["y"] < before["y"]
    assert traced.page.get_by_test_id("lane-1").bounding_box()["y"] < canvas["y"]


@pytest.mark.parametrize("highlight", ["communication", "critical", "idle", "copies"])
def test_highlights_dim_the_rest(traced: TracePage, highlight: str) -> None:
    traced.open(HOROVOD)
    before = traced.drawn()
    traced.page.get_by_test_id("highlight").select_option(highlight)
    traced.has("highlight", highlight)
    traced.until_redrawn(before)
