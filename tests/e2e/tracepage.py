"""A trace's page as its tests use it: opening, where a slice is drawn, what the URL holds, and what the engine says."""

from __future__ import annotations

import functools
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
from e2e.gallery import DATA, IDS, TRACES
from e2e.rig import bearer, sign_in
from playwright.sync_api import Locator, Page, expect

from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

#: Two cores are shared with servers, browsers and trainings.
LONG = 60_000
#: Of the canvas: the ruler's height, and half the least height of a row.
RULER, HALF_ROW = 28, 8
#: A fitted step leaves so much of its length free at each side.
MARGIN = 0.01


@functools.cache
def engine(step: int) -> Answers:
    """The engine's own answers for a step of the gallery."""
    return Answers((DATA / TRACES[step]).read_bytes(), TraceContext())


class TracePage:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.base = url.split("?")[0].rstrip("/")
        self.headers = bearer(url)
        sign_in(page.context, url)

    @property
    def canvas(self) -> Locator:
        return self.page.get_by_test_id("timeline-canvas")

    @property
    def panel(self) -> Locator:
        return self.page.get_by_role("tabpanel")

    def url(self, step: int, **query: str | int) -> str:
        return f"{self.base}/traces/{IDS[step]}" + (f"?{urlencode(query)}" if query else "")

    def open(self, step: int, **query: str | int) -> TracePage:
        self.page.goto(self.url(step, **query))
        return self.painted()

    def painted(self) -> TracePage:
        expect(self.page.locator("canvas[data-painted]")).to_be_visible(timeout=LONG)
        return self

    def parameter(self, name: str) -> str | None:
        return parse_qs(urlsplit(self.page.url).query).get(name, [None])[0]

    def has(self, name: str, value: str | int | None) -> None:
        """Waits until the URL holds the parameter; None: until it holds it no more."""
        if value is None:
            expect(self.page).not_to_have_url(re.compile(rf"[?&]{name}="), timeout=LONG)
        else:
            expect(self.page).to_have_url(re.compile(rf"[?&]{name}={re.escape(str(value))}(&|$)"), timeout=LONG)

    def selected(self, node: int | None) -> None:
        self.has("node", node)

    def details(self, name: str) -> Locator:
        """The details of the op of that name, when they are there."""
        expect(self.page.get_by_test_id("details-name")).to_have_text(name, timeout=LONG)
        return self.page.get_by_test_id("details")

    def search(self, text: str) -> Locator:
        self.page.get_by_test_id("search").fill(text)
        return self.page.get_by_test_id("search-count")

    def x_of(self, step: int, ns: float) -> float:
        """Where a time is drawn on the canvas of a fitted step, in pixels."""
        box = self.canvas.bounding_box()
        assert box
        length = engine(step).trace.duration_ns
        return box["width"] * (ns / length + MARGIN) / (1 + 2 * MARGIN)

    def longest(self, step: int) -> tuple[int, str]:
        """The longest op of the first row: (node, name)."""
        answers = engine(step)
        trace, offsets = answers.trace, answers.layout.row_offsets
        row = answers.layout.order[offsets[0] : offsets[1]]
        node = int(row[np.argmax(trace.end[row] - trace.start[row])])
        return node, trace.names[trace.name[node]]

    def middle_of(self, step: int, node: int) -> float:
        """Where the middle of an op is drawn in a fitted step, in pixels."""
        trace = engine(step).trace
        return self.x_of(step, float(trace.start[node] + trace.end[node]) / 2)

    def click_slice(self, x: float) -> None:
        """A click on the first row."""
        self.canvas.click(position={"x": x, "y": RULER + HALF_ROW})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """With the mouse, from one place of the canvas to another."""
        box = self.canvas.bounding_box()
        assert box
        mouse = self.page.mouse
        mouse.move(box["x"] + start[0], box["y"] + start[1])
        mouse.down()
        mouse.move(box["x"] + (start[0] + end[0]) / 2, box["y"] + (start[1] + end[1]) / 2, steps=4)
        mouse.move(box["x"] + end[0], box["y"] + end[1])
        mouse.up()

    def until_drawn(self, colour: tuple[int, int, int], *, some: bool = True) -> None:
        """Waits until the canvas has pixels of exactly that colour, or none of it."""
        is_drawn = """([canvas, [r, g, b], some]) => {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) return some;
            return !some;
        }"""
        self.page.wait_for_function(is_drawn, arg=[self.canvas.element_handle(), list(colour), some], timeout=LONG)

    def until_redrawn(self, was: str) -> None:
        """Waits until the canvas shows something else than ``was`` (``drawn``)."""
        redrawn = "([canvas, was]) => canvas.toDataURL() !== was"
        self.page.wait_for_function(redrawn, arg=[self.canvas.element_handle(), was], timeout=LONG)

    def drawn(self) -> str:
        return str(self.canvas.evaluate("canvas => canvas.toDataURL()"))

    def until_colour(self, x: float, colour: tuple[int, ...], *, same: bool) -> None:
        """Waits until that colour, or another one, is drawn at a place of the first row."""
        has_colour = """([canvas, [x, y], colour, same]) => {
            const scale = canvas.width / canvas.clientWidth;
            const { data } = canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1);
            return data.every((part, i) => part === colour[i]) === same;
        }"""
        place = [x, RULER + HALF_ROW - 4]
        self.page.wait_for_function(has_colour, arg=[self.canvas.element_handle(), place, list(colour), same], timeout=LONG)

    def colour(self, x: float, y: float = RULER + HALF_ROW - 4) -> tuple[int, ...]:
        """What is drawn at a place of the canvas."""
        read = """(canvas, [x, y]) => {
            const scale = canvas.width / canvas.clientWidth;
            return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data];
        }"""
        return tuple(self.canvas.evaluate(read, [x, y]))
