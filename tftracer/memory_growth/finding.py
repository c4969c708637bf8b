"""What grows, once it is proven that memory does: Python's objects are counted by type, three times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tftracer.memory_growth import census
from tftracer.memory_growth.things import MAX_SAMPLES, Thing, growing, growing_kinds, main_kind, things

#: In readings: until objects are counted again.
AGAIN = 10
COUNTS = 3


class Finding(NamedTuple):
    """Where objects were counted less than ``COUNTS`` times, it was given up: it held the other threads up."""

    kind: str  # of ``things``, or garbage, unknown
    things: tuple[Thing, ...]  # the main one first
    lists: int  # times that all objects were listed,
    held_s: float  # and how long other threads could not run Python meanwhile
    is_collected: bool  # Python's garbage collector has looked at all objects meanwhile


def look_for(rate: float, wait: Callable[[float], bool], period: float) -> Finding | None:
    """None: the process ended before. ``rate``: bytes a second. ``wait``: for seconds, True if the process ends.
    ``period``: seconds of a reading.
    """
    counted: list[census.Census] = []
    while len(counted) < COUNTS:
        if counted and wait(AGAIN * period):
            return None
        held_s = sum(each.held_s for each in counted)
        if census.is_too_large() or held_s > census.MAX_HELD_S:
            return Finding("unknown", (), len(counted), held_s, False)
        counted.append(census.take())
    first, middle, last = counted
    rates = growing(first, middle, last)
    grown = {each: last.counts[each] - first.counts.get(each, 0) for each in rates}
    kinds = growing_kinds(rates)
    lists = [each.held_s for each in counted]
    samples: Sequence[object] = ()
    if kinds:
        samples, again_s = census.objects_of(kinds, MAX_SAMPLES)
        lists.append(again_s)
    kind, shown = main_kind(things(rates, grown, kinds, samples), rate, census.collects_nothing())
    is_collected = last.full_collections > first.full_collections
    return Finding(kind, tuple(shown), len(lists), sum(lists), is_collected)
