"""The counters under the lanes: they zoom with them, tell their values under the pointer and in a range, and fold away."""

from __future__ import annotations

import re

import numpy as np
import pytest
from e2e.gallery import DENSE, HOROVOD
from e2e.tracepage import LONG, TracePage, engine
from playwright.sync_api import Locator, expect

from tftracer.trace.arrays.columns import array

#: The unit's words, whatever the kind of space before them.
OPS, BYTES = re.compile(r"\d+ ops?"), re.compile(r"[\d.,]+\s[kM]?B")


class Counted:
    """A counter as the engine has it."""

    def __init__(self, step: int, key: str) -> None:
        (counter,) = [counter for counter in engine(step).counters()["counters"] if counter["key"] == key]
        self.time, self.value = np.cumsum(array(counter["gap_ns"]), dtype=np.float64), array(counter["value"])

    def flat(self) -> tuple[float, float, int]:
        """Its longest stretch without a change that is not 0: (start, end, value)."""
        lengths = np.where(self.value[:-1] > 0, np.diff(self.time), 0)
        at = int(np.argmax(lengths))
        return self.time[at], self.time[at + 1], int(self.value[at])

    def within(self, start: float, end: float) -> tuple[int, float, int]:
        """(least, mean, greatest)."""
        edges = np.unique(np.concatenate([[start, end], self.time[(self.time > start) & (self.time < end)]]))
        values = self.value[np.searchsorted(self.time, edges[:-1], "right") - 1]
        return int(values.min()), float(np.average(values, weights=np.diff(edges))), int(values.max())


def header(traced: TracePage, key: str) -> Locator:
    return traced.page.get_by_test_id(f"counter-{key}")


def hover(traced: TracePage, key: str, share: float) -> Locator:
    """The pointer on a counter's plot, at a share of the width; its value."""
    row, box = header(traced, key).bounding_box(), traced.canvas.bounding_box()
    assert row and box
    traced.page.mouse.move(box["x"] + box["width"] * share, row["y"] + row["height"] / 2)
    return traced.page.get_by_test_id("counter-value")


def test_a_counter_zooms_with_the_lanes_and_tells_its_value(traced: TracePage) -> None:
    start, end, value = Counted(DENSE, "ready").flat()
    traced.open(DENSE, view=f"{int(start)}-{int(np.ceil(end))}")
    expect(header(traced, "ready")).to_be_visible(timeout=LONG)
    expect(hover(traced, "ready", 0.5)).to_have_text(f"{value:,} op" + "s" * (value != 1), timeout=LONG)
    traced.page.get_by_test_id("fit").click()
    traced.has("view", None)
    expect(hover(traced, "ready", 0.02)).to_contain_text("ops", timeout=LONG)
    expect(traced.page.get_by_test_id("counters-missing")).to_contain_text("Bytes in flight: The step has neither", timeout=LONG)


def test_a_range_tells_the_least_the_mean_and_the_greatest_of_each_counter(traced: TracePage) -> None:
    start, end = 1_000_000, 3_000_000
    traced.open(HOROVOD, range=f"{start}-{end}")
    table = traced.page.get_by_test_id("range-counters")
    expect(table).to_contain_text("Ops running", timeout=LONG)
    least, mean, most = Counted(HOROVOD, "running").within(start, end)
    cells = table.get_by_role("row").filter(has_text="Ops running").get_by_role("gridcell").all_inner_texts()
    assert [OPS.search(cells[at])[0].split()[0] for at in (1, 3)] == [str(least), str(most)]
    assert float(cells[2].split()[0]) == pytest.approx(mean, rel=0.01)
    least, mean, most = Counted(HOROVOD, "in-flight").within(start, end)
    cells = table.get_by_role("row").filter(has_text="Bytes in flight").get_by_role("gridcell").all_inner_texts()
    assert all(BYTES.fullmatch(cell) for cell in cells[1:])
    shown = [float(cell.split()[0]) * (1_000 if "kB" in cell else 1) for cell in cells[1:]]
    assert shown == pytest.approx([least, mean, most], rel=0.01)


def test_counters_fold_one_by_one_and_all_together_and_stay_so(traced: TracePage) -> None:
    traced.open(DENSE)
    expect(header(traced, "running")).to_be_visible(timeout=LONG)
    tall = header(traced, "running").bounding_box()
    header(traced, "running").get_by_role("button").click()
    traced.has("counters", "running")
    folded = header(traced, "running").bounding_box()
    assert tall and folded and folded["height"] < tall["height"]
    traced.page.get_by_test_id("counters-fold").click()
    expect(header(traced, "running")).to_have_count(0, timeout=LONG)
    traced.page.reload()
    traced.painted()
    expect(traced.page.get_by_test_id("counters-fold")).to_have_attribute("aria-expanded", "false", timeout=LONG)
    expect(header(traced, "running")).to_have_count(0)
