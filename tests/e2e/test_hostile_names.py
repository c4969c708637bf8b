"""Names that try to be HTML or script are text everywhere: in the page, in what it exports, in what it loads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gallery import write_session
from playwright.sync_api import Page, expect
from rig import RETRIES, start_viewer
from tracepage import LONG

from tftracer.trace.descriptors import message_class

IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script>"
#: Op types end at a parenthesis.
OP = "<img src=x onerror=alert`3`>"
QUOTES = "\"'><svg onload=alert(3)>"
DEVICE = "/job:<b>worker</b>/replica:0/task:0/device:CPU:0"
NOTE = f"{SCRIPT} {IMAGE} {QUOTES} {{{{constructor.constructor('alert(4)')()}}}} javascript:alert(5)"
TABS = ["ops", "budget", "critical-path", "memory", "communication", "scheduling", "graph", "cost"]


def hostile_trace() -> bytes:
    """Three ops, one scope, one transfer and a device, all of which would rather be elements."""
    metadata = message_class("RunMetadata")()
    device = metadata.step_stats.dev_stats.add(device=DEVICE)
    named = [
        (f"{IMAGE}/{SCRIPT}", OP, ""),
        (f"{SCRIPT}/{QUOTES}", "</script><script>alert`4`", f"{IMAGE}/{SCRIPT}"),
        (QUOTES, "Relu", SCRIPT),
    ]
    for place, (name, op, of) in enumerate(named):
        node = device.node_stats.add(node_name=name, timeline_label=f"{name} = {op}({of})")
        node.all_start_micros, node.op_end_rel_micros, node.all_end_rel_micros = 1_000_000 + 400 * place, 390, 400
        memory = node.memory.add(allocator_name=IMAGE, total_bytes=4096, peak_bytes=4096)
        memory.allocation_records.add(alloc_micros=1_000_000 + 400 * place, alloc_bytes=4096)
        node.output.add(slot=0).tensor_description.allocation_description.allocator_name = SCRIPT
    label = f"[16384B] [1.4Gb/s] edge_1_{IMAGE} from {DEVICE} to /job:{SCRIPT}/replica:0/task:0/device:CPU:0"
    received = device.node_stats.add(node_name="RecvTensor", timeline_label=label)
    received.all_start_micros, received.all_end_rel_micros = 1_000_300, 700
    return bytes(metadata.SerializeToString())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("hostile")
    name = "<img src=x onerror=alert(6)>.tftrace"
    file = write_session(folder, name, {20: hostile_trace()}, (f"{IMAGE}:0", SCRIPT), (f"{QUOTES}:0",))
    viewer, url = start_viewer(folder, file)
    yield url
    viewer.kill()


def unharmed(page: Page) -> None:
    """No element of any name was made; that nothing ran is watched by the context."""
    expect(page.locator("img, svg[onload], [onerror], body b:text('worker'), iframe")).to_have_count(0)
    inline = page.locator("script:not([src])").all_inner_texts()
    assert not any(text.startswith("alert") for text in inline)


def test_in_every_view(page: Page, hostile: str) -> None:
    page.goto(hostile)
    expect(page.get_by_text(IMAGE).first).to_be_visible(timeout=LONG)
    expect(page.get_by_text(".tftrace").first).to_contain_text("onerror=alert(6)")
    unharmed(page)
    page.get_by_role("button", name=re.compile("Add a note")).click()
    page.get_by_label("Note on trace 1").fill(NOTE)
    page.get_by_label("Note on trace 1").press("Enter")
    expect(page.get_by_text(NOTE)).to_be_visible(timeout=LONG)
    page.get_by_role("article").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img", timeout=LONG)
    unharmed(page)
    page.get_by_role("link", name="Open the trace of step 20").click()
    walk(page)
    expect(page.get_by_test_id("note-shown")).to_have_text(NOTE)
    page.goto(hostile.split("?")[0] + "compare?a=1&b=1")
    expect(page.get_by_role("grid").get_by_text(OP)).to_be_visible(timeout=LONG)
    unharmed(page)


def walk(page: Page) -> None:
    """The trace's page whole: the timeline, its tooltip, an op's details, each tab, search and filters."""
    canvas = page.locator("canvas[data-painted]")
    expect(canvas).to_be_visible(timeout=LONG)
    canvas.focus()
    page.keyboard.press("]")
    expect(page.get_by_test_id("details-name")).to_have_text(re.compile(re.escape(IMAGE)), timeout=LONG)
    canvas.hover(position={"x": 100, "y": 36})
    expect(page.get_by_test_id("tooltip")).to_contain_text("<img")
    unharmed(page)
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label(OP, exact=True)).to_be_attached()
    unharmed(page)
    page.keyboard.press("Escape")
    page.get_by_test_id("search").fill(QUOTES)
    expect(page.get_by_test_id("search-count")).to_have_text("2 found", timeout=LONG)
    for tab in TABS:
        page.get_by_test_id(f"tab-{tab}").click()
        expect(page.get_by_role("tabpanel").locator("p, dl, svg, [role=grid]").first).to_be_visible(timeout=LONG)
        unharmed(page)
    page.get_by_test_id("tab-ops").click()
    expect(page.get_by_role("tabpanel").get_by_text(OP)).to_be_visible(timeout=LONG)


def test_in_the_html_export(page: Page, hostile: str, tmp_path: Path) -> None:
    base = hostile.split("?")[0].rstrip("/")
    page.context.request.get(hostile, max_retries=RETRIES)
    answer = page.context.request.get(f"{base}/api/traces/1/file?format=html", max_retries=RETRIES)
    file = tmp_path / "step.html"
    file.write_bytes(answer.body())
    page.goto(file.as_uri())
    walk(page)
