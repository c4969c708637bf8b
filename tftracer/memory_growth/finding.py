"""What grows, once it is proven that memory does: objects are counted, and for some seconds tracemalloc is on."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

from tftracer.memory_growth import census
from tftracer.memory_growth.lines import Lines, trace
from tftracer.memory_growth.things import Thing, growing, main_kind, of_python, things

#: In readings: until objects are counted again; how long tracemalloc is on, and so many steps.
AGAIN, LINES, MOST_LINES, STEPS = 10, 8, 20, 10


class Finding(NamedTuple):
    kind: str  # of ``things``, or native, unknown
    things: tuple[Thing, ...]  # the main one first
    lists: int  # times that all objects were listed,
    held_s: float  # and how long other threads could not run Python meanwhile
    traced_s: float  # that tracemalloc was on; 0: it was not, or the script had it on
    slowdown: float | None  # steps took so many times as long meanwhile
    is_collected: bool  # Python's garbage collector has looked at all objects meanwhile


def look_for(
    rate: float,
    first: census.Census | None,
    steps: Callable[[], int],
    wait: Callable[[float], bool],
    period: float,
    with_lines: bool,
) -> Finding:
    """``rate``: bytes a second. ``first``: of when growth was suspected. ``wait``: for seconds, True if the process ends."""
    counted = [first] if first is not None else [census.take()]
    before, began = steps(), time.monotonic()
    wait(AGAIN * period)
    counted.append(census.take())
    usual = (steps() - before) / (time.monotonic() - began)
    found: list[Thing] = []
    lines: Lines | None = None
    slowdown = None

    def look() -> None:
        counted.append(census.take())
        found.extend(_things(*counted))

    if with_lines:
        before, began = steps(), time.monotonic()
        lines = trace(LINES * period, MOST_LINES * period, lambda: steps() >= before + STEPS, wait, look)
        slowed = (steps() - before) / (time.monotonic() - began)
        slowdown = usual / slowed if lines.held_s and min(usual, slowed) > 0 else None
        found += of_python(lines)
    else:
        wait(AGAIN * period)
        look()
    kind, shown = main_kind(found, rate, census.collects_nothing())
    held_s = sum(each.held_s for each in counted)
    is_collected = counted[-1].full_collections > counted[0].full_collections
    return Finding(kind, tuple(shown), len(counted), held_s, lines.held_s if lines else 0.0, slowdown, is_collected)


def _things(first: census.Census, middle: census.Census, last: census.Census) -> list[Thing]:
    rates = growing(first, middle, last)
    grown = {each: last.counts[each] - first.counts.get(each, 0) for each in rates}
    traced: Callable[[Any], Any] = tracemalloc.get_object_traceback
    return things(rates, grown, traced if tracemalloc.is_tracing() else lambda each: None)
