"""Names that try to be HTML or script are text everywhere: in the page, in what it exports, in what it loads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.gallery import write_session
from e2e.rig import RETRIES, bearer, start_viewer, tabs_of_a_trace
from e2e.tracepage import LONG
from playwright.sync_api import Page, expect

from tftracer.trace.decode.descriptors import message_class

IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script>"
#: Op types end at a parenthesis.
OP = "<img src=x onerror=alert`3`>"
QUOTES = "\"'><svg onload=alert(3)>"
DEVICE = "/job:<b>worker</b>/replica:0/task:0/device:CPU:0"
NOTE = f"{SCRIPT} {IMAGE} {QUOTES} {{{{constructor.constructor('alert(4)')()}}}} javascript:alert(5)"
#: What each tab shows of these names. The timeline is drawn on a canvas; ``walk`` looks at what stands around it.
TABS = {
    "ops": OP,
    "layers": IMAGE,
    "budget": "<b>worker",  # a task's short name is cut at slashes
    "critical-path": IMAGE,
    "roofline": IMAGE,
    "memory": IMAGE,
    "communication": SCRIPT,
    "scheduling": IMAGE,
    "graph": "<img",
    "cost": IMAGE,
}


def hostile_trace() -> bytes:
    """Three ops, one scope, one transfer and a device, all of which would rather be elements."""
    metadata = message_class("RunMetadata")()
    device = metadata.step_stats.dev_stats.add(device=DEVICE)
    graph = metadata.partition_graphs.add()
    named = [
        (f"{IMAGE}/{SCRIPT}", OP, ""),
        (f"{SCRIPT}/{QUOTES}", "</script><script>alert`4`", f"{IMAGE}/{SCRIPT}"),
        (QUOTES, "Relu", SCRIPT),
    ]
    for place, (name, op, of) in enumerate(named):
        node = device.node_stats.add(node_name=name, timeline_label=f"{name} = {op}({of})")
        node.all_start_micros, node.op_end_rel_micros, node.all_end_rel_micros = 1_000_000 + 400 * place, 390, 400
        node.scheduled_micros = node.all_start_micros - 50
        graph.node.add(name=name, op=op, device=DEVICE, input=[named[place - 1][0]] if place else [])
        metadata.cost_graph.node.add(name=name, id=place, device=DEVICE, compute_cost=300)
        memory = node.memory.add(allocator_name=IMAGE, total_bytes=4096, peak_bytes=4096)
        memory.allocation_records.add(alloc_micros=1_000_000 + 400 * place, alloc_bytes=4096)
        tensor = node.output.add(slot=0).tensor_description
        tensor.dtype = 1  # float32
        tensor.shape.dim.add(size=1024)
        held = tensor.allocation_description
        held.allocator_name, held.allocated_bytes, held.requested_bytes, held.ptr = SCRIPT, 4096, 4096, 4096 * (place + 1)
    other = f"/job:{SCRIPT}/replica:0/task:0/device:CPU:0"
    for place, (source, destination) in enumerate([(DEVICE, other), (other, DEVICE)]):
        label = f"[16384B] [1.4Gb/s] edge_1_{IMAGE} from {source} to {destination}"
        received = device.node_stats.add(node_name="RecvTensor", timeline_label=label)
        received.all_start_micros, received.all_end_rel_micros = 1_000_300 + 10 * place, 700
    return bytes(metadata.SerializeToString())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("hostile")
    name = "<img src=x onerror=alert(6)>.tftrace"
    traces = {20: hostile_trace(), 40: hostile_trace()}
    fetches, feeds = (f"{IMAGE}:0", SCRIPT), (f"{QUOTES}:0", f"{SCRIPT}:0")
    file = write_session(folder, name, traces, fetches, feeds, host=IMAGE, command=f"train.py {SCRIPT}")
    viewer, url = start_viewer(folder, file)
    yield url
    viewer.kill()


def test_no_tab_is_forgotten() -> None:
    assert list(TABS) == tabs_of_a_trace("timeline")


def unharmed(page: Page) -> None:
    """No element of any name was made; that nothing ran is watched by the context (alerts, errors, broken rules)."""
    expect(page.locator("img, svg[onload], [onerror], body b:text('worker'), iframe, a[href^='javascript']")).to_have_count(0)
    inline = page.locator("script:not([src])").all_inner_texts()
    assert not any(text.startswith("alert") for text in inline)


def test_in_every_view(page: Page, hostile: str) -> None:
    page.goto(hostile)
    expect(page.get_by_text(IMAGE).first).to_be_visible(timeout=LONG)
    expect(page.get_by_text(".tftrace").first).to_contain_text("onerror=alert(6)")
    expect(page.get_by_role("heading", level=1)).to_contain_text(SCRIPT)
    expect(page).to_have_title(re.compile(re.escape(IMAGE)))
    unharmed(page)
    page.locator("input[type=file]").set_input_files({"name": f"{IMAGE}.pb", "mimeType": "", "buffer": b"no trace"})
    expect(page.get_by_role("list", name="Messages")).to_contain_text(IMAGE)
    unharmed(page)
    page.get_by_role("button", name=re.compile("Add a note")).last.click()
    page.get_by_label("Note on trace 1").fill(NOTE)
    page.get_by_label("Note on trace 1").press("Enter")
    expect(page.get_by_text(NOTE)).to_be_visible(timeout=LONG)
    page.get_by_role("article").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img", timeout=LONG)
    page.get_by_text("2 fetched, 2 fed").click()
    expect(page.get_by_text(QUOTES).last).to_be_visible()
    unharmed(page)
    page.get_by_role("link", name="Open the trace of step 20").click()
    walk(page)
    page.goto(hostile.split("?")[0] + "compare?a=1&b=2")
    expect(page.get_by_role("grid").get_by_text(OP)).to_be_visible(timeout=LONG)
    page.get_by_text("By node").click()
    expect(page.get_by_role("grid").get_by_text(f"{IMAGE}/{SCRIPT}")).to_be_visible(timeout=LONG)
    page.get_by_label("Timeline A").hover(position={"x": 100, "y": 36})
    expect(page.locator("figcaption").first).to_contain_text("<img")
    unharmed(page)


def walk(page: Page) -> None:
    """The trace's page whole: the timeline, its tooltip, an op's details, a range, each tab, search and filters."""
    canvas = page.locator("canvas[data-painted]")
    expect(canvas).to_be_visible(timeout=LONG)
    canvas.focus()
    page.keyboard.press("]")
    expect(page.get_by_test_id("details-name")).to_have_text(re.compile(re.escape(IMAGE)), timeout=LONG)
    details = page.get_by_test_id("details")
    expect(details.get_by_text(DEVICE).first).to_be_visible()
    expect(details.get_by_text(SCRIPT).first).to_be_visible()
    canvas.hover(position={"x": 100, "y": 36})
    expect(page.get_by_test_id("tooltip")).to_contain_text("<img")
    drag_over_the_ruler(page)
    expect(page.get_by_role("grid", name="Op types in the range").get_by_text(OP)).to_be_visible(timeout=LONG)
    unharmed(page)
    page.locator(".side > .head").get_by_role("button", name="Op").click()
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label(OP, exact=True)).to_be_attached()
    unharmed(page)
    page.keyboard.press("Escape")
    page.get_by_test_id("search").fill(QUOTES)
    expect(page.get_by_test_id("search-count")).to_have_text("2 found", timeout=LONG)
    panel = page.get_by_role("tabpanel")
    for tab, shown in TABS.items():
        page.get_by_test_id(f"tab-{tab}").click()
        expect(panel.get_by_text(shown).first).to_be_attached(timeout=LONG)
        unharmed(page)
    expect(page.get_by_test_id("note-shown")).to_have_text(NOTE)


def drag_over_the_ruler(page: Page) -> None:
    box = page.get_by_test_id("timeline-canvas").bounding_box()
    assert box
    page.mouse.move(box["x"] + 5, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 8, steps=3)
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 8)
    page.mouse.up()


def test_in_the_html_export(page: Page, hostile: str, tmp_path: Path) -> None:
    base = hostile.split("?")[0].rstrip("/")
    headers = bearer(hostile)
    page.context.request.put(f"{base}/api/traces/1/note", data={"note": NOTE}, headers=headers, max_retries=RETRIES)
    answer = page.context.request.get(f"{base}/api/traces/1/file?format=html", headers=headers, max_retries=RETRIES)
    file = tmp_path / "step.html"
    file.write_bytes(answer.body())
    page.goto(file.as_uri())
    walk(page)
