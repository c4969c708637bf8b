"""Sessions on the page: a run's steps, two traces beside each other, a second session, broken files, a server that comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.gallery import DATA, DENSE, HOROVOD, IDS, OTHER_HOROVOD, PS, write_gallery, write_session
from e2e.rig import RETRIES, Process, bearer, picture, start_viewer, tabs_of_a_trace
from e2e.tracepage import LONG, TracePage, engine
from playwright.sync_api import Page, expect

PS_TRACE = DATA / "ps_worker0_tf2.21_cpu.pb"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Process, str, Path]]:
    """A viewer for one test, which may change what it shows: (viewer, its URL, its file)."""
    file = write_session(tmp_path, "own.tftrace", {20: PS_TRACE.read_bytes()})
    viewer, url = start_viewer(tmp_path, file)
    yield viewer, url, file
    viewer.kill()


# --------------------------------------------------------------------------------------------------------- a run's steps


def test_a_run_shows_all_its_steps_and_a_traced_one_opens(traced: TracePage) -> None:
    page = traced.page
    page.goto(f"{traced.base}/runs/1")
    chart = page.get_by_role("img", name=re.compile("^Step times of"))
    expect(chart).to_be_visible(timeout=LONG)
    expect(page.get_by_text("from step 200 on")).to_be_visible(timeout=LONG)  # where the steps got slower
    for word in ("p50", "p95", "p99", "Shortest", "Longest", "A traced step took"):
        expect(page.get_by_text(word).first).to_be_visible()
    expect(page.locator("dt", has_text=re.compile("^Max$"))).to_be_visible()
    page.get_by_role("button", name="Show as table").click()
    table = page.get_by_role("grid", name="Step times")
    expect(table).to_have_attribute("aria-rowcount", "301", timeout=LONG)
    picture(page, "run", full=True)
    over = chart.locator(".u-over")
    box = over.bounding_box()
    assert box
    over.click(position={"x": box["width"] * (DENSE - 1) / 299, "y": box["height"] / 2})
    expect(page).to_have_url(re.compile(f"/traces/{IDS[DENSE]}"), timeout=LONG)
    traced.painted()


# ------------------------------------------------------------------------------------------------------------ two traces


def test_two_traces_beside_each_other(traced: TracePage) -> None:
    page = traced.page
    page.goto(f"{traced.base}/compare?a={IDS[HOROVOD]}&b={IDS[OTHER_HOROVOD]}")
    table = page.get_by_role("grid", name="Compared ops")
    expect(table.get_by_role("row").nth(1)).to_contain_text("HorovodAllreduce", timeout=LONG)
    both = page.get_by_role("region", name="Both timelines").locator("canvas")
    expect(both).to_have_count(2)
    a, b = (sum_of(step, "HorovodAllreduce") for step in (HOROVOD, OTHER_HOROVOD))
    sign = "+" if b > a else "−"
    expect(table.get_by_role("row").nth(1)).to_contain_text(sign)
    expect(table.get_by_role("row").nth(1)).to_contain_text("not told apart")  # few traces tell no change from chance
    longer = "B" if b > a else "A"
    expect(table.get_by_role("row").nth(1)).to_contain_text(f"the longest of {len(IDS)} traces is {longer}'s")
    others = len(IDS) - 2
    too_few = rf"That takes \d+ traces of the run beside these two; there are {others}\."
    expect(page.get_by_text(re.compile(too_few))).to_be_visible()
    expect(page.get_by_text(f"Compared with the run's {others} other traces.")).to_be_visible()
    table.get_by_role("row").nth(1).click()
    expect(page).to_have_url(re.compile(r"node=\d+.*nodeB=\d+|nodeB=\d+.*node=\d+"))
    picture(page, "compare", full=True)
    page.get_by_role("button", name="Swap").click()
    expect(page).to_have_url(re.compile(rf"a={IDS[OTHER_HOROVOD]}(&|$)"))
    expect(table.get_by_role("row").nth(1)).to_contain_text("−" if sign == "+" else "+", timeout=LONG)


def test_a_comparison_has_one_scale_lane_names_and_a_legend(traced: TracePage) -> None:
    page = traced.page
    page.goto(f"{traced.base}/compare?a={IDS[HOROVOD]}&b={IDS[PS]}")
    expect(page.get_by_role("grid", name="Compared ops").get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    widths = [
        box["width"] if (box := bar.bounding_box()) else 0.0
        for bar in page.get_by_role("region", name="Budgets").get_by_role("img").all()
    ]
    lengths = [engine(step).trace.duration_ns for step in (HOROVOD, PS)]
    assert widths[0] / widths[1] == pytest.approx(lengths[0] / lengths[1], rel=0.02)
    expect(page.get_by_role("list", name="Parts of the budget")).to_contain_text("Exposed communication")
    for side, step in zip("AB", (HOROVOD, PS)):
        names = page.get_by_role("list", name=f"Lanes of {side}")
        for lane in engine(step).layout.lanes:
            expect(names).to_contain_text(lane["title"])
    legend = page.get_by_role("list", name="Op types by time")
    for op in ("HorovodAllreduce", "RecvTensor", "MatMul"):
        expect(legend).to_contain_text(op)


def test_both_timelines_have_one_cursor_and_move_together(traced: TracePage) -> None:
    page = traced.page
    page.goto(f"{traced.base}/compare?a={IDS[HOROVOD]}&b={IDS[OTHER_HOROVOD]}")
    expect(page.get_by_role("grid", name="Compared ops").get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    a, b = (page.get_by_label(f"Timeline {side}") for side in "AB")
    line = """(canvas, share) => {
        const x = Math.round(canvas.width * share), { data } = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] === 194 && data[i + 1] === 65 && data[i + 2] === 12) count++;
        return count === canvas.height;
    }"""
    for canvas in (a, b):  # until it is painted it has a canvas's size, 300 pixels
        page.wait_for_function("canvas => canvas.width > 300", arg=canvas.element_handle(), timeout=LONG)
    box = a.bounding_box()
    assert box
    at = round(box["width"] / 2)
    assert not b.evaluate(line, at / box["width"])
    a.hover(position={"x": at, "y": 60})
    page.wait_for_function(
        f"([canvas, share]) => ({line})(canvas, share)", arg=[b.element_handle(), at / box["width"]], timeout=LONG
    )
    page.mouse.move(0, 0)
    page.wait_for_function(
        f"([canvas, share]) => !({line})(canvas, share)", arg=[b.element_handle(), at / box["width"]], timeout=LONG
    )
    still = [str(canvas.evaluate("canvas => canvas.toDataURL()")) for canvas in (a, b)]
    a.press("w", delay=100)  # the keys of one move both
    for canvas, was in zip((a, b), still):
        redrawn = "([canvas, was]) => canvas.toDataURL() !== was"
        page.wait_for_function(redrawn, arg=[canvas.element_handle(), was], timeout=LONG)


def test_what_appeared_and_what_vanished_between_two_sessions(page: Page, own: tuple[Process, str, Path], tmp_path: Path) -> None:
    """Two runs of two sessions, chosen from the list."""
    load_another(page, own[1], tmp_path)
    page.get_by_role("article").nth(0).get_by_role("checkbox").first.check()
    row = page.get_by_role("article").nth(1).get_by_role("row")
    row.filter(has=page.get_by_role("link", name=f"Open the trace of step {HOROVOD}", exact=True)).get_by_role("checkbox").check()
    page.get_by_role("link", name="Compare").click()
    table = page.get_by_role("grid", name="Compared ops")
    expect(table.get_by_role("row").nth(1)).to_be_visible(timeout=LONG)
    only = {step: {row["key"] for row in engine(step).ops("type")["rows"]} for step in (PS, HOROVOD)}
    box = page.get_by_label("Filter Compared ops")
    for word, first, second in (("appeared", PS, HOROVOD), ("vanished", HOROVOD, PS)):
        box.fill(word)
        expect(table).to_have_attribute("aria-rowcount", str(1 + len(only[second] - only[first])), timeout=LONG)


def load_another(page: Page, url: str, folder: Path) -> None:
    """A second session beside the one that the viewer has open."""
    page.goto(url.replace("?", "?order=seen&"))
    expect(page.get_by_role("article")).to_have_count(1, timeout=LONG)
    page.locator("input[type=file]").set_input_files(write_gallery(folder))
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)


def sum_of(step: int, op: str) -> float:
    return float(next(row["total_ns"] for row in engine(step).ops("type")["rows"] if row["key"] == op))


# ------------------------------------------------------------------------------------------ other sessions, broken files


def test_a_second_session_and_a_gpu_timeline_are_loaded(page: Page, own: tuple[Process, str, Path], tmp_path: Path) -> None:
    load_another(page, own[1], tmp_path)
    page.locator("input[type=file]").set_input_files(DATA / "gpu_timeline_tf1.json")
    expect(page.get_by_role("article")).to_have_count(3, timeout=LONG)
    page.get_by_role("article").nth(2).get_by_role("link", name=re.compile("^Open ")).click()
    expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("list", name="Lanes")).to_contain_text("GPU")
    expect(page.get_by_test_id("verdict").locator(".sentence").first).to_be_visible(timeout=LONG)
    for tab in tabs_of_a_trace("timeline"):  # which has no panel
        page.get_by_test_id(f"tab-{tab}").click()
        expect(page.get_by_role("tabpanel").locator("[role=grid], p").first).to_be_visible(timeout=LONG)
        expect(page.get_by_role("tabpanel").get_by_role("alert")).to_have_count(0)
    picture(page, "gpu")


@pytest.mark.parametrize("view", ["/", "/runs/1", "/traces/1", "/compare"])
def test_a_file_dropped_on_any_view_is_opened(page: Page, own: tuple[Process, str, Path], view: str) -> None:
    page.goto(own[1])
    page.goto(own[1].split("?")[0].rstrip("/") + view)
    expect(page.get_by_text("File", exact=True).first).to_be_visible(timeout=LONG)
    content = (DATA / "horovod_rank0_tf2.15_cpu.pb").read_bytes()
    carried = page.evaluate_handle(
        """bytes => {
            const carried = new DataTransfer();
            carried.items.add(new File([new Uint8Array(bytes)], "other.pb"));
            return carried;
        }""",
        list(content),
    )
    page.dispatch_event("main", "dragenter", {"dataTransfer": carried})
    expect(page.get_by_text("Drop the session file to open it here")).to_be_visible()
    page.dispatch_event("main", "drop", {"dataTransfer": carried})
    expect(page.get_by_role("article")).to_have_count(2, timeout=LONG)
    expect(page.get_by_role("article").nth(1)).to_contain_text("other.pb")


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "invalid").iterdir()))
def test_a_broken_file_is_refused_by_a_clear_word(page: Page, gallery: str, name: str) -> None:
    page.goto(gallery)
    expect(page.get_by_role("article")).to_have_count(1, timeout=LONG)
    page.locator("input[type=file]").set_input_files(DATA / "invalid" / name)
    message = page.get_by_role("list", name="Messages")
    expect(message).to_contain_text(re.compile(r"\w+ \w+ \w+"), timeout=LONG)
    expect(message).not_to_contain_text("Traceback")
    expect(page.get_by_role("article")).to_have_count(1)


# ------------------------------------------------------------------------------------------------- a connection that drops


def test_the_page_comes_back_when_its_server_does(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRACER_TOKEN", "the-same-token-each-time")
    file = write_session(tmp_path, "own.tftrace", {20: PS_TRACE.read_bytes()})
    viewer, url = start_viewer(tmp_path, file)
    port = re.findall(r":(\d+)", url)[0]
    try:
        page.goto(url)
        expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
        page.get_by_test_id("search").fill("RecvTensor")
        viewer.kill()
        expect(page.get_by_text("The connection is lost.")).to_be_visible(timeout=LONG)
        expect(page.get_by_test_id("search-count")).to_contain_text("found")  # what was received stays
        viewer, _ = start_viewer(tmp_path, file, "--port", port)
        expect(page.get_by_text("The connection is lost.")).to_have_count(0, timeout=LONG)
        expect(page.get_by_test_id("search")).to_have_value("RecvTensor")
        page.get_by_test_id("tab-ops").click()
        expect(page.get_by_role("tabpanel").get_by_role("gridcell").first).to_be_visible(timeout=LONG)
    finally:
        viewer.kill()


def test_what_is_opened_after_the_server_went_says_so_and_is_tried_again(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An analysis of an open trace, and another view."""
    monkeypatch.setenv("TFTRACER_TOKEN", "the-same-token-each-time")
    file = write_session(tmp_path, "own.tftrace", {20: PS_TRACE.read_bytes()})
    viewer, url = start_viewer(tmp_path, file)
    port = re.findall(r":(\d+)", url)[0]
    failed = page.get_by_role("alert").filter(has_text="could not be loaded")
    try:
        page.goto(url)
        expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
        viewer.kill()
        page.get_by_test_id("tab-ops").click()
        expect(failed).to_contain_text("The server does not answer", timeout=LONG)
        page.get_by_role("navigation").get_by_role("link", name="train").click()
        expect(failed.filter(has_text="This page")).to_be_visible(timeout=LONG)
        viewer, _ = start_viewer(tmp_path, file, "--port", port)
        retry = failed.filter(has_text="This page").get_by_role("button", name="Retry")
        for _ in range(100):  # on a busy machine the first answer of the new server may come too late
            if not retry.is_visible():
                break
            retry.click(timeout=LONG)
            page.wait_for_timeout(500)
        expect(page.get_by_role("heading", name="Step times")).to_be_visible(timeout=LONG)
        page.go_back()
        expect(page.get_by_role("tabpanel").get_by_role("gridcell").first).to_be_visible(timeout=LONG)
    finally:
        viewer.kill()


# -------------------------------------------------------------------------------------------------------- one file alone


def test_the_html_export_is_this_viewer_and_asks_nobody(page: Page, gallery: str, tmp_path: Path) -> None:
    base = gallery.split("?")[0].rstrip("/")
    file_url = f"{base}/api/traces/{IDS[PS]}/file?format=html"
    answer = page.context.request.get(file_url, headers=bearer(gallery), max_retries=RETRIES)
    file = tmp_path / "step.html"
    file.write_bytes(answer.body())
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    expect(page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
    page.get_by_test_id("search").fill("RecvTensor")
    expect(page.get_by_test_id("search-count")).to_contain_text("found", timeout=LONG)
    page.get_by_test_id("search").press("Enter")
    expect(page.get_by_test_id("details-name")).to_contain_text("RecvTensor", timeout=LONG)
    expect(page.get_by_test_id("verdict").locator(".sentence").first).to_be_visible()
    for tab in tabs_of_a_trace("timeline"):
        page.get_by_test_id(f"tab-{tab}").click()
        expect(page.get_by_role("tabpanel").locator("[role=grid], p, svg").first).to_be_visible(timeout=LONG)
        expect(page.get_by_role("tabpanel").get_by_role("alert")).to_have_count(0)
    assert not [url for url in asked if url.startswith("http")]
