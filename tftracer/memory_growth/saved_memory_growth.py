"""The facts about a process's memory: makes their record for the session's file, and reads it. Only the newest record counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from tftracer.memory_growth.cause_of_growth import Finding
from tftracer.memory_growth.growing_types import MAX_THINGS, Thing
from tftracer.memory_growth.growth_proof import NEAR, Slope
from tftracer.memory_growth.memory_curve import MAX_BINS, Bin
from tftracer.storage.spool import NewRecord
from tftracer.storage.tftrace_format import MEMORY
from tftracer.storage.untrusted import Fields, count, duration, fields_of, items, moment, readers, seconds, text, tuple_of

MAX_GROWTHS = 20


@dataclass(frozen=True)
class Growth:
    """A growth that was proven. Bytes; times are epoch seconds."""

    since: float
    until: float
    start_bytes: int
    end_bytes: int
    rate: float  # bytes a second
    is_growing: bool  # the growth has not ended
    kind: str = ""  # "": not found yet
    things: tuple[Thing, ...] = field(default=())
    lists: int = 0  # how often all objects were listed
    held_s: float = 0.0  # seconds for which other threads could not run Python
    is_collected: bool = False  # a full garbage collection ran while the cause was searched for

    @classmethod
    def of(cls, slope: Slope) -> Growth:
        return cls(slope.since, slope.until, int(slope.start_bytes), int(slope.end_bytes), slope.rate, True)

    def grown(self, slope: Slope) -> Growth:
        """Return the growth up to now. A fall, such as at the end of a training that frees its memory, does not count."""
        if slope.end_bytes < self.end_bytes - NEAR * (self.end_bytes - self.start_bytes):
            return self
        return replace(self, until=slope.until, end_bytes=int(slope.end_bytes), rate=slope.rate)

    def explained(self, finding: Finding) -> Growth:
        return replace(self, **finding._asdict())


@dataclass(frozen=True)
class MemoryFacts:
    bins: tuple[Bin, ...]
    growths: tuple[Growth, ...]  # the newest last
    judged_s: float  # seconds of the training in which growth was searched for
    proof_s: float  # shortest time that proves growth
    unknown: str  # why nothing is known; "" otherwise


def record(facts: MemoryFacts) -> NewRecord:
    return NewRecord(MEMORY, asdict(facts))


_KINDS: Fields = {"str": partial(text, limit=300), "float": duration}
_things = tuple_of(Thing, MAX_THINGS + 2, _KINDS)


def _bins(given: Any) -> tuple[Bin, ...]:
    rows = [(*items(each), None, None, None)[:3] for each in items(given)[:MAX_BINS]]
    return tuple(Bin(moment(at), count(low), count(high)) for at, low, high in rows)


_FACTS = readers(
    MemoryFacts,
    kinds=_KINDS,
    bins=_bins,
    growths=tuple_of(Growth, MAX_GROWTHS, _KINDS, since=moment, until=moment, rate=seconds, things=_things),
)


def read(meta: Mapping[str, Any]) -> MemoryFacts:
    """Read from a file, which is untrusted: types are checked."""
    return MemoryFacts(**fields_of(dict(meta), _FACTS))
