"""The page at four sizes, beside the original's at three of them, in the same run: headless Chromium, software raster.

For each size: the time from the click on the trace (from a fresh server, which must decode first) to the painted timeline; what
came over the wire until then; what the page's process holds; and the times between frames while real input events pan and zoom,
with the counters drawn under the lanes and with these folded away. Then the time from the click on *Layers* to the flame graph.
The original has to make its page first (``visualize()``), then Chromium draws it: both count, as its reader waits for both.

    python benchmarks/bench_page.py [NODES...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from environments import ROOT, environment
from playwright.sync_api import Browser, Page, sync_playwright
from repeated_trace import ORIGINAL, trace_of

SIZES = (1_609, 8_009, 96_108, 1 << 20)
BESIDE = 96_108  # the original is asked up to here; at 2^20 its page does not open
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_S = 300
#: Notes when a link was clicked, as the page's own clock has it.
CLICKED = "addEventListener('click', () => { window.clickedAt = performance.now() }, true)"
FRAMES = """() => {
  window.frames_ms = []; let last = 0;
  const step = (now) => { if (last) frames_ms.push(now - last); last = now; window.framing = requestAnimationFrame(step) };
  window.framing = requestAnimationFrame(step);
}"""
FRAMES_END = "() => { cancelAnimationFrame(window.framing); return window.frames_ms }"
#: Clicks on the tab, and tells after how many ms the flame graph is in a frame.
LAYERS = """() => new Promise((resolve) => {
  const clicked = performance.now();
  document.querySelector('[data-testid=tab-layers]').click();
  const drawn = () => document.querySelector('[role=tree] [role=treeitem]') !== null;
  const look = () => requestAnimationFrame(drawn() ? () => resolve(performance.now() - clicked) : look);
  look();
})"""
#: The original's page is drawn when Bokeh says that each of its views has finished.
BOKEH_DONE = """() => {
  if (!window.Bokeh || !Bokeh.index) return false;
  const views = Object.values(Bokeh.index);
  return views.length > 0 && views.every((view) => view.has_finished()) && document.querySelector('canvas') !== null
}"""


@dataclass
class Result:
    who: str
    nodes: int
    server_s: float  # before the browser got its page; 0 where that is part of painted_s
    painted_s: float
    transferred: int
    memory: int
    frames_ms: list[float]
    layers_s: float | None = None

    @property
    def seconds(self) -> float:
        return self.server_s + self.painted_s

    def row(self) -> str:
        ordered = sorted(self.frames_ms)
        p50, p95 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.95))
        return (
            f"{self.nodes:>9,}  {self.who:<9} {self.seconds:>8.2f} s {self.transferred / 1e6:>9.2f} MB "
            f"{self.memory / 2**20:>7.0f} MiB {p50:>8.1f} ms {p95:>8.1f} ms {len(ordered):>6}"
        )


@contextmanager
def viewer(source: Path) -> Iterator[str]:
    """A fresh tftracer that shows a file; its URL."""
    command = [sys.executable, "-m", "tftracer", "--port", "0", "--no-browser", str(source)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split(" is open at ")[1].strip()
    finally:
        process.terminate()
        process.wait()


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield opened
        opened.close()


def until(page: Page, asked: str) -> None:
    """Waits for an expression to come true; the page's own policy forbids Playwright's way of waiting."""
    end = time.monotonic() + TIMEOUT_S
    while not page.evaluate(asked):
        if time.monotonic() > end:
            raise TimeoutError(f"the page did not come to {asked}")
        time.sleep(0.02)


def renderer_memory() -> int:
    """Resident bytes of our browser's page processes: typed arrays lie outside the JavaScript heap's own count."""
    children = psutil.Process().children(recursive=True)
    pages = [child for child in children if "--type=renderer" in child.cmdline()]
    return max((child.memory_info().rss for child in pages), default=0)


def pan(page: Page, box: dict[str, float]) -> None:
    """Three sweeps with the button down, one move a frame or so."""
    y = box["y"] + box["height"] / 2
    for _ in range(3):
        page.mouse.move(box["x"] + box["width"] * 0.9, y)
        page.mouse.down()
        for step in range(50):
            page.mouse.move(box["x"] + box["width"] * (0.9 - 0.016 * step), y + step % 3)
        page.mouse.up()


def zoom(page: Page, box: dict[str, float], notches: int, direction: int, key: str) -> None:
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
    if key:
        page.keyboard.down(key)
    for _ in range(notches):
        page.mouse.wheel(0, direction * 40)
    if key:
        page.keyboard.up(key)


def frames(page: Page, canvas: str, key: str) -> list[float]:
    """Times between frames while zooming in, panning there, further in, panning, and out again."""
    box: Any = page.locator(canvas).first.bounding_box()
    steps: list[Callable[[], None]] = [
        lambda: zoom(page, box, 40, -1, key),
        lambda: pan(page, box),
        lambda: zoom(page, box, 40, -1, key),
        lambda: pan(page, box),
        lambda: zoom(page, box, 80, 1, key),
        lambda: pan(page, box),
    ]
    page.evaluate(FRAMES)
    for step in steps:
        step()
    spans: list[float] = page.evaluate(FRAMES_END)
    return spans


def ours(nodes: int) -> list[Result]:
    """With the counters under the lanes, and with these folded away."""
    with viewer(trace_of(nodes)) as url, browser() as opened:
        page = opened.new_page(viewport={"width": 1400, "height": 860})
        page.set_default_timeout(TIMEOUT_S * 1000)
        page.add_init_script(CLICKED)
        page.goto(f"{url}&order=time")  # a file with one trace opens on it, unless the URL asks for something
        link = page.locator("a[href*='traces/']").first
        link.wait_for()
        link.click()
        until(page, "performance.getEntriesByName('tftracer:painted').length > 0")
        painted = page.evaluate("performance.getEntriesByName('tftracer:painted')[0].startTime - window.clickedAt")
        bytes_of = "performance.getEntriesByType('resource').reduce((sum, entry) => sum + entry.transferSize, 0)"
        transferred = page.evaluate(bytes_of)
        until(page, "document.querySelector('[data-testid=verdict] ol') !== null")
        fold = page.get_by_test_id("counters-fold")
        fold.wait_for(timeout=TIMEOUT_S * 1000)  # in view, and the counters under it
        moved = frames(page, "[data-testid=timeline-canvas]", "Control")
        memory = renderer_memory()
        fold.click()
        folded = frames(page, "[data-testid=timeline-canvas]", "Control")
        layers = page.evaluate(LAYERS) / 1e3
        return [
            Result("counters", nodes, 0.0, painted / 1e3, transferred, memory, moved, layers),
            Result("folded", nodes, 0.0, painted / 1e3, transferred, memory, folded, layers),
        ]


def originals(nodes: int, source: Path, folder: Path) -> Result:
    made = folder / f"original_{nodes}.html"
    script = ROOT / "benchmarks/original/page.py"
    command = [str(ORIGINAL), str(script), "visualize", str(source), str(made)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment(ours=False)).stdout
    server_s = float(output.split("seconds ")[1].split()[0])
    with browser() as opened:
        page = opened.new_page(viewport={"width": 1400, "height": 860})
        page.set_default_timeout(TIMEOUT_S * 1000)
        page.route(lambda url: not url.startswith("file:"), lambda route: route.abort())  # offline, as a job's machine may be
        began = time.perf_counter()
        page.goto(made.as_uri(), wait_until="commit")
        until(page, BOKEH_DONE)
        painted_s = time.perf_counter() - began
        page.evaluate("() => { const tool = document.querySelector('[title=\"Wheel Zoom\"]'); if (tool) tool.click() }")
        moved = frames(page, ".bk-canvas-events", "")
        return Result("original", nodes, server_s, painted_s, made.stat().st_size, renderer_memory(), moved)


def main(sizes: list[int]) -> None:
    heading = f"{'nodes':>9}  {'':<9} {'painted after':>10} {'on the wire':>8} {'memory':>7}  frame p50  frame p95 frames"
    print(heading)
    with tempfile.TemporaryDirectory() as folder:
        for nodes in sizes:
            mine, *others = ours(nodes)
            for result in (mine, *others):
                print(result.row(), flush=True)
            print(f"{'':>9}  layers drawn {mine.layers_s:.2f} s after the click", flush=True)
            if nodes > BESIDE:
                continue
            theirs = originals(nodes, trace_of(nodes), Path(folder))
            print(theirs.row(), flush=True)
            print(f"{'':>9}  drawn in 1/{theirs.seconds / mine.seconds:.0f} of the original's time", flush=True)


if __name__ == "__main__":
    main([int(argument.replace(",", "")) for argument in sys.argv[1:]] or list(SIZES))
