"""The memory of a process over time, whether it grows, and what grows beside it."""

from __future__ import annotations

from typing import Literal, TypedDict

#: What a growth is put down to, because there are ever more of them. garbage: objects, with Python's garbage collection off.
#: containers: lists, dicts, texts, arrays by their names. searching: that is being found out. unknown: none of these explains it.
MemoryKind = Literal[
    "functions",
    "sessions",
    "ops",
    "iterators",
    "variables",
    "tensors",
    "objects",
    "garbage",
    "containers",
    "searching",
    "unknown",
]


class MemoryThing(TypedDict):
    """What grows beside the memory."""

    kind: MemoryKind
    name: str  # of the type, of functions, or in words
    grown: int | None  # more within the seconds in which they were counted
    rate: float | None  # more a second
    bytes_rate: float | None  # bytes a second; None: not measured
    place: str  # "train.py:12"; "" if not known


class MemoryGrowth(TypedDict):
    since: float
    until: float
    start_bytes: int
    end_bytes: int
    bytes_rate: float  # a second
    is_growing: bool  # at the end of what is known
    kind: MemoryKind
    text: str
    advice: str
    doubts: list[str]  # and what the search cost
    things: list[MemoryThing]  # the one that the growth is put down to comes first


class ProcessMemory(TypedDict):
    """GET /api/memory-growth. What the process holds of its own: without files that are mapped into it."""

    at: list[float]  # epoch seconds
    low: list[int]  # bytes, from each of these moments to the next one
    high: list[int]
    growths: list[MemoryGrowth]  # the newest first
    growth_rate: float | None  # bytes a second at the end; 0: none is proven; None: too little is known
    text: str  # what the whole does not know; "" if nothing
