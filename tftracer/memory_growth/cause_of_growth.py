"""Finds what grows once memory growth is proven: counts the script's containers, then Python's objects, three times each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tftracer.memory_growth import containers, object_counts
from tftracer.memory_growth.adding_line import adding_line
from tftracer.memory_growth.containers import Growing, Sizes
from tftracer.memory_growth.growing_types import (
    MAX_SAMPLES,
    MAX_THINGS,
    Thing,
    functions_thing,
    growing,
    growing_kinds,
    is_keras,
    kind_of,
    steady_rate,
    things,
)

#: The time between two counts is this many times the time between two readings of the memory.
READINGS_BETWEEN_COUNTS = 8
COUNTS = 3
#: A container explains the growth if the estimated size of its new entries is between these two shares of the growth.
EXPLAINS = (0.5, 2.0)
#: A container keeps the objects of a type if it gets between these two numbers of new entries for each new object.
HOLDS = (0.6, 1.6)
#: Tensors, and objects whose size is known, are the cause if they make up at least this share of the growth.
SHARE = 0.3
#: A file that was written after this may differ from the code that runs.
STARTED = time.time()


class Finding(NamedTuple):
    kind: str  # the kind of the main thing, or containers, garbage, unknown
    things: tuple[Thing, ...]  # the main one first
    lists: int  # how often all objects were listed
    held_s: float  # seconds for which other threads could not run Python
    is_collected: bool  # a full garbage collection ran meanwhile

    @property
    def is_complete(self) -> bool:
        """Whether objects were counted often enough, or need not be; False if counting delayed the other threads too much."""
        return bool(self.things) or self.lists >= COUNTS


def find_cause(
    rate: float,
    wait: Callable[[float], bool],
    period: float,
    clock: Callable[[], float] = time.monotonic,
    functions: Callable[[], Sequence[Any]] = list,
    may_list: bool = True,
) -> Finding | None:
    """Find what grows; None if the process ends before, or if no container explains the growth and ``may_list`` is False.

    ``rate``: bytes a second. ``wait``: waits for seconds, returns True if the process ends. ``period``: seconds between readings.
    ``functions``: the ConcreteFunctions that are alive. ``may_list``: whether all objects may be listed, which delays the
    training.

    Measuring the script's containers delays no thread. Objects are listed only if no container explains the growth. If listing
    them would delay the training too long, only functions are counted.
    """
    measurements: list[Sizes] = []
    function_counts: list[tuple[float, int]] = []
    while len(measurements) < COUNTS:
        if measurements and wait(READINGS_BETWEEN_COUNTS * period):
            return None
        measurements.append(containers.sizes(clock()))
        function_counts.append((clock(), len(functions())))
    grown = containers.growing(*measurements)
    explaining = [each for each in grown if EXPLAINS[0] <= (each.bytes_rate or 0.0) / rate <= EXPLAINS[1]]
    if explaining:
        thing = _thing(explaining[0])
        return Finding(thing.kind, (thing,), 0, 0.0, True)
    if not may_list:
        return None
    finding = _count_objects(rate, lambda: wait(READINGS_BETWEEN_COUNTS * period), grown, clock)
    function_rate = steady_rate(*function_counts)
    if finding is None or finding.is_complete or function_rate is None:
        return finding
    added = function_counts[-1][1] - function_counts[0][1]
    return finding._replace(kind="functions", things=(functions_thing(functions(), added, function_rate),))


def _count_objects(rate: float, wait: Callable[[], bool], grown: Sequence[Growing], clock: Callable[[], float]) -> Finding | None:
    """Count all objects and return what grows; None if the process ends before. ``grown``: containers, none of which explains the
    growth by its size."""
    counted: list[object_counts.Census] = []
    while len(counted) < COUNTS:
        if counted and wait():
            return None
        held_s = sum(each.held_s for each in counted)
        if object_counts.is_too_large() or held_s > object_counts.MAX_HELD_S:
            return Finding("unknown", (), len(counted), held_s, False)
        counted.append(object_counts.take(clock))
    first, middle, last = counted
    rates = growing(first, middle, last)
    added = {each: last.counts[each] - first.counts.get(each, 0) for each in rates}
    kinds = growing_kinds(rates)
    held_times_s = [each.held_s for each in counted]
    samples: Sequence[object] = ()
    if kinds and sum(held_times_s) <= object_counts.MAX_HELD_S:
        samples, again_s = object_counts.objects_of(kinds, last.counts, MAX_SAMPLES)
        held_times_s.append(again_s)
    candidates = things(rates, added, kinds, samples, containers.object_bytes)
    kind, listed = main_kind(candidates, rate, object_counts.is_collection_off())
    if kind != "unknown":
        listed[:1] = _with_container(listed[0], kinds, rates, grown)
    is_collected = last.full_collections > first.full_collections
    return Finding(kind, tuple(listed[:MAX_THINGS]), len(held_times_s), sum(held_times_s), is_collected)


def _with_container(main: Thing, kinds: dict[type, str], rates: dict[type, float], grown: Sequence[Growing]) -> list[Thing]:
    """Return the main thing and, if exactly one container keeps its objects or the models that own them, this container."""
    types = {each for each, kind in kinds.items() if kind == main.kind or (main.kind == "variables" and is_keras(each))}

    def holds(container: Growing) -> bool:
        return any(HOLDS[0] <= container.rate / rates[each] <= HOLDS[1] for each in types.intersection(container.types))

    holding = list(filter(holds, grown))
    if len(holding) != 1:
        return [main]
    thing = _thing(holding[0])
    return [replace(main, place=main.place or thing.place), replace(thing, kind="containers")]


def _thing(container: Growing) -> Thing:
    kinds = set(map(kind_of, container.types)) - {""}
    kind = kinds.pop() if kinds in ({"tensors"}, {"objects"}) else "containers"
    article = "an" if container.kind[:1].lower() in "aeio" or container.kind == "ndarray" else "a"
    name = f"{'.' * container.name.is_attribute}{container.name.name}{container.path}, {article} {container.kind}"
    place = adding_line(container.name, _sources())
    if not container.types:  # an array or a text
        return Thing(kind, name, None, None, container.bytes_rate, place)
    return Thing(kind, name, container.grown, container.rate, container.bytes_rate, place)


def _sources() -> dict[str, str]:
    texts = {}
    for file in containers.user_files():
        with contextlib.suppress(OSError, ValueError):
            if Path(file).stat().st_mtime < STARTED:
                texts[file] = Path(file).read_text(encoding="utf-8")
    return texts


def main_kind(candidates: Sequence[Thing], rate: float, is_collection_off: bool) -> tuple[str, list[Thing]]:
    """Return the kind that causes the growth, and the things, the thing of that kind first. ``rate``: bytes a second."""

    def is_main(thing: Thing) -> bool:
        if thing.kind == "objects" and thing.bytes_rate is None:
            return True
        return thing.kind not in ("tensors", "objects") or (thing.bytes_rate or 0.0) >= SHARE * rate

    main = next((thing for thing in candidates if is_main(thing)), None)
    if main is None:
        return "unknown", list(candidates)
    kind = "garbage" if main.kind == "objects" and is_collection_off else main.kind
    return kind, [main, *(thing for thing in candidates if thing is not main)]
