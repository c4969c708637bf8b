"""The memory of a process over time, whether it grows, and what else grows with it."""

from __future__ import annotations

from typing import Literal, TypedDict

#: What explains a growth of the memory: the number of these things grows. garbage: objects that are not freed because
#: Python's garbage collection is off. containers: named lists, dicts, strings, arrays. searching: the search for the cause still
#: runs. unknown: nothing that was counted explains the growth.
MemoryKind = Literal[
    "functions", "sessions", "ops", "iterators", "variables", "tensors", "objects", "garbage", "containers", "searching",
    "unknown",
]  # fmt: skip


class MemoryThing(TypedDict):
    """A kind of thing whose number grows while the memory grows."""

    kind: MemoryKind
    name: str  # the type's name, functions' names, or a description
    grown: int | None  # increase of the number during the time in which the things were counted
    rate: float | None  # increase per second
    bytes_rate: float | None  # bytes per second; None: not measured
    place: str  # "train.py:12"; "" if not known


class MemoryGrowth(TypedDict):
    since: float
    until: float
    start_bytes: int
    end_bytes: int
    bytes_rate: float  # bytes per second
    is_growing: bool  # whether the memory still grew at the end of the record
    kind: MemoryKind
    text: str
    advice: str
    doubts: list[str]  # reasons for doubt, and the time that the search took
    things: list[MemoryThing]  # first the thing that explains the growth


class ProcessMemory(TypedDict):
    """GET /api/memory-growth. The process's own memory, without files that are mapped into it."""

    at: list[float]  # epoch seconds
    low: list[int]  # lowest memory in bytes, from each moment of ``at`` to the next one
    high: list[int]  # highest memory in bytes, from each moment of ``at`` to the next one
    growths: list[MemoryGrowth]  # the newest first
    growth_rate: float | None  # bytes per second at the end; 0: no growth is proven; None: too little data
    text: str  # what could not be measured; "" if nothing is missing
