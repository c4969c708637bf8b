"""Describes the growth of a process's memory in words, for the page, the summary, tables and the gate. No side effects."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast, get_args

from tftracer.contract.memory_growth import MemoryGrowth, MemoryKind, MemoryThing, ProcessMemory
from tftracer.memory_growth.cause_of_growth import COUNTS
from tftracer.memory_growth.growing_types import Thing
from tftracer.memory_growth.saved_memory_growth import Growth, MemoryFacts
from tftracer.trace.units import byte_size, counted, three_digits

_KINDS = get_args(MemoryKind)
NAMES: dict[str, str] = {
    "functions": "traced functions",
    "sessions": "sessions",
    "ops": "ops of graphs",
    "iterators": "iterators of datasets",
    "variables": "variables",
    "tensors": "tensors",
    "objects": "Python objects",
    "garbage": "Python objects",
    "containers": "the contents",
}
ADVICE: dict[str, str] = {
    "functions": (
        "A function is traced again for each new Python value or shape, and when it is made anew: pass tensors, "
        "set reduce_retracing=True, or make it once, before the loop."
    ),
    "sessions": "Sessions are kept though they are not needed any more, or are never closed: make one, before the loop.",
    "ops": "The loop adds ops to the graph: build the graph before it. After tf.get_default_graph().finalize() that is an error.",
    "iterators": "Make an iterator once, or let go of those that are done.",
    "variables": "Variables or models are kept though they are not needed; tf.keras.backend.clear_session() frees Keras's.",
    "tensors": "Tensors are kept: keep their values, float(loss), or let go of them.",
    "objects": "These objects are kept though they are not needed any more.",
    "containers": "What is added there is kept: keep less, or let go of what is old, as collections.deque(maxlen=...) does.",
    "garbage": "Python's garbage collection is off: objects that refer to each other are never freed. gc.enable(), or "
    "gc.collect().",
    "unknown": (
        "Arrays, numbers or texts in a list or a dict that grows, a dataset that is cached in memory, a library in C or C++, "
        "or memory that the allocator does not give back are left. Python's tracemalloc tells more, in a short run."
    ),
}

UNKNOWN = (
    "What grows is not known. In three counts, the objects of the script's classes, functions, sessions, ops, iterators, "
    "variables and tensors did not steadily become more. No list, dict, text or array that the script's names lead to explains "
    "the growth."
)
TOO_MANY = "What grows is not known: there are so many Python objects that counting them would hold the training up."
TOO_LONG = "What grows is not known: Python's objects were not counted often enough, because a count held the training up."
SEARCHING = "What grows is not known yet: that takes up to 40 s."
ENDED = "What grows is not known: the training ended during the 40 s that finding it takes."
UNKNOWN_BUT_SMALL = "What grows is not known: {} became more, but are too small to explain it."


#: Kind of a thing -> the verb before its place in the code; "added" for other kinds.
_PLACED = {"ops": "made", "functions": "called"}


def rate_text(rate: float) -> str:
    """Format bytes a second as ``12.3 MB/min``."""
    return f"{byte_size(abs(rate) * 60)}/min"


def memory_growth(facts: MemoryFacts | None, is_live: bool = True) -> ProcessMemory:
    """Return the memory of a process and its growths. ``is_live``: whether the process still trains."""
    if facts is None:
        return {"at": [], "low": [], "high": [], "growths": [], "growth_rate": None, "text": ""}
    at, low, high = ([each[i] for each in facts.bins] for i in range(3))
    newest_first = facts.growths[::-1]
    growths = [_growth(each, is_live, is_newest=each is newest_first[0]) for each in newest_first]
    is_known = not facts.unknown and (growths or facts.judged_s >= facts.proof_s)
    rate = sum(each["bytes_rate"] for each in growths if each["is_growing"]) if is_known else None
    return {
        "at": cast("list[float]", at),
        "low": cast("list[int]", low),
        "high": cast("list[int]", high),
        "growths": growths,
        "growth_rate": rate,
        "text": _unknown_text(facts.unknown),
    }


def _unknown_text(reason: str) -> str:
    if reason == "system":
        return "The memory of the process cannot be read on this system, only on Linux."
    return f"The memory is not watched any more: {reason.removeprefix('failed: ')}." if reason else ""


def _growth(growth: Growth, is_live: bool, is_newest: bool) -> MemoryGrowth:
    kind = _kind(growth.kind or "searching")
    things = [_thing(each) for each in growth.things]
    return {
        "since": growth.since,
        "until": growth.until,
        "start_bytes": growth.start_bytes,
        "end_bytes": growth.end_bytes,
        "bytes_rate": growth.rate,
        "is_growing": growth.is_growing,
        "kind": kind,
        "text": " ".join(filter(None, [_growth_text(growth, is_newest), _cause_text(growth, kind, things, is_live)])),
        "advice": ADVICE.get(kind, ""),
        "doubts": _doubts(growth, kind),
        "things": things,
    }


def _kind(given: str) -> MemoryKind:
    return cast(MemoryKind, given if given in _KINDS else "unknown")


def _thing(thing: Thing) -> MemoryThing:
    return cast(MemoryThing, {**asdict(thing), "kind": _kind(thing.kind)})


def _growth_text(growth: Growth, is_newest: bool) -> str:
    size = byte_size(max(0, growth.end_bytes - growth.start_bytes))
    if growth.is_growing:
        return f"Memory grows by {rate_text(growth.rate)}: {size} in {_time_text(growth.until - growth.since)}."
    grew = f"emory grew by {size} in {_time_text(growth.until - growth.since)}"
    return f"M{grew}, and then not steadily any more." if is_newest else f"Before that, m{grew}."


def _cause_text(growth: Growth, kind: MemoryKind, things: list[MemoryThing], is_live: bool) -> str:
    if kind == "searching":
        return "" if not growth.is_growing else SEARCHING if is_live else ENDED
    if growth.lists < COUNTS and not things:  # counting was stopped
        return TOO_LONG if growth.lists else TOO_MANY
    if kind == "unknown" or not things:
        small = " and ".join(dict.fromkeys(NAMES[each["kind"]] for each in things))
        return UNKNOWN_BUT_SMALL.format(small) if small else UNKNOWN
    thing = things[0]
    place = f", {_PLACED.get(kind, 'added')} at {thing['place']}" if thing["place"] else ""
    size = f", {rate_text(thing['bytes_rate'])}" if thing["bytes_rate"] is not None else ""
    more = f": {thing['grown']:,} more{_each_second(thing)}" if thing["grown"] is not None else ""
    name = f" of {thing['name']}" if kind == "containers" else f" ({thing['name']})" if thing["name"] else ""
    kept = f", kept in {things[1]['name']}" if len(things) > 1 and things[1]["kind"] == "containers" else ""
    verb = "grow" if growth.is_growing else "grew"
    return f"With it {verb} {NAMES[kind]}{name}{more}{size}{kept}{place}."


def _each_second(thing: MemoryThing) -> str:
    """Return ", 15 a second": the counts are taken during the search, so they cover less time than the growth of the memory."""
    return f", {three_digits(thing['rate'])} a second" if thing["rate"] else ""


def _time_text(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _doubts(growth: Growth, kind: MemoryKind) -> list[str]:
    doubts = []
    if kind in ("objects", "tensors") and not growth.is_collected:
        doubts.append("No full garbage collection ran meanwhile: gc.collect() shows whether a collection would free them.")
    if growth.lists:
        lists = f"To find it, all Python objects were listed {counted(growth.lists, 'time')}"
        doubts.append(f"{lists}: for {growth.held_s:.2g} s in all no other thread could run Python.")
    return doubts
