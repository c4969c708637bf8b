"""What grows, once it is proven that memory does: Python's objects are counted by type, three times."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tftracer.memory_growth import census
from tftracer.memory_growth.things import Thing, growing, main_kind, things

#: In readings: until objects are counted again.
AGAIN = 10
COUNTS = 3


class Finding(NamedTuple):
    kind: str  # of ``things``, or garbage, unknown
    things: tuple[Thing, ...]  # the main one first
    lists: int  # times that all objects were listed,
    held_s: float  # and how long other threads could not run Python meanwhile
    is_collected: bool  # Python's garbage collector has looked at all objects meanwhile


def look_for(rate: float, wait: Callable[[float], bool], period: float) -> Finding:
    """``rate``: bytes a second. ``wait``: for seconds, True if the process ends. ``period``: seconds of a reading."""
    counted = [census.take()]
    while len(counted) < COUNTS:
        wait(AGAIN * period)
        counted.append(census.take())
    first, middle, last = counted
    rates = growing(first, middle, last)
    grown = {each: last.counts[each] - first.counts.get(each, 0) for each in rates}
    kind, shown = main_kind(things(rates, grown), rate, census.collects_nothing())
    is_collected = last.full_collections > first.full_collections
    return Finding(kind, tuple(shown), len(counted), sum(each.held_s for each in counted), is_collected)
